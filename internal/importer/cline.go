package importer

import "github.com/varve-dev/varve/internal/session"

// Cline is Cline's sessions.
const Cline Source = "cline"

// A session's messages are Anthropic's, but for two blocks: a file that the user attached, which becomes a document,
// and the content of a result where it is JSON of the tool's own, which becomes the text that it is.
var cline = source{
	name:  Cline,
	title: "Cline's sessions",
	detect: func(s sample) bool {
		return s.object.has("sessionId") && s.object.has("messages") &&
			(s.object.has("agent") || s.object.has("system_prompt"))
	},
	read: readCline,
}

func readCline(f *File, id string, data []byte) error {
	for run := range f.runs(data) {
		var messages []Message
		if prompt := said(run.object["system_prompt"]); prompt != nil {
			messages = append(messages, Message{Body: message("system", prompt), Line: 1})
		}
		messages = append(messages, f.convert(f.elements(f.list(run, "messages")), clineMessage)...)
		f.add(id, session.Anthropic, messages)
	}
	return nil
}

func clineMessage(e entry) ([][]byte, error) {
	role, content := e.text("role"), e.object["content"]
	blocks := parseArray(content)
	switch {
	case role == "":
		return nil, errNoRole
	case blocks != nil:
		for i, raw := range blocks {
			blocks[i] = clineBlock(raw)
		}
		content = list(blocks)
	case !isString(content):
		return nil, skipped(role + " without content")
	}
	return [][]byte{message(role, content)}, nil
}

func clineBlock(raw []byte) []byte {
	o := parseObject(raw)
	switch o.text("type") {
	case "file":
		return fill(
			`{"type":"document","source":{"type":"text","media_type":"text/plain","data":%},"title":%}`,
			inString(o["content"]), inString(o["path"]),
		)
	case "tool_use":
		return fill(
			`{"type":"tool_use","id":%,"name":%,"input":%}`, inString(o["id"]), inString(o["name"]),
			orEmpty(o["input"]),
		)
	case "tool_result":
		return clineResult(o)
	}
	return raw
}

// orEmpty returns a value, or an empty object for none.
func orEmpty(raw []byte) []byte {
	if !has(raw) {
		return []byte("{}")
	}
	return raw
}

func clineResult(o object) []byte {
	content := o["content"]
	if !allBlocks(parseArray(content)) {
		content = inString(content)
	}
	failed := []byte{}
	if o.is("is_error") {
		failed = []byte(`,"is_error":true`)
	}
	return fill(`{"type":"tool_result","tool_use_id":%,"content":%%}`, inString(o["tool_use_id"]), content, failed)
}

// allBlocks reports whether every element is a block as Anthropic's results have them.
func allBlocks(elements [][]byte) bool {
	for _, raw := range elements {
		switch parseObject(raw).text("type") {
		case "text", "image", "document", "search_result":
		default:
			return false
		}
	}
	return elements != nil
}
