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
	tool     object // the members of a call and, when it has been made, of its result
}

// uiToolMembers are the members of a tool's part, in their order, beside its type, its id and its state.
var uiToolMembers = []string{
	"title", "input", "output", "errorText", "providerExecuted", "approval", "callProviderMetadata",
}

// learn copies the call's members from a chunk.
func (p *uiPart) learn(o object) {
	for _, name := range []string{"toolName", "title", "input", "output", "errorText", "providerExecuted"} {
		if value, ok := o[name]; ok {
			p.tool[name] = value
		}
	}
	if o.is("dynamic") {
		p.tool["dynamic"] = o["dynamic"]
	}
}

// body returns the part as the message has it.
func (p *uiPart) body() []byte {
	switch p.kind {
	case "raw":
		return p.raw
	case "tool":
		return p.call()
	}
	metadata := member("providerMetadata", p.metadata)
	return fill(`{"type":%,"text":%,"state":%%}`, quote(p.kind), p.text, quote(p.state), metadata)
}

// call returns the part of a call.
func (p *uiPart) call() []byte {
	kind := concat(quote("tool-"), p.tool["toolName"])
	if p.tool.is("dynamic") {
		kind = fill(`"dynamic-tool","toolName":%`, inString(p.tool["toolName"]))
	}
	p.tool["input"], p.tool["output"] = p.input(), p.output()
	p.tool["callProviderMetadata"] = p.metadata
	out := fill(`{"type":%,"toolCallId":%,"state":%`, kind, p.tool["toolCallId"], quote(p.state))
	for _, name := range uiToolMembers {
		out = append(out, member(name, p.tool[name])...)
	}
	return append(out, '}')
}

// input returns the arguments of the call: a value, or the text of its deltas. Deltas that were cut are kept as a text.
func (p *uiPart) input() []byte {
	if p.tool["input"] != nil || p.text == nil {
		return p.tool["input"]
	}
	if value, ok := rawjson.Unquote(nil, p.text); ok && json.Valid(value) {
		return value
	}
	return p.text
}

// output returns the result: null if the state requires one and none was written.
func (p *uiPart) output() []byte {
	if p.state == "output-available" && !p.tool.has("output") {
		return []byte("null")
	}
	return p.tool["output"]
}
