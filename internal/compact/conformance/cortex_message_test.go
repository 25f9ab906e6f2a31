package conformance

import (
	"slices"
)

// cortexMessage is a message of the system: of the role toolResult, or with results among its parts.
type cortexMessage map[string]any

// parts returns the message's parts if its content is a list.
func (m cortexMessage) parts() []map[string]any {
	list, _ := m["content"].([]any)
	parts := make([]map[string]any, len(list))
	for i := range list {
		parts[i], _ = list[i].(map[string]any)
	}
	return parts
}

// text returns all text of the message, that of parts joined without anything between.
func (m cortexMessage) text() string {
	if content, ok := m["content"].(string); ok {
		return content
	}
	joined := ""
	for _, part := range m.parts() {
		content, _ := part["text"].(string)
		joined += content
	}
	return joined
}

func (m cortexMessage) isToolResult() bool {
	return m["role"] == "toolResult" || slices.ContainsFunc(m.parts(), func(part map[string]any) bool { return part["type"] == "tool_result" })
}

// toolName returns the message's own name, else the first that a part gives.
func (m cortexMessage) toolName() (string, bool) {
	if name, ok := m["toolName"].(string); ok {
		return name, true
	}
	for _, part := range m.parts() {
		if name, ok := part["name"].(string); ok && (part["type"] == "tool_use" || part["type"] == "tool_result") {
			return name, true
		}
	}
	return "", false
}
