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
	read:   readAISDKStream,
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

// readAISDKStream reads all chunks, and ends the last message with the file.
func readAISDKStream(f *File, id string, data []byte) error {
	u := &uiStream{draft: f.newDraft(nil)}
	u.read(f.records(data), adding(u.chunk))
	u.end()
	u.finish(id)
	return nil
}

// uiStream puts together the messages of a stream.
type uiStream struct {
	*draft
	parts    []*uiPart
	id       []byte // of the message, nil if the stream has none
	metadata []byte
	begin    int // the line where the message began; 0 if none has
}

func (u *uiStream) chunk(e entry) error {
	kind := e.text("type")
	if u.begin == 0 {
		u.begin = e.line
	}
	switch {
	case kind == "start":
		u.end()
		u.begin = e.line
		u.id, u.metadata = nonEmpty(e.object["messageId"]), e.object["messageMetadata"]
	case kind == "start-step":
		u.parts = append(u.parts, &uiPart{kind: "raw", raw: []byte(`{"type":"step-start"}`)})
	case strings.HasPrefix(kind, "text-"), strings.HasPrefix(kind, "reasoning-") && kind != "reasoning-file":
		u.prose(e, kind)
	case strings.HasPrefix(kind, "tool-"):
		return u.toolChunk(e, kind)
	case strings.HasPrefix(kind, "data-") && !e.is("transient"):
		u.data(e, kind)
	case kind == "file", kind == "source-url", kind == "source-document", kind == "reasoning-file":
		u.parts = append(u.parts, &uiPart{kind: "raw", raw: e.raw})
	case kind == "":
		return errors.New("a chunk without a type")
	default:
		return skipped(kind)
	}
	return nil
}

// prose reads a chunk of a text or of reasoning.
func (u *uiStream) prose(e entry, kind string) {
	name, step, _ := strings.Cut(kind, "-")
	p := u.find(name, e.text("id"))
	if step == "start" || p == nil {
		p = &uiPart{kind: name, id: e.text("id"), text: []byte(`""`), state: "streaming"}
		u.parts = append(u.parts, p)
	}
	if e.has("providerMetadata") {
		p.metadata = e.object["providerMetadata"]
	}
	switch step {
	case "delta":
		p.text = concat(p.text, e.object["delta"])
	case "end":
		p.state = "done"
	}
}

// data adds a part of the application, or replaces the one of its id.
func (u *uiStream) data(e entry, kind string) {
	id := kind + " " + e.text("id")
	if p := u.find("raw", id); p != nil && e.has("id") {
		p.raw = e.raw
		return
	}
	u.parts = append(u.parts, &uiPart{kind: "raw", id: id, raw: e.raw})
}

// find returns the newest part of that kind and id that has not ended, or nil.
func (u *uiStream) find(kind, id string) *uiPart {
	for _, p := range slices.Backward(u.parts) {
		if p.kind == kind && p.id == id && p.state != "done" {
			return p
		}
	}
	return nil
}

func (u *uiStream) toolChunk(e entry, kind string) error {
	if e.text("toolCallId") == "" {
		return errors.New("a chunk of a tool call without its id")
	}
	p := u.find("tool", e.text("toolCallId"))
	if p == nil {
		p = &uiPart{kind: "tool", id: e.text("toolCallId"), tool: object{"toolCallId": e.object["toolCallId"]}}
		u.parts = append(u.parts, p)
	}
	p.learn(e.object)
	switch kind {
	case "tool-input-start":
		p.state, p.text = "input-streaming", []byte(`""`)
	case "tool-input-delta":
		p.text = concat(p.text, e.object["inputTextDelta"])
	case "tool-input-available":
		p.state = "input-available"
	case "tool-approval-request":
		p.state, p.tool["approval"] = "approval-requested", fill(`{"id":%}`, inString(e.object["approvalId"]))
	case "tool-output-available":
		p.state = "output-available"
	case "tool-input-error", "tool-output-error":
		p.state = "output-error"
	case "tool-output-denied":
		p.state = "output-denied"
	default:
		return skipped(kind)
	}
	if e.has("providerMetadata") {
		p.metadata = e.object["providerMetadata"]
	}
	return nil
}

// end writes the message that the chunks so far make.
func (u *uiStream) end() {
	if len(u.parts) > 0 {
		id := or(u.id, quote("message-"+strconv.Itoa(len(u.slots)+1)))
		parts := make([][]byte, len(u.parts))
		for i, p := range u.parts {
			parts[i] = p.body()
		}
		u.line = u.begin
		u.add(fill(`{"id":%,"role":"assistant"%,"parts":%}`, id, member("metadata", u.metadata), list(parts)))
	}
	*u = uiStream{draft: u.draft}
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
