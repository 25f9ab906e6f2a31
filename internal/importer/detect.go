package importer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
)

// UnsupportedError says that a file is nothing that can be imported, and what it seems to be.
type UnsupportedError struct{ Found string }

func (e *UnsupportedError) Error() string {
	return "this is " + e.Found + "; what can be imported is an array of OpenAI Chat or Anthropic messages (alone, or as \"messages\" of an object), and Claude Code's JSON lines"
}

// Detect looks at a file's content. An *UnsupportedError says what else it is.
func Detect(data []byte) (Source, error) {
	if json.Valid(data) {
		if o := parseObject(data); o != nil && claudeRecord(o) {
			return ClaudeCode, nil
		}
		return detectDocument(data)
	}
	return detectLines(data)
}

// detectLines decides by the first line that is surely Claude Code's or surely another's.
func detectLines(data []byte) (Source, error) {
	var first object
	weak, broken := false, 0
	for _, line := range lines(data) {
		found, err := values(line)
		if err != nil {
			broken++
			continue
		}
		o := parseObject(found[0])
		if o == nil {
			continue
		}
		if claudeRecord(o) {
			return ClaudeCode, nil
		}
		if name := foreign(o); name != "" {
			return "", &UnsupportedError{Found: name}
		}
		weak = weak || claudeTypes[o.text("type")]
		if first == nil {
			first = o
		}
	}
	switch {
	case weak:
		return ClaudeCode, nil
	case first != nil:
		return "", &UnsupportedError{Found: "a file of JSON lines with " + memberList(first)}
	case broken > 0:
		return "", &UnsupportedError{Found: fmt.Sprintf("not JSON (%v), nor lines of JSON", rawjson.Check(data, rawjson.Limits{}))}
	}
	return "", &UnsupportedError{Found: "an empty file"}
}

// claudeTypes are the records of Claude Code besides messages.
var claudeTypes = map[string]bool{"file-history-snapshot": true, "progress": true, "queue-operation": true, "summary": true, "pr-link": true}

// claudeRecord recognises a message of Claude Code: others use the same types, but not all of the members.
func claudeRecord(o object) bool {
	if kind := o.text("type"); kind != "user" && kind != "assistant" {
		return false
	}
	return (o.has("uuid") || o.has("sessionId")) && parseObject(o["message"]).has("content")
}

// detectDocument tells OpenAI Chat from Anthropic by the first thing that only one of them has. Messages that both
// could have sent are OpenAI Chat's.
func detectDocument(data []byte) (Source, error) {
	if name := foreign(parseObject(data)); name != "" {
		return "", &UnsupportedError{Found: name}
	}
	d, ok := parseDocument(data)
	if !ok {
		return "", &UnsupportedError{Found: describe(data)}
	}
	if d.system != nil {
		return Anthropic, nil
	}
	messages := 0
	for _, raw := range d.messages {
		o := parseObject(raw)
		if name := foreignMessage(o); name != "" {
			return "", &UnsupportedError{Found: name}
		}
		if found := signal(o); found != Auto {
			return found, nil
		}
		if o.text("role") != "" {
			messages++
		}
	}
	if messages == 0 {
		return "", &UnsupportedError{Found: describe(data)}
	}
	return OpenAIChat, nil
}

// signal says which format a message must be of, or Auto if it fits both.
func signal(o object) Source {
	switch o.text("role") {
	case "system", "developer", "tool", "function":
		return OpenAIChat
	}
	for _, name := range []string{"tool_calls", "tool_call_id", "function_call", "refusal", "reasoning_content"} {
		if o.has(name) {
			return OpenAIChat
		}
	}
	for _, raw := range parseArray(o["content"]) {
		switch parseObject(raw).text("type") {
		case "image_url", "input_audio", "file", "refusal":
			return OpenAIChat
		case "tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "server_tool_use", "container_upload", "compaction", "search_result":
			return Anthropic
		}
	}
	return Auto
}

// foreignMessage names the format of a list of messages that only look like one of ours, or "".
func foreignMessage(o object) string {
	switch {
	case o == nil:
		return ""
	case o.has("role") && !isString(o["role"]):
		return "a list of messages whose role is no string (Agent Framework writes such)"
	case o.has("contents"):
		return "a list of messages with \"contents\" (Agent Framework writes such)"
	case o.has("parts"):
		return "a list of messages with \"parts\" (Gemini and the AI SDK write such)"
	}
	for _, raw := range parseArray(o["tool_calls"]) {
		if call := parseObject(raw); !call.has("function") && !call.has("custom") {
			return "a list of messages whose tool calls are not OpenAI's (tau2-bench and Inspect write such)"
		}
	}
	return ""
}

// foreign names the format of a file by a document's or a line's members, or "".
func foreign(o object) string {
	kind := o.text("type")
	switch {
	case o == nil:
		return ""
	case o.has("payload") && slices.Contains([]string{"session_meta", "response_item", "event_msg", "turn_context", "compacted"}, kind):
		return "a Codex rollout"
	case o.has("projectHash"):
		return "a Gemini CLI session"
	case kind == "session":
		return "a pi session"
	case kind == "session.start":
		return "a Copilot CLI session"
	case kind == "session_start":
		return "a Droid session"
	case kind == "request" && o.has("request_params"):
		return "a log of requests to a model"
	case kind == "message" && o.text("role") == "assistant":
		return "one response of Anthropic's API, not a conversation"
	case o.text("object") == "response", kind == "" && o.has("input"):
		return "OpenAI Responses items"
	case o.has("contents"):
		return "a list of Gemini contents"
	case o.has("samples") && o.has("eval"):
		return "an Inspect log"
	case o.has("trajectory"):
		return "a SWE-agent trajectory"
	case o.has("traj"):
		return "a tau-bench run"
	case o.has("reward_info"):
		return "a tau2-bench run"
	case o.has("agent") && o.has("sessionId") && o.has("messages"):
		return "a Cline session"
	}
	if body := parseObject(parseObject(o["request"])["body"]); body != nil {
		return foreign(body)
	}
	return ""
}

// describe says what a document is that nothing is known of.
func describe(data []byte) string {
	if o := parseObject(data); o != nil {
		return "a JSON object with " + memberList(o)
	}
	if list := parseArray(data); len(list) > 0 {
		if o := parseObject(list[0]); o != nil {
			return "a JSON array of objects with " + memberList(o)
		}
		return "a JSON array whose elements are no messages"
	}
	return "a JSON value without messages"
}

func memberList(o object) string {
	names := slices.Sorted(maps.Keys(o))
	more := ""
	if len(names) > 6 {
		more = fmt.Sprintf(" and %d more", len(names)-6)
		names = names[:6]
	}
	if len(names) == 0 {
		return "no members"
	}
	return "the members " + strings.Join(names, ", ") + more
}
