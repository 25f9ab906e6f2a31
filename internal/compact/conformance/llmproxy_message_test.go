package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// proxyMessage is a message as it came.
type proxyMessage map[string]any

// proxyCall is a tool's name and its arguments, of any type.
type proxyCall struct {
	tool      string
	arguments any
}

// calls returns the calls that have an id and a name, by id; of several with one id it returns the last.
func (p *proxy) calls() map[string]proxyCall {
	calls := map[string]proxyCall{}
	for _, m := range p.Messages {
		list, _ := m["tool_calls"].([]any)
		for _, element := range list {
			call, _ := element.(map[string]any)
			function, _ := call["function"].(map[string]any)
			id, tool, arguments := proxyMessage(call).text("id"), proxyMessage(function).text("name"), proxyMessage(function).text("arguments")
			if m.text("role") == "assistant" && id != "" && tool != "" {
				calls[id] = proxyCall{tool, cmp.Or(arguments, "{}")}
			}
		}
	}
	return calls
}

func (m proxyMessage) text(field string) string {
	text, _ := m[field].(string)
	return text
}

func (m proxyMessage) isResult() bool { return m.text("role") == "tool" && m["tool_call_id"] != nil }

func (m proxyMessage) metadata() map[string]any {
	metadata, _ := m["metadata"].(map[string]any)
	return metadata
}

// tool returns the name that the message itself gives.
func (m proxyMessage) tool() string {
	if name := m.text("name"); name != "" {
		return name
	}
	if name, ok := m.metadata()["tool_name"]; ok {
		return pythonText(name)
	}
	return ""
}

// content returns the text of a message, or of several parts, one a line.
func (m proxyMessage) content() string {
	parts, _ := m["content"].([]any)
	var texts []string
	for _, element := range parts {
		if part, _ := element.(map[string]any); proxyMessage(part).text("type") == "text" {
			texts = append(texts, proxyMessage(part).text("text"))
		}
	}
	if texts != nil {
		return strings.Join(texts, "\n")
	}
	return m.text("content")
}

// stubbed keeps role, name and id of a message, and says in its metadata what happened.
func (m proxyMessage) stubbed(stub string, bytes int) proxyMessage {
	metadata := maps.Clone(m.metadata())
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["_compacted"], metadata["_original_bytes"] = true, bytes
	return proxyMessage{"role": m["role"], "content": stub, "name": m["name"], "tool_call_id": m["tool_call_id"], "metadata": metadata}
}

// shown returns the message without members that are null, and with the type that calls have by default.
func (m proxyMessage) shown() proxyMessage {
	shown := proxyMessage{}
	for field, value := range m {
		if value != nil {
			shown[field] = value
		}
	}
	if calls, ok := m["tool_calls"].([]any); ok {
		typed := []any{}
		for _, call := range calls {
			call := maps.Clone(call.(map[string]any))
			if call["type"] == nil {
				call["type"] = "function"
			}
			typed = append(typed, call)
		}
		shown["tool_calls"] = typed
	}
	return shown
}

// truthy reports whether Python takes a value for true.
func truthy(value any) bool {
	switch value := value.(type) {
	case nil:
		return false
	case bool:
		return value
	case string:
		return value != ""
	case json.Number:
		number, err := value.Float64()
		return err != nil || number != 0
	case []any:
		return len(value) > 0
	case map[string]any:
		return len(value) > 0
	}
	return true
}

// pythonText writes a scalar as Python's str does.
func pythonText(value any) string {
	switch value := value.(type) {
	case nil:
		return "None"
	case bool:
		return map[bool]string{true: "True", false: "False"}[value]
	}
	return fmt.Sprint(value)
}

// pythonType names the type of a JSON value that is neither null, a string nor an object.
func pythonType(value any) string {
	switch value := value.(type) {
	case bool:
		return "bool"
	case json.Number:
		if strings.ContainsAny(value.String(), ".eE") {
			return "float"
		}
		return "int"
	}
	return "list"
}
