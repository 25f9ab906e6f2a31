package importer

// A session's messages are Anthropic's. A printed stream has texts, calls and results on separate lines, which become
// Anthropic's blocks; its end repeats the last text, and is read where no message has it.
var droid = source{
	name:  Droid,
	title: "Droid's sessions",
	detect: marked(
		"type=session_start id", "type=message role text sessionId", "type=tool_call toolName parameters",
	),
	into:     Anthropic,
	required: "type",
	open:     func(d *draft) reader { return adding((&droidLog{draft: d}).record) },
}

// droidLog is a file being read.
type droidLog struct {
	*draft
	last string // the model's last text, as a literal
}

func (d *droidLog) record(e entry) error {
	id := e.object["id"]
	switch kind := e.text("type"); kind {
	case "message":
		return d.message(e)
	case "tool_call":
		d.assistant(e.text("messageId"), contentOf(toolUse(id, e.object["toolName"], e.object["parameters"])))
	case "tool_result":
		d.user(contentOf(toolResult(id, inString(e.object["value"]), boolean(e.is("isError")))))
	case "completion":
		text := nonEmpty(e.object["finalText"])
		if text == nil || string(text) == d.last {
			return skipped(kind)
		}
		d.assistant("", content{{raw: text, text: true}})
	default:
		return skipped(kind)
	}
	return nil
}

// message adds a message of a session, or a text of a printed stream, which has no message around it.
func (d *droidLog) message(e entry) error {
	m := parseObject(e.object["message"])
	role, raw := m.text("role"), m["content"]
	id := ""
	if m == nil {
		role, raw = e.text("role"), e.object["text"]
		id = e.text("id")
	}
	if role == "" {
		return errNoRole
	}
	c, err := parseContent(raw, asIs)
	if err != nil {
		return err
	}
	if role == "assistant" {
		d.last = string(raw)
	}
	d.addTurn(role, id, c)
	return nil
}
