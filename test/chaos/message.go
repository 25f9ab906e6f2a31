package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/varve-dev/varve/test/harness"
)

// The formats of sessions.
const (
	chat      = "openai-chat"
	anthropic = "anthropic"
)

// object is a JSON object.
type object = map[string]any

// turn returns the messages of a whole turn: a question, at most two calls with their results, and an answer. Every
// text names the append, so that no two appends have the same bytes.
func turn(format, id string, random *rand.Rand) []json.RawMessage {
	calls := random.IntN(3)
	results := make([]string, calls)
	for i := range results {
		results[i] = fmt.Sprintf("%s result %d\n%s", id, i, words(random, 200+random.IntN(1200)))
	}
	question := fmt.Sprintf("[%s] %s?", id, words(random, 5+random.IntN(40)))
	answer := fmt.Sprintf("[%s] %s.", id, words(random, 10+random.IntN(80)))
	if format == anthropic {
		return anthropicTurn(id, question, answer, results)
	}
	return chatTurn(id, question, answer, results)
}

func chatTurn(id, question, answer string, results []string) []json.RawMessage {
	messages := []any{object{"role": "user", "content": question}}
	if len(results) > 0 {
		calls := make([]any, len(results))
		for i := range results {
			calls[i] = object{"id": callID(id, i), "type": "function", "function": object{
				"name": "Read", "arguments": fmt.Sprintf(`{"path":"/src/%s/%d.go"}`, id, i),
			}}
		}
		messages = append(messages, object{"role": "assistant", "content": nil, "tool_calls": calls})
	}
	for i, result := range results {
		messages = append(messages, object{"role": "tool", "tool_call_id": callID(id, i), "content": result})
	}
	return encoded(append(messages, object{"role": "assistant", "content": answer}))
}

func anthropicTurn(id, question, answer string, results []string) []json.RawMessage {
	messages := []any{object{"role": "user", "content": question}}
	if len(results) > 0 {
		calls, answers := make([]any, len(results)), make([]any, len(results))
		for i, result := range results {
			calls[i] = object{"type": "tool_use", "id": callID(id, i), "name": "Read",
				"input": object{"path": fmt.Sprintf("/src/%s/%d.go", id, i)}}
			answers[i] = object{"type": "tool_result", "tool_use_id": callID(id, i), "content": result}
		}
		messages = append(messages, object{"role": "assistant", "content": calls},
			object{"role": "user", "content": answers})
	}
	return encoded(append(messages, object{"role": "assistant", "content": answer}))
}

func callID(id string, i int) string {
	return fmt.Sprintf("call_%s_%d", strings.ReplaceAll(id, "-", "_"), i)
}

func encoded(messages []any) []json.RawMessage {
	out := make([]json.RawMessage, len(messages))
	for i, m := range messages {
		out[i], _ = json.Marshal(m) // of maps and texts
	}
	return out
}

func words(random *rand.Rand, n int) string {
	var text strings.Builder
	for i := range n {
		if i > 0 {
			text.WriteByte(" \n"[i%12/11])
		}
		text.WriteString(harness.Word(random))
	}
	return text.String()
}

// texts returns every text in a message, and the arguments of calls as JSON: what a ref may stand for.
func texts(message json.RawMessage) (found []string) {
	var decoded any
	if json.Unmarshal(message, &decoded) != nil {
		return nil
	}
	collect(decoded, &found)
	return found
}

func collect(value any, found *[]string) {
	switch v := value.(type) {
	case string:
		*found = append(*found, v)
	case []any:
		for _, element := range v {
			collect(element, found)
		}
	case object:
		if input, ok := v["input"]; ok {
			text, _ := json.Marshal(input)
			*found = append(*found, string(text))
		}
		for _, member := range v {
			collect(member, found)
		}
	}
}
