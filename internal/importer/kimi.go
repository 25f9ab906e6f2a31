package importer

import "strings"

// The log has messages of the user, and the model's texts and calls in pieces that belong to a step. They become OpenAI
// Chat's messages: one for each step, then the results of its calls.
//
//   - turn.prompt repeats the user's message; requests, usage, permissions and snapshots are not for the model.
//   - The system prompt is the first one: it is written again when the configuration changes.
//   - A compaction does not cut the log.
var kimi = source{
	name:   Kimi,
	title:  "Kimi Code's logs",
	detect: func(s sample) bool { return strings.HasPrefix(s.object.text("type"), "context.append_") },
	into:   OpenAIChat,
	record: byType(map[string]record{
		"config.update":             kimiPrompt,
		"profile.bind":              kimiPrompt,
		"context.append_message":    kimiMessage,
		"context.append_loop_event": kimiEvent,
	}),
}

func kimiPrompt(d *draft, e entry) error {
	prompt := nonEmpty(e.object["systemPrompt"])
	if prompt == nil || !d.first([]byte("prompt")) {
		return skipped(e.text("type"))
	}
	d.add(message("system", prompt))
	return nil
}

func kimiMessage(d *draft, e entry) error {
	o := parseObject(e.object["message"])
	m := chatMessage{role: o.text("role"), content: nonEmpty(o["content"]), blocks: parseArray(o["content"])}
	m.addCalls(o["toolCalls"], "id", "name", "args")
	return d.addChat(&m)
}

// kimiEvent adds a result, or a text or a call to its step.
func kimiEvent(d *draft, e entry) error {
	o := parseObject(e.object["event"])
	step, kind := o.text("stepUuid"), o.text("type")
	part := o.text("part.type")
	switch {
	case kind == "tool.result":
		d.add(chatResult(o["toolCallId"], o.at("result.output")))
	case kind == "tool.call":
		d.open(step).addCall(o["toolCallId"], o["name"], o["args"])
	case kind != "content.part":
		return skipped(kind)
	case part == "text":
		m := d.open(step)
		m.content = concat(m.content, o.at("part.text"))
	case part == "think":
		d.open(step).think(o.at("part.think"))
	default:
		return skipped("part of type " + part)
	}
	return nil
}
