package importer

import (
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// Copilot is Copilot CLI's sessions: JSON lines.
const Copilot Source = "copilot"

// Only messages and the ends of executions are conversation; they become Chat Completions' messages. A user's message
// is read as the model got it. What a subagent says is another conversation for each call that began one.
var copilot = source{
	name:  Copilot,
	title: "Copilot CLI's sessions",
	detect: func(s sample) bool {
		return s.object.has("data") && copilotTypes[s.object.text("type")]
	},
	read: readCopilot,
}

var copilotTypes = set("session.start", "user.message", "assistant.message", "tool.execution_complete")

func readCopilot(f *File, id string, data []byte) error {
	var agents branches
	f.each(f.entries(data), func(e entry) error {
		body, err := copilotMessage(e)
		if err == nil {
			agents.add(parseObject(e.object["data"]).text("parentToolCallId"), Message{Body: body, Line: e.line})
		}
		return err
	})
	f.addBranches(id, session.OpenAIChat, agents, "", "-agent-")
	return nil
}

func copilotMessage(e entry) ([]byte, error) {
	data := parseObject(e.object["data"])
	m := chatMessage{content: said(data["content"])}
	switch kind := e.text("type"); kind {
	case "":
		return nil, errNoType
	case "user.message", "system.message":
		m.role, _, _ = strings.Cut(kind, ".")
		if sent := said(data["transformedContent"]); sent != nil {
			m.content = sent
		}
	case "assistant.message":
		m.role, m.reasoning = "assistant", said(data["reasoningText"])
		m.addCalls(data["toolRequests"], "toolCallId", "name", "arguments")
	case "tool.execution_complete":
		return chatResult(data["toolCallId"], copilotResult(data)), nil
	default:
		return nil, skipped(kind)
	}
	body, ok := m.body()
	if !ok {
		return nil, skipped(m.role + " without content")
	}
	return body, nil
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
