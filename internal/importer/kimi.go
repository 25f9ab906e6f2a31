package importer

import "strings"

// The log has messages of the user, and the model's texts and calls in pieces that belong to a step. They become OpenAI
// Chat's messages: one for each step, then the results of its calls.
//
//   - turn.prompt repeats the user's message; requests, usage, permissions and snapshots are not for the model.
//   - The system prompt is the first one: it is written again when the configuration changes.
//   - A compaction does not cut the log.
var kimi = source{
	name:     Kimi,
	title:    "Kimi Code's logs",
	detect:   func(s sample) bool { return strings.HasPrefix(s.object.text("type"), "context.append_") },
	into:     OpenAIChat,
	required: "type",
	open: func(d *draft) reader {
		return func(e entry) ([][]byte, error) { return kimiRecord(d, e) }
	},
}

// kimiRecord returns the message of a record, or adds what it has of a step.
func kimiRecord(d *draft, e entry) ([][]byte, error) {
	switch kind := e.text("type"); kind {
	case "config.update", "profile.bind":
		prompt := nonEmpty(e.object["systemPrompt"])
		if prompt == nil || !d.first([]byte("prompt")) {
			return nil, skipped(kind)
		}
		return [][]byte{message("system", prompt)}, nil
	case "context.append_message":
		return kimiMessage(parseObject(e.object["message"]))
	case "context.append_loop_event":
		return kimiEvent(d, parseObject(e.object["event"]))
	default:
		return nil, skipped(kind)
	}
}

func kimiMessage(o object) ([][]byte, error) {
	m := chatMessage{role: o.text("role"), content: nonEmpty(o["content"])}
	if m.role == "" {
		return nil, errNoRole
	}
	if blocks := parseArray(o["content"]); blocks != nil {
		m.content = blocksOrText(blocks)
	}
	m.addCalls(o["toolCalls"], "id", "name", "args")
	return m.bodies()
}

// kimiEvent returns a result, or adds a text or a call to its step.
func kimiEvent(d *draft, o object) ([][]byte, error) {
	switch kind := o.text("type"); kind {
	case "content.part":
		return nil, addKimiPart(d, o.text("stepUuid"), parseObject(o["part"]))
	case "tool.call":
		m := d.open(o.text("stepUuid"))
		m.calls = append(m.calls, chatCall(o["toolCallId"], o["name"], o["args"]))
		return nil, nil
	case "tool.result":
		return [][]byte{chatResult(o["toolCallId"], parseObject(o["result"])["output"])}, nil
	default:
		return nil, skipped(kind)
	}
}

func addKimiPart(d *draft, step string, part object) error {
	switch kind := part.text("type"); kind {
	case "text":
		m := d.open(step)
		m.content = concat(m.content, part["text"])
	case "think":
		m := d.open(step)
		m.reasoning = concat(m.reasoning, part["think"])
	default:
		return skipped("part of type " + kind)
	}
	return nil
}
