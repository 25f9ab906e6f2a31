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
		u.addPart(d, &uiPart{raw: []byte(`{"type":"step-start"}`)})
	case strings.HasPrefix(kind, "text-"), strings.HasPrefix(kind, "reasoning-") && kind != "reasoning-file":
		u.prose(d, e, kind)
	case strings.HasPrefix(kind, "tool-"):
		return u.toolChunk(d, e, kind)
	case strings.HasPrefix(kind, "data-") && !e.is("transient"):
		u.data(d, e, kind)
	case kind == "file", kind == "source-url", kind == "source-document", kind == "reasoning-file":
		u.addPart(d, &uiPart{raw: e.raw})
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
	key := name + " " + e.text("id")
	p := m.find(key)
	if step == "start" || p == nil {
		p = &uiPart{key: key, members: object{"type": quote(name), "text": quote(""), "state": quote("streaming")}}
		m.addPart(d, p)
	}
	p.learn(e.object, "providerMetadata")
	switch step {
	case "delta":
		p.members["text"] = concat(p.members["text"], e.object["delta"])
	case "end":
		p.members["state"] = quote("done")
		p.key = ""
	}
}

// data adds a part of the application, or replaces the one of its id.
func (m *uiMessage) data(d *draft, e entry, kind string) {
	key := kind + " " + e.text("id")
	if p := m.find(key); p != nil && e.has("id") {
		p.raw = e.raw
		return
	}
	m.addPart(d, &uiPart{key: key, raw: e.raw})
}

// find returns the newest part of that key, or nil.
func (m *uiMessage) find(key string) *uiPart {
	for _, p := range slices.Backward(m.parts) {
		if p.key == key {
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
	key, state := "tool "+e.text("toolCallId"), uiToolStates[kind]
	switch {
	case e.text("toolCallId") == "":
		return errors.New("a chunk of a tool call without its id")
	case state == "":
		return skipped(kind)
	}
	p := m.find(key)
	if p == nil {
		p = &uiPart{key: key, members: object{"toolCallId": e.object["toolCallId"]}}
		m.addPart(d, p)
	}
	if kind != "tool-input-delta" || !p.members.has("state") {
		p.members["state"] = quote(state)
	}
	p.learn(e.object, "toolName", "title", "input", "output", "errorText", "providerExecuted", "dynamic")
	switch kind {
	case "tool-input-start":
		p.members["text"] = quote("")
	case "tool-input-delta":
		p.members["text"] = concat(p.members["text"], e.object["inputTextDelta"])
	case "tool-approval-request":
		p.members["approval"] = fill(`{"id":%}`, inString(e.object["approvalId"]))
	}
	if e.has("providerMetadata") {
		p.members["callProviderMetadata"] = e.object["providerMetadata"]
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

// uiPart is a part of the message: its members, or the whole part as it stands.
type uiPart struct {
	key     string // by which chunks find it: its kind and its id; "" when it has ended
	members object // of a call "text" is what its input's deltas make
	raw     []byte
}

// uiPartMembers are the members of parts in the order in which they are written.
var uiPartMembers = []string{
	"type", "toolName", "text", "toolCallId", "state", "providerMetadata", "title", "input", "output", "errorText",
	"providerExecuted", "approval", "callProviderMetadata",
}

// learn copies members from a chunk.
func (p *uiPart) learn(chunk object, names ...string) {
	for _, name := range names {
		if value, ok := chunk[name]; ok {
			p.members[name] = value
		}
	}
}

func (p *uiPart) body() []byte {
	if p.raw != nil {
		return p.raw
	}
	if p.members.has("toolCallId") {
		p.call()
	}
	var members [][]byte
	for _, name := range uiPartMembers {
		if value := p.members[name]; value != nil {
			members = append(members, fill("%:%", quote(name), value))
		}
	}
	return inBraces(members)
}

// call completes the members of a call. Its input is a value, or the text of its deltas, which is kept as a text if
// they were cut. A result that was not written is null if the state requires one.
func (p *uiPart) call() {
	o := p.members
	name, text := o["toolName"], o["text"]
	delete(o, "toolName")
	delete(o, "text")
	o["type"] = concat(quote("tool-"), name)
	if o.is("dynamic") {
		o["type"], o["toolName"] = quote("dynamic-tool"), inString(name)
	}
	if o["input"] == nil && text != nil {
		o["input"] = text
		if value, ok := rawjson.Unquote(nil, text); ok && json.Valid(value) {
			o["input"] = value
		}
	}
	if o.text("state") == "output-available" && !o.has("output") {
		o["output"] = []byte("null")
	}
}
