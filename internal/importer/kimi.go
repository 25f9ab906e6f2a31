package importer

import (
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// Kimi is Kimi Code's context logs: JSON lines.
const Kimi Source = "kimi"

// The log has messages of the user, and the model's texts and calls in pieces that belong to a step. They become Chat
// Completions' messages: one for each step, then the results of its calls.
//
//   - turn.prompt repeats the user's message; requests, usage, permissions and snapshots are not for the model.
//   - The system prompt is the first one: it is written again when the configuration changes.
//   - A compaction does not cut the log.
var kimi = source{
	name:   Kimi,
	title:  "Kimi Code's logs",
	detect: func(s sample) bool { return strings.HasPrefix(s.object.text("type"), "context.append_") },
	read:   readKimi,
}

func readKimi(f *File, id string, data []byte) error {
	k := &kimiLog{chatSlots: newChatSlots()}
	f.each(f.entries(data), k.record)
	f.add(id, session.OpenAIChat, k.messages())
	return nil
}

// kimiLog is a log being read. Its messages in pieces are steps.
type kimiLog struct {
	chatSlots
	prompted bool
}

func (k *kimiLog) record(e entry) error {
	switch kind := e.text("type"); kind {
	case "":
		return errNoType
	case "config.update", "profile.bind":
		prompt := said(e.object["systemPrompt"])
		if k.prompted || prompt == nil {
			return skipped(kind)
		}
		k.prompted = true
		k.add(e.line, message("system", prompt))
		return nil
	case "context.append_message":
		return k.message(e, parseObject(e.object["message"]))
	case "context.append_loop_event":
		return k.event(e, parseObject(e.object["event"]))
	default:
		return skipped(kind)
	}
}

func (k *kimiLog) message(e entry, o object) error {
	if o.text("role") == "" {
		return errNoRole
	}
	m := chatMessage{role: o.text("role"), content: said(o["content"])}
	if blocks := parseArray(o["content"]); blocks != nil {
		m.content = blocksOrText(blocks)
	}
	m.addCalls(o["toolCalls"], "id", "name", "args")
	body, ok := m.body()
	if !ok {
		return skipped(m.role + " without content")
	}
	k.add(e.line, body)
	return nil
}

func (k *kimiLog) event(e entry, o object) error {
	kind := o.text("type")
	switch kind {
	case "content.part":
		return k.part(e, o)
	case "tool.call":
		m := k.open(o.text("stepUuid"), e.line)
		m.calls = append(m.calls, chatCall(o["toolCallId"], o["name"], o["args"]))
		return nil
	case "tool.result":
		k.add(e.line, chatResult(o["toolCallId"], parseObject(o["result"])["output"]))
		return nil
	}
	return skipped(kind)
}

func (k *kimiLog) part(e entry, o object) error {
	switch part := parseObject(o["part"]); part.text("type") {
	case "text":
		m := k.open(o.text("stepUuid"), e.line)
		m.content = concat(m.content, part["text"])
	case "think":
		m := k.open(o.text("stepUuid"), e.line)
		m.reasoning = concat(m.reasoning, part["think"])
	default:
		return skipped("part of type " + part.text("type"))
	}
	return nil
}
