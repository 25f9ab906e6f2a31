package importer

import (
	"encoding/json"

	"github.com/varve-dev/varve/internal/rawjson"
)

// uiPart is a part of the message. Which members count depends on its kind: a raw part is written as it stands.
type uiPart struct {
	kind     string // text, reasoning, tool, raw
	id       string // of a text, a reasoning or a call
	raw      []byte
	text     []byte // of the deltas
	state    string
	metadata []byte // the provider's
	tool     uiTool
}

// uiTool is a call and, when it has been made, its result.
type uiTool struct {
	callID, name, title, input, output, failure, executed, approval []byte
	dynamic                                                         bool
}

// learn takes the call's members from a chunk.
func (t *uiTool) learn(o object) {
	for name, to := range map[string]*[]byte{
		"toolName": &t.name, "title": &t.title, "input": &t.input, "output": &t.output, "errorText": &t.failure,
		"providerExecuted": &t.executed,
	} {
		if value, ok := o[name]; ok {
			*to = value
		}
	}
	t.dynamic = t.dynamic || o.is("dynamic")
}

func (p *uiPart) body() []byte {
	switch p.kind {
	case "raw":
		return p.raw
	case "tool":
		return p.call()
	}
	return fill(
		`{"type":%,"text":%,"state":%%}`, quote(p.kind), p.text, quote(p.state),
		member("providerMetadata", p.metadata),
	)
}

func (p *uiPart) call() []byte {
	t := &p.tool
	kind := concat(quote("tool-"), t.name)
	if t.dynamic {
		kind = fill(`"dynamic-tool","toolName":%`, inString(t.name))
	}
	out := fill(`{"type":%,"toolCallId":%,"state":%`, kind, t.callID, quote(p.state))
	for _, m := range []struct {
		name  string
		value []byte
	}{
		{"title", t.title},
		{"input", p.input()},
		{"output", p.output()},
		{"errorText", t.failure},
		{"providerExecuted", t.executed},
		{"approval", t.approval},
		{"callProviderMetadata", p.metadata},
	} {
		out = append(out, member(m.name, m.value)...)
	}
	return append(out, '}')
}

// input returns the arguments of the call: a value, or the text of its deltas. Deltas that were cut are kept as a text.
func (p *uiPart) input() []byte {
	if p.tool.input != nil || p.text == nil {
		return p.tool.input
	}
	if value, ok := rawjson.Unquote(nil, p.text); ok && json.Valid(value) {
		return value
	}
	return p.text
}

// output returns the result: null if the state requires one and none was written.
func (p *uiPart) output() []byte {
	if p.state == "output-available" && !has(p.tool.output) {
		return []byte("null")
	}
	return p.tool.output
}
