package importer

import "strings"

// Only messages and the ends of executions are conversation; they become OpenAI Chat's messages. A user's message is
// read as the model got it. What a subagent writes is another conversation for each call that began one.
var copilot = source{
	name:   Copilot,
	title:  "Copilot CLI's sessions",
	detect: marked("data type=session.start|user.message|assistant.message|tool.execution_complete"),
	into:   OpenAIChat,
	infix:  "-agent-",
	record: byType(map[string]record{
		"user.message":            copilotMessage,
		"system.message":          copilotMessage,
		"assistant.message":       copilotMessage,
		"tool.execution_complete": copilotResult,
	}),
}

func copilotMessage(d *draft, e entry) error {
	data := parseObject(e.object["data"])
	d.branch = data.text("parentToolCallId")
	role, _, _ := strings.Cut(e.text("type"), ".")
	m := chatMessage{role: role, content: nonEmpty(data["content"])}
	if role == "assistant" {
		m.reasoning = nonEmpty(data["reasoningText"])
		m.addCalls(data["toolRequests"], "toolCallId", "name", "arguments")
	} else {
		m.content = or(nonEmpty(data["transformedContent"]), m.content)
	}
	return d.addChat(&m)
}

// copilotResult adds what a tool returned, or why it failed.
func copilotResult(d *draft, e entry) error {
	d.branch = e.text("data.parentToolCallId")
	result := e.first("data.result.content", "data.error.message", "data.error")
	d.add(chatResult(e.at("data.toolCallId"), result))
	return nil
}
