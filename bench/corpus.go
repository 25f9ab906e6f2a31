package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/varve-dev/varve/samples"
)

// corpus makes the messages of a coding agent's conversation, in the format openai-chat: the same seed gives the same
// messages. Their texts are pieces of what tools answered in a recorded conversation, so that they compress alike.
type corpus struct {
	random *rand.Rand
	calls  int
}

func newCorpus(seed uint64) *corpus {
	return &corpus{random: rand.New(rand.NewPCG(seed, seed))}
}

// recorded returns the answers of the tools in a sample, one after another.
var recorded = sync.OnceValue(func() string {
	var messages []struct{ Role, Content string }
	data, err := samples.Files.ReadFile("add-a-limit.openai-chat.json")
	if err == nil {
		err = json.Unmarshal(data, &messages)
	}
	if err != nil {
		panic(err) // the file is part of the program
	}
	var text strings.Builder
	for _, m := range messages {
		if m.Role == "tool" {
			text.WriteString(m.Content)
		}
	}
	return strings.ToValidUTF8(text.String(), "")
})

// text returns size bytes.
func (c *corpus) text(size int) string {
	all := recorded()
	var out strings.Builder
	for out.Len() < size {
		from := c.random.IntN(len(all))
		out.WriteString(all[from:min(len(all), from+2000)])
	}
	return strings.ToValidUTF8(out.String()[:size], "?")
}

// turn returns a call of a tool and its answer, whose text has size bytes.
func (c *corpus) turn(size int) [][]byte {
	c.calls++
	id := fmt.Sprintf("call_%06d", c.calls)
	path := fmt.Sprintf("internal/file%d.go", c.random.IntN(10_000))
	arguments := encoded(map[string]any{"path": path, "offset": c.random.IntN(2000)})
	function := map[string]any{"name": "read_file", "arguments": string(arguments)}
	call := map[string]any{"id": id, "type": "function", "function": function}
	return [][]byte{
		encoded(map[string]any{"role": "assistant", "content": c.text(50), "tool_calls": []any{call}}),
		encoded(map[string]any{"role": "tool", "tool_call_id": id, "content": c.text(size)}),
	}
}

// conversation returns n messages: a question, then turns whose results have size bytes on the average.
func (c *corpus) conversation(n, size int) [][]byte {
	messages := [][]byte{encoded(map[string]any{"role": "user", "content": c.text(50)})}
	for len(messages) < n {
		messages = append(messages, c.turn(size/2+c.random.IntN(size))...)
	}
	return messages[:n]
}

// message returns one message of exactly size bytes.
func (c *corpus) message(size int) []byte {
	content := c.text(size)
	for {
		full := encoded(map[string]any{"role": "user", "content": content})
		excess := len(full) - size
		switch {
		case excess == 0:
			return full
		case excess > 0:
			content = content[:len(content)-(excess+1)/2] // an escaped character has two bytes at most
		default:
			content += strings.Repeat(" ", -excess)
		}
	}
}

func encoded(v any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(err) // strings and numbers only
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// joined returns messages as the elements of a JSON array.
func joined(messages [][]byte) []byte { return bytes.Join(messages, []byte(",")) }
