package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/varve-dev/varve/test/harness"
)

// turn returns the messages of a turn: a demand, a call with its result, and an answer with exact values. Every text
// names the append, so that no two appends have the same bytes.
func turn(format, id string, random *rand.Rand) []json.RawMessage {
	demand := fmt.Sprintf("[%s] Please look into %s. The limit must stay %d.", id, path(random), random.IntN(90_000))
	result := fmt.Sprintf("%s\n%s", id, prose(random, 4+random.IntN(20)))
	say := fmt.Sprintf("[%s] I read %s because batch %d failed. %s", id, path(random), random.IntN(90_000),
		prose(random, 12+random.IntN(30)))
	call := "call_" + strings.ReplaceAll(id, "-", "_")
	if format == anthropic {
		return encoded(
			object{"role": "user", "content": demand},
			object{"role": "assistant", "content": []any{object{"type": "tool_use", "id": call, "name": "Read",
				"input": object{"path": path(random)}}}},
			object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": call,
				"content": result}}},
			object{"role": "assistant", "content": say})
	}
	return encoded(
		object{"role": "user", "content": demand},
		object{"role": "assistant", "content": nil, "tool_calls": []any{object{"id": call, "type": "function",
			"function": object{"name": "Read", "arguments": fmt.Sprintf(`{"path":%q}`, path(random))}}}},
		object{"role": "tool", "tool_call_id": call, "content": result},
		object{"role": "assistant", "content": say})
}

func encoded(messages ...object) []json.RawMessage {
	out := make([]json.RawMessage, len(messages))
	for i, m := range messages {
		out[i], _ = json.Marshal(m) // of maps and texts
	}
	return out
}

func path(random *rand.Rand) string {
	return fmt.Sprintf("/src/%s/%s_%d.go", harness.Word(random), harness.Word(random), random.IntN(1000))
}

// prose returns sentences.
func prose(random *rand.Rand, sentences int) string {
	var b strings.Builder
	for range sentences {
		fmt.Fprintf(&b, "The %s of the %s is %d now, and %s follows. ", harness.Word(random), harness.Word(random),
			random.IntN(1000), harness.Word(random))
	}
	return b.String()
}
