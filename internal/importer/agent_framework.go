package importer

import (
	"cmp"
	"strings"
)

// Its messages have a role, which may be an object, and contents of a type each. They become OpenAI Chat's, with a
// message for each result.
var agentFramework = source{
	name:  AgentFramework,
	title: "Agent Framework's messages",
	detect: func(s sample) bool {
		return s.first.has("contents") && s.first.has("role") || frameworkThread(s.object) != nil
	},
	into: OpenAIChat,
	runs: &layout{bare: func(o object) bool { return o.has("contents") }, list: frameworkMessages},
	open: func(d *draft) reader {
		return func(e entry) ([][]byte, error) { return frameworkMessage(d.file, e) }
	},
}

func frameworkThread(o object) [][]byte {
	return parseArray(parseObject(o["chat_message_store_state"])["messages"])
}

// frameworkMessages returns the messages of a thread or of a run.
// frameworkMessages returns the messages of a thread or of a run.
func frameworkMessages(f *File, run entry) [][]byte {
	if messages := frameworkThread(run.object); messages != nil {
		return messages
	}
	return f.list(run, "messages")
}

func frameworkMessage(f *File, e entry) ([][]byte, error) {
	m := chatMessage{role: cmp.Or(e.text("role"), parseObject(e.object["role"]).text("value"))}
	if m.role == "" {
		return nil, errNoRole
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
			m.calls = append(m.calls, chatCall(id, o["name"], o["arguments"]))
		case "function_result", "functionResult":
			results = append(results, chatResult(id, o.first("result", "exception")))
		case "image":
			m.addImages(o["uri"])
		case "usage":
		default:
			f.note(e.line, "content of type %q was left out", kind)
		}
	}
	bodies, err := m.bodies()
	if results != nil {
		return append(bodies, results...), nil
	}
	return bodies, err
}

// isImage reports whether data or a URL is an image.
func isImage(o object) bool {
	return isString(o["uri"]) && strings.HasPrefix(o.text("media_type")+o.text("mediaType"), "image/")
}
