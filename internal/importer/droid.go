package importer

import (
	"github.com/varve-dev/varve/internal/session"
)

// Droid is Factory's Droid: its sessions, and what it prints as a stream of JSON. Both are JSON lines.
const Droid Source = "droid"

// A session's messages are Anthropic's. A printed stream has texts, calls and results on separate lines, which become
// Anthropic's blocks; its end repeats the last text, and is read where no message has it.
var droid = source{
	name:  Droid,
	title: "Droid's sessions",
	detect: func(s sample) bool {
		return s.object.text("type") == "session_start" && s.object.has("id") || droidPrints(s.object)
	},
	read: readDroid,
}

// droidPrints recognises a line of a printed stream.
func droidPrints(o object) bool {
	switch o.text("type") {
	case "message":
		return o.has("role") && o.has("text") && o.has("sessionId")
	case "tool_call":
		return o.has("toolName") && o.has("parameters")
	}
	return false
}

func readDroid(f *File, id string, data []byte) error {
	d := &droidLog{chain: &chain{}}
	f.each(f.entries(data), d.record)
	f.add(id, session.Anthropic, d.chain.messages())
	return nil
}

// droidLog is a file being read.
type droidLog struct {
	chain *chain
	last  string // the model's last text, as a literal
}

func (d *droidLog) record(e entry) error {
	switch kind := e.text("type"); kind {
	case "":
		return errNoType
	case "message":
		return d.message(e)
	case "tool_call":
		raw := fill(
			`{"type":"tool_use","id":%,"name":%,"input":%}`, inString(e.object["id"]), inString(e.object["toolName"]),
			orEmpty(e.object["parameters"]),
		)
		d.chain.assistant(e.line, e.text("messageId"), content{blocks: []block{{raw: raw, calls: e.text("id")}}})
	case "tool_result":
		failed := []byte("false")
		if e.is("isError") {
			failed = []byte("true")
		}
		raw := fill(
			`{"type":"tool_result","tool_use_id":%,"content":%,"is_error":%}`, inString(e.object["id"]),
			inString(e.object["value"]), failed,
		)
		d.chain.user(e.line, content{blocks: []block{{raw: raw, answer: e.text("id")}}})
	case "completion":
		text := said(e.object["finalText"])
		if text == nil || string(text) == d.last {
			return skipped(kind)
		}
		d.chain.assistant(e.line, "", content{text: text})
	default:
		return skipped(kind)
	}
	return nil
}

func (d *droidLog) message(e entry) error {
	m := parseObject(e.object["message"])
	role, raw := m.text("role"), m["content"]
	if m == nil { // printed
		role, raw = e.text("role"), e.object["text"]
	}
	c, ok := parseContent(raw)
	switch {
	case role == "":
		return errNoRole
	case !ok:
		return errNoContent
	case role == "assistant":
		d.last = string(raw)
		id := ""
		if m == nil {
			id = e.text("id")
		}
		d.chain.assistant(e.line, id, c)
	default:
		d.chain.user(e.line, c)
	}
	return nil
}
