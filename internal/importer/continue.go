package importer

import "strings"

// A session (~/.continue/sessions) has its history: messages of OpenAI Chat with other names, and beside each what was
// given to the model with it (contextItems), and what came of its calls (toolCallStates).
var continueDev = source{
	name:   Continue,
	title:  "Continue's sessions",
	detect: marked("sessionId history.0.message.role", "history.0.message.role history.0.contextItems[]"),
	into:   OpenAIChat,
	runs:   layout{lists: []string{"history"}},
	open:   func(*draft) record { return (&continueLog{}).message },
}

// continueLog is a session being read.
type continueLog struct{ thought []byte } // of a message that only thinks

func (l *continueLog) message(d *draft, e entry) error {
	o := parseObject(e.object["message"])
	role := o.text("role")
	m := &chatMessage{role: role}
	for item := range objects(e.object["contextItems"]) {
		if role == "user" {
			m.addTexts(item["content"])
		}
	}
	continueContent(d, m, o["content"])
	switch role {
	case "":
		return errNoRole
	case "thinking":
		l.thought = concat(l.thought, concat(texts(m.blocks)...))
		return nil
	case "tool":
		d.add(resultMessage(o["toolCallId"], or(d.resultTexts(m.blocks), `""`)))
		return nil
	case "assistant":
		m.think(l.thought, e.at("reasoning.text"))
		l.thought = nil
		for call := range objects(o["toolCalls"]) {
			m.addCall(call["id"], call.at("function.name"), call.at("function.arguments"))
		}
	}
	if err := d.addChat(m); err != nil {
		return err
	}
	states := parseArray(e.object["toolCallStates"])
	if states == nil && has(e.object["toolCallState"]) {
		states = [][]byte{e.object["toolCallState"]}
	}
	for _, raw := range states {
		continueResult(d, parseObject(raw))
	}
	return nil
}

// continueResult adds what a call returned, if the history has it.
func continueResult(d *draft, state object) {
	var said []string
	for item := range objects(state["output"]) {
		said = append(said, item.text("content"))
	}
	if said != nil {
		d.add(resultMessage(state.first("toolCallId", "toolCall.id"), quote(strings.Join(said, "\n\n"))))
	}
}

// continueContent adds a content: a text, or parts.
func continueContent(d *draft, m *chatMessage, content []byte) {
	if isString(content) {
		m.addTexts(content)
		return
	}
	for part := range objects(content) {
		switch kind := part.text("type"); kind {
		case "text":
			m.addTexts(part["text"])
		case "imageUrl":
			m.addImages(part.at("imageUrl.url"))
		default:
			d.leavePart(kind)
		}
	}
}
