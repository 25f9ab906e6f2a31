package importer

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
)

// The chunks of a stream become the UIMessage that the SDK's client would make of them: texts and reasoning of their
// deltas, a part for each tool call, which its result completes wherever it comes, and steps. A stream with several
// chunks "start" has several messages. Data that is transient, and what a client shows or counts (finish, abort,
// error), is skipped.
var aiSDKStream = source{
	name:   AISDKStream,
	title:  "AI SDK's UI message streams",
	detect: func(s sample) bool { return s.object.fits(uiChunk) || s.object == nil && anyUIChunk(s.messages) },
	into:   AISDK,
	open:   func(*draft) record { return (&uiStream{}).chunk },
}

// uiChunk is the pattern of chunks that only such a stream has: others also write "start".
const uiChunk = "!role type=start-step|finish-step|text-start|text-delta|text-end|reasoning-start|reasoning-delta|" +
	"reasoning-end|tool-input-start|tool-input-delta|tool-input-available|tool-input-error|" +
	"tool-output-available|tool-output-error"

// anyUIChunk reports whether one of the first five values is such a chunk.
func anyUIChunk(list [][]byte) bool {
	first := list[:min(len(list), 5)]
	return slices.ContainsFunc(first, func(raw []byte) bool { return parseObject(raw).fits(uiChunk) })
}

// uiStream is a stream being read.
type uiStream struct{ *uiMessage } // the newest message, nil before the first chunk

// uiMessage is a message that is put together from the chunks of a stream.
type uiMessage struct {
	line     int // where it began
	id       []byte
	metadata []byte
	parts    []*uiPart
}

func (u *uiStream) chunk(d *draft, e entry) error {
	kind := e.text("type")
	if u.uiMessage == nil || kind == "start" {
		u.uiMessage = &uiMessage{
			line: e.line, id: nonEmpty(e.object["messageId"]), metadata: e.object["messageMetadata"],
		}
	}
	switch {
	case kind == "start":
	case kind == "start-step":
		u.addPart(d, &uiPart{kind: "raw", raw: []byte(`{"type":"step-start"}`)})
	case strings.HasPrefix(kind, "text-"), strings.HasPrefix(kind, "reasoning-") && kind != "reasoning-file":
		u.prose(d, e, kind)
	case strings.HasPrefix(kind, "tool-"):
		return u.toolChunk(d, e, kind)
	case strings.HasPrefix(kind, "data-") && !e.is("transient"):
		u.data(d, e, kind)
	case kind == "file", kind == "source-url", kind == "source-document", kind == "reasoning-file":
		u.addPart(d, &uiPart{kind: "raw", raw: e.raw})
	case kind == "":
		return errors.New("a chunk without a type")
	default:
		return skipped(kind)
	}
	return nil
}

// addPart adds a part to the message, whose place is taken by its first part.
func (m *uiMessage) addPart(d *draft, p *uiPart) {
	if m.parts == nil {
		m.id = or(m.id, quote("message-"+strconv.Itoa(len(d.slots)+1)))
		d.place(m.body).line = m.line
	}
	m.parts = append(m.parts, p)
}

// prose reads a chunk of a text or of reasoning.
func (m *uiMessage) prose(d *draft, e entry, kind string) {
	name, step, _ := strings.Cut(kind, "-")
	p := m.find(name, e.text("id"))
	if step == "start" || p == nil {
		p = &uiPart{kind: name, id: e.text("id"), text: []byte(`""`), state: "streaming"}
		m.addPart(d, p)
	}
	p.metadata = or(e.object["providerMetadata"], p.metadata)
	switch step {
	case "delta":
		p.text = concat(p.text, e.object["delta"])
	case "end":
		p.state = "done"
	}
}

// data adds a part of the application, or replaces the one of its id.
func (m *uiMessage) data(d *draft, e entry, kind string) {
	id := kind + " " + e.text("id")
	if p := m.find("raw", id); p != nil && e.has("id") {
		p.raw = e.raw
		return
	}
	m.addPart(d, &uiPart{kind: "raw", id: id, raw: e.raw})
}

// find returns the newest part of that kind and id that has not ended, or nil.
func (m *uiMessage) find(kind, id string) *uiPart {
	for _, p := range slices.Backward(m.parts) {
		if p.kind == kind && p.id == id && p.state != "done" {
			return p
		}
	}
	return nil
}

// uiToolStates are the states in which chunks leave the part of a call.
var uiToolStates = map[string]string{
	"tool-input-start":      "input-streaming",
	"tool-input-delta":      "input-streaming",
	"tool-input-available":  "input-available",
	"tool-input-error":      "output-error",
	"tool-approval-request": "approval-requested",
	"tool-output-available": "output-available",
	"tool-output-error":     "output-error",
	"tool-output-denied":    "output-denied",
}

func (m *uiMessage) toolChunk(d *draft, e entry, kind string) error {
	id, state := e.text("toolCallId"), uiToolStates[kind]
	switch {
	case id == "":
		return errors.New("a chunk of a tool call without its id")
	case state == "":
		return skipped(kind)
	}
	p := m.find("tool", id)
	if p == nil {
		p = &uiPart{kind: "tool", id: id, tool: object{"toolCallId": e.object["toolCallId"]}}
		m.addPart(d, p)
	}
	p.state = state
	p.metadata = or(e.object["providerMetadata"], p.metadata)
	for _, name := range uiToolMembers {
		if value, ok := e.object[name]; ok {
			p.tool[name] = value
		}
	}
	switch kind {
	case "tool-input-start":
		p.text = []byte(`""`)
	case "tool-input-delta":
		p.text = concat(p.text, e.object["inputTextDelta"])
	case "tool-approval-request":
		p.tool["approval"] = fill(`{"id":%}`, inString(e.object["approvalId"]))
	}
	return nil
}

// body returns the message that the chunks make.
func (m *uiMessage) body() []byte {
	parts := make([][]byte, len(m.parts))
	for i, p := range m.parts {
		parts[i] = p.body()
	}
	return fill(`{"id":%,"role":"assistant"%,"parts":%}`, m.id, member("metadata", m.metadata), list(parts))
}

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

// uiToolMembers are the members of a call that chunks have.
var uiToolMembers = []string{
	"toolName", "title", "input", "output", "errorText", "providerExecuted", "dynamic",
}

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

func (p *uiPart) call() []byte {
	kind := concat(quote("tool-"), p.tool["toolName"])
	if p.tool.is("dynamic") {
		kind = fill(`"dynamic-tool","toolName":%`, inString(p.tool["toolName"]))
	}
	p.tool["input"], p.tool["output"] = p.input(), p.output()
	p.tool["callProviderMetadata"] = p.metadata
	out := fill(`{"type":%,"toolCallId":%,"state":%`, kind, p.tool["toolCallId"], quote(p.state))
	for _, name := range []string{
		"title", "input", "output", "errorText", "providerExecuted", "approval", "callProviderMetadata",
	} {
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
