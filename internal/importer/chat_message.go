package importer

import (
	"bytes"
	"encoding/json"
	"errors"
)

// chatMessage is a Chat Completions message that is put together from JSON values as a file has them.
type chatMessage struct {
	role      string
	content   []byte // nil if there is none
	reasoning []byte // a string literal; nil for none
	calls     [][]byte
	more      []byte // further members, each after a comma
}

// body reports false if the message has no content, no reasoning and no call.
func (m *chatMessage) body() (body []byte, ok bool) {
	content := m.content
	switch {
	case content != nil:
	case m.calls != nil:
		content = []byte("null")
	case m.reasoning != nil:
		content = []byte(`""`)
	default:
		return nil, false
	}
	out := [][]byte{fill(`"role":%,"content":%`, quote(m.role), content)}
	if m.reasoning != nil {
		out = append(out, fill(`"reasoning_content":%`, m.reasoning))
	}
	if m.calls != nil {
		out = append(out, fill(`"tool_calls":%`, list(m.calls)))
	}
	return fill("{%%}", bytes.Join(out, []byte{','}), m.more), true
}

// bodies returns the message as the only one of a record, or the error that it is empty.
func (m *chatMessage) bodies() ([][]byte, error) {
	body, ok := m.body()
	if !ok {
		return nil, skipped(m.role + " without content")
	}
	return [][]byte{body}, nil
}

// addCalls adds the calls of a list, whose members have these names.
func (m *chatMessage) addCalls(list []byte, id, name, arguments string) {
	for _, raw := range parseArray(list) {
		o := parseObject(raw)
		m.calls = append(m.calls, chatCall(o[id], o[name], o[arguments]))
	}
}

// chatCall writes a call. The format wants the arguments in a string.
func chatCall(id, name, arguments []byte) []byte {
	if !has(arguments) {
		arguments = []byte("{}")
	}
	return fill(
		`{"id":%,"type":"function","function":{"name":%,"arguments":%}}`, inString(id), inString(name),
		inString(arguments),
	)
}

// chatResult writes a result. Of its content only texts stay blocks: the format has no others there.
func chatResult(id, content []byte) []byte {
	blocks := parseArray(content)
	for i, raw := range blocks {
		o := parseObject(raw)
		if o.text("type") != "text" || !isString(o["text"]) {
			blocks = nil
			break
		}
		blocks[i] = textBlock(o["text"])
	}
	if len(blocks) == 0 {
		content = inString(content)
	} else {
		content = list(blocks)
	}
	return fill(`{"role":"tool","tool_call_id":%,"content":%}`, inString(id), content)
}

// inString returns a value as a string literal: a string as it stands, any other as its JSON, without the file's
// layout, and nothing as "".
func inString(raw []byte) []byte {
	switch {
	case !has(raw):
		return []byte(`""`)
	case isString(raw):
		return raw
	}
	var compact bytes.Buffer
	_ = json.Compact(&compact, raw) // what is no JSON has never come this far
	return quote(compact.String())
}

// has reports whether a value is there and not null.
func has(raw []byte) bool { return len(raw) > 0 && string(raw) != "null" }

// concat joins string literals to one. A character whose surrogates two of them share becomes whole again.
func concat(literals ...[]byte) []byte {
	out := []byte{'"'}
	for _, l := range literals {
		if isString(l) {
			out = append(out, l[1:len(l)-1]...)
		}
	}
	return append(out, '"')
}

// filled reports whether a value is a string that is not empty.
func filled(raw []byte) bool { return isString(raw) && len(raw) > len(`""`) }

// said returns the value if it is a string that is not empty, else nil.
func said(raw []byte) []byte {
	if filled(raw) {
		return raw
	}
	return nil
}

// imageBlock returns Chat Completions' block of an image, of which the URL may hold the bytes.
func imageBlock(url []byte) []byte { return fill(`{"type":"image_url","image_url":{"url":%}}`, url) }

// blocksOrText returns a content of these blocks: the string alone if a text is the only block, nil if there is none.
func blocksOrText(blocks [][]byte) []byte {
	switch {
	case len(blocks) == 0:
		return nil
	case len(blocks) == 1:
		if o := parseObject(blocks[0]); o.text("type") == "text" && isString(o["text"]) {
			return o["text"]
		}
	}
	return list(blocks)
}

// member writes a further member of an object, nothing if the value is not there.
func member(name string, value []byte) []byte {
	if value == nil {
		return nil
	}
	return fill(`,%:%`, quote(name), value)
}

// What is wrong with a record, in the words of every source.
var (
	errNoRole    = errors.New("no role")
	errNoType    = errors.New("no record type")
	errNoContent = errors.New("the message's content is neither a string nor a list of blocks")
)
