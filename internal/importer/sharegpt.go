package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// A record of a ShareGPT data set is a conversation of turns: who spoke (from) and what (value). They become OpenAI
// Chat's messages.
//
//   - A call is a turn of its own (function_call), or stands between <tool_call> and </tool_call> in the model's text,
//     as JSON with a name and arguments. Its id is made of its place. What cannot be read so stays text.
//   - A result (observation, tool) answers the oldest open call; without one it is a message of the user. Several
//     results may stand in one turn, each between <tool_response> and </tool_response>.
//   - Images are paths beside the file. They are counted as skipped, like the answers of a preference (chosen,
//     rejected); definitions of tools are no messages.
var shareGPT = source{
	name:  ShareGPT,
	title: "ShareGPT data sets",
	detect: marked(
		"conversations.0.from conversations.0.value", "0.conversations.0.from 0.conversations.0.value",
		"0.from 0.value", "conversation.0.from conversation.0.value", "0.conversation.0.from 0.conversation.0.value",
	),
	into: OpenAIChat,
	runs: layout{lists: []string{"conversation", "conversations"}, prompt: "system", bare: true},
	open: openShareGPT,
}

func openShareGPT(d *draft) record {
	for _, name := range []string{"images", "videos", "audios", "chosen", "rejected"} {
		for range parseArray(d.run[name]) {
			d.file.count(entry{}, skipped(name))
		}
		if parseObject(d.run[name]) != nil {
			d.file.count(entry{}, skipped(name))
		}
	}
	return (&shareGPTRecord{}).turn
}

// shareGPTRecord is a record being read.
type shareGPTRecord struct {
	calls int
	open  [][]byte // ids of calls without a result
}

var shareGPTRoles = map[string]string{
	"human": "user", "user": "user", "gpt": "assistant", "chatgpt": "assistant", "assistant": "assistant",
	"model": "assistant", "bing": "assistant", "bard": "assistant", "system": "system",
	"function_call": "call", "tool_call": "call",
	"observation": "tool", "tool": "tool", "function": "tool", "function_response": "tool", "tool_response": "tool",
}

// turn adds a turn as the message that it is.
func (r *shareGPTRecord) turn(d *draft, e entry) error {
	role, value := shareGPTRoles[e.text("from")], e.object["value"]
	switch {
	case role == "":
		return fmt.Errorf(`"from" is %s: human, gpt, system, function_call or observation is needed`,
			or(e.object["from"], "missing"))
	case !isString(value):
		return errors.New(`"value" is no string`)
	case role == "call":
		return r.call(d, value)
	case role == "tool":
		r.results(d, value)
		return nil
	}
	m := &chatMessage{role: role, content: nonEmpty(value)}
	if role == "assistant" {
		m.content = nil
		rest, calls := cut(value, "tool_call")
		for _, c := range calls {
			if !r.addCalls(m, c) {
				rest, m.calls = value, nil
				d.note("what stands in <tool_call> is no call: the text is kept as it is")
				break
			}
		}
		if text := nonEmpty(rest); text != nil && (m.calls == nil || len(bytes.TrimSpace(unquoted(text))) > 0) {
			m.content = text
		}
	}
	return d.addChat(m)
}

// call adds a turn that is a call, or a list of calls.
func (r *shareGPTRecord) call(d *draft, value []byte) error {
	m := &chatMessage{role: "assistant"}
	if !r.addCalls(m, value) {
		d.note("the call is no JSON with a name and arguments: it is kept as a text")
		m.content = value
	}
	return d.addChat(m)
}

// addCalls adds the calls that a string literal holds, and reports false if it holds anything else.
func (r *shareGPTRecord) addCalls(m *chatMessage, literal []byte) bool {
	raw := bytes.TrimSpace(unquoted(literal))
	if !json.Valid(raw) {
		return false
	}
	calls := elementsOf(raw)
	for _, raw := range calls {
		o := parseObject(raw)
		if o.text("name") == "" {
			return false
		}
	}
	for _, raw := range calls {
		o := parseObject(raw)
		r.calls++
		id := quote(fmt.Sprintf("call-%d", r.calls))
		m.addCall(id, o["name"], o.first("arguments", "parameters"))
		r.open = append(r.open, id)
	}
	return len(calls) > 0
}

// results adds the results of a turn.
func (r *shareGPTRecord) results(d *draft, value []byte) {
	_, answers := cut(value, "tool_response")
	if len(answers) == 0 || len(answers) > len(r.open) {
		answers = [][]byte{value}
	}
	for _, answer := range answers {
		if len(r.open) == 0 {
			d.add(message("user", answer))
			d.note("a result without a call is a message of the user")
			continue
		}
		d.add(resultMessage(r.open[0], answer))
		r.open = r.open[1:]
	}
}

// cut returns a string literal without what stands between the marks of a name, and what does, as literals.
func cut(literal []byte, name string) (rest []byte, inner [][]byte) {
	begin, end := []byte("<"+name+">"), []byte("</"+name+">")
	rest = []byte{'"'}
	left := literal[1 : len(literal)-1]
	for {
		before, behind, found := bytes.Cut(left, begin)
		within, after, closed := bytes.Cut(behind, end)
		if !found || !closed {
			return append(append(rest, left...), '"'), inner
		}
		rest = append(rest, before...)
		inner = append(inner, fill(`"%"`, within))
		left = after
	}
}
