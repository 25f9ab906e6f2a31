package importer

import (
	"cmp"
	"strings"
)

// Its messages have a role, which may be an object, and contents of a type each. They become OpenAI Chat's, with a
// message for each result.
var agentFramework = source{
	name:   AgentFramework,
	title:  "Agent Framework's messages",
	detect: marked("0.contents 0.role", "messages.0.contents messages.0.role", "chat_message_store_state.messages[]"),
	into:   OpenAIChat,
	runs:   layout{lists: []string{"chat_message_store_state.messages", "messages"}, bare: true},
	record: frameworkMessage,
}

func frameworkMessage(d *draft, e entry) error {
	m := chatMessage{role: cmp.Or(e.text("role"), e.text("role.value"))}
	if m.role == "" {
		return errNoRole
	}
	var results [][]byte
	for o := range objects(e.object["contents"]) {
		id := o.first("call_id", "callId")
		kind := o.text("type") + o.text("$type") // Python's and .NET's messages name it differently
		if (kind == "data" || kind == "uri") && isImage(o) {
			kind = "image"
		}
		switch kind {
		case "text":
			m.addText(o["text"])
		case "text_reasoning", "reasoning":
			m.think(o["text"])
		case "function_call", "functionCall":
			m.addCall(id, o["name"], o["arguments"])
		case "function_result", "functionResult":
			results = append(results, chatResult(id, o.first("result", "exception")))
		case "image":
			m.addImages(o["uri"])
		case "usage":
		default:
			d.leavePart(kind)
		}
	}
	err := d.addChat(&m)
	if results == nil {
		return err
	}
	d.add(results...)
	return nil
}

// isImage reports whether data or a URL is an image.
func isImage(o object) bool {
	return isString(o["uri"]) && strings.HasPrefix(o.text("media_type")+o.text("mediaType"), "image/")
}
