package importer

// A session's messages are Anthropic's. A printed stream has texts, calls and results on separate lines, which become
// Anthropic's blocks; its end repeats the last text, and is read where no message has it.
var droid = source{
	name:   Droid,
	title:  "Droid's sessions",
	detect: marked("type=session_start id", "type=message role text sessionId", "type=tool_call toolName parameters"),
	into:   Anthropic,
	tree:   &tree{id: "id", parent: "parentId", spoke: func(o object) bool { return o.fits("type=message parentId") }},
	open: func(*draft) record {
		log := &droidLog{}
		return byType(map[string]record{
			"message":     log.message,
			"tool_call":   droidCall,
			"tool_result": droidResult,
			"completion":  log.completion,
		})
	},
}

// droidLog is a file being read.
type droidLog struct {
	last string // the model's last text, as a literal
}

// message adds a message of a session, or a text of a printed stream, which has no message around it.
func (l *droidLog) message(d *draft, e entry) error {
	m, id := parseObject(e.object["message"]), ""
	if m == nil {
		m, id = object{"role": e.object["role"], "content": e.object["text"]}, e.text("id")
	}
	role := m.text("role")
	if role == "" {
		return errNoRole
	}
	content, err := parseContent(m["content"])
	if err != nil {
		return err
	}
	if role == "assistant" {
		l.last = string(m["content"])
	}
	d.addTurn(role, id, content...)
	return nil
}

func droidCall(d *draft, e entry) error {
	call := toolUse(e.object["id"], e.object["toolName"], e.object["parameters"])
	d.addTurn("assistant", e.text("messageId"), call)
	return nil
}

func droidResult(d *draft, e entry) error {
	d.addTurn("user", "", toolResult(e.object["id"], inString(e.object["value"]), boolean(e.is("isError"))))
	return nil
}

func (l *droidLog) completion(d *draft, e entry) error {
	text := nonEmpty(e.object["finalText"])
	if text == nil || string(text) == l.last {
		return skipped("completion")
	}
	d.addTurn("assistant", "", text)
	return nil
}
