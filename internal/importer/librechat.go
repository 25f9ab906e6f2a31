package importer

import (
	"slices"
	"strings"
)

// An export is one conversation, whose messages are a list or have those behind them in them (recursive). Where several
// follow one, the interface shows the last.
//
//   - A message of an agent has its texts, thoughts and calls in order; a call has its output.
//   - Files are not in the export.
var libreChat = source{
	name:   LibreChat,
	title:  "LibreChat's exports",
	detect: marked("conversationId endpoint messages[] exportAt|exportedAt|branches|recursive|options"),
	into:   OpenAIChat,
	tree:   &tree{id: "messageId", parent: "parentMessageId", spoke: func(o object) bool { return o.has("messageId") }},
	read:   readLibreChat,
	record: libreChatMessage,
}

func readLibreChat(f *File, id string, data []byte) error {
	for e := range f.records(data) {
		var entries []entry
		for child := range f.elements(parseArray(e.object["messages"])) {
			entries = append(entries, libreChatBelow(f, child)...)
		}
		for i := range entries {
			entries[i].line = i + 1
		}
		d := f.newDraft(e.object)
		if prompt := nonEmpty(e.first("options.promptPrefix", "options.instructions")); prompt != nil {
			d.line = 1
			d.add(message("system", prompt))
		}
		d.records(slices.Values(f.branch(entries, "")))
		d.finish(id)
	}
	return nil
}

// libreChatBelow returns a message and all that are in it, each behind the one that has it.
func libreChatBelow(f *File, e entry) []entry {
	all := []entry{e}
	for child := range f.elements(parseArray(e.object["children"])) {
		all = append(all, libreChatBelow(f, child)...)
	}
	return all
}

func libreChatMessage(d *draft, e entry) error {
	d.at = moment(e.object["createdAt"])
	m := &chatMessage{role: "assistant"}
	if e.is("isCreatedByUser") {
		m.role = "user"
	}
	for file := range objects(e.object["files"]) {
		m.addText(d.absentFile(file.text("filename")))
	}
	parts := parseArray(e.object["content"])
	if len(parts) == 0 {
		m.addTexts(e.object["text"])
		return d.addChat(m)
	}
	before := len(d.slots)
	for _, raw := range parts {
		o := parseObject(raw)
		switch kind := o.text("type"); kind {
		case "text":
			m.addTexts(o.first("text.value", "text"))
		case "think":
			m.think(o.first("think.value", "think"))
		case "tool_call":
			m = d.addAnswered(m, parseObject(o["tool_call"]))
		default:
			d.leavePart(kind)
		}
	}
	if m.body() == nil && len(d.slots) > before {
		return nil
	}
	return d.addChat(m)
}

// addAnswered adds a message that ends with a call, and the call's output. It returns an empty message for what
// follows.
func (d *draft) addAnswered(m *chatMessage, call object) *chatMessage {
	id := or(nonEmpty(call["id"]), string(quote("call-"+strings.TrimSpace(call.text("name")))))
	m.addCall(id, call["name"], call["args"])
	d.add(m.body())
	if has(call["output"]) {
		d.add(resultMessage(id, inString(call["output"])))
	}
	return &chatMessage{role: m.role}
}
