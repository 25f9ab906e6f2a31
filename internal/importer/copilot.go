package importer

import "strings"

// Only messages and the ends of executions are conversation; they become OpenAI Chat's messages. A user's message is
// read as the model got it. What a subagent writes is another conversation for each call that began one.
var copilot = source{
	name:     Copilot,
	title:    "Copilot CLI's sessions",
	detect:   marked("data type=session.start|user.message|assistant.message|tool.execution_complete"),
	into:     OpenAIChat,
	required: "type",
	infix:    "-agent-",
	open: func(d *draft) reader {
		return func(e entry) ([][]byte, error) {
			data := parseObject(e.object["data"])
			d.branch = data.text("parentToolCallId")
			return copilotMessage(e.text("type"), data)
		}
	},
}

func copilotMessage(kind string, data object) ([][]byte, error) {
	m := chatMessage{content: nonEmpty(data["content"])}
	switch kind {
	case "user.message", "system.message":
		m.role, _, _ = strings.Cut(kind, ".")
		if sent := nonEmpty(data["transformedContent"]); sent != nil {
			m.content = sent
		}
	case "assistant.message":
		m.role, m.reasoning = "assistant", nonEmpty(data["reasoningText"])
		m.addCalls(data["toolRequests"], "toolCallId", "name", "arguments")
	case "tool.execution_complete":
		return [][]byte{chatResult(data["toolCallId"], copilotResult(data))}, nil
	default:
		return nil, skipped(kind)
	}
	return m.bodies()
}

// copilotResult returns what a tool returned, or why it failed.
func copilotResult(data object) []byte {
	if result := parseObject(data["result"]); result.has("content") {
		return result["content"]
	}
	if failure := parseObject(data["error"]); failure.has("message") {
		return failure["message"]
	}
	return data["error"]
}
