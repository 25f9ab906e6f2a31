package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// corpus makes the messages of a coding agent's conversation, in the format openai-chat: the same seed gives the same
// messages. Its text compresses like recorded conversations do, by about 3.5 with zstd.
type corpus struct {
	random *rand.Rand
	calls  int
}

func newCorpus(seed uint64) *corpus {
	return &corpus{random: rand.New(rand.NewPCG(seed, seed))}
}

var (
	words = strings.Fields(`open close read write parse render flush merge split append encode decode verify resolve
		buffer session record policy index cursor window header frame segment token ledger bucket worker request result
		the a this that first last every newest because when unless before after which must may returns keeps fails`)
	// code is lines of a source file; each # becomes a word, each @ an identifier, each $ a constant.
	code = []string{
		"func (s *@) @(@ context.Context, @ []byte) error {", "\tif err := s.@(ctx, @); err != nil {",
		"\t\treturn fmt.Errorf(\"# # # # %d: %w\", @, err)", "\t@ := @[$:@.@]", "\t// # # # # # # # #",
		"\tconst @ = $", "\t}",
	}
)

func (c *corpus) word() string { return words[c.random.IntN(len(words))] }

func (c *corpus) identifier() string {
	if c.random.IntN(2) == 0 {
		return fmt.Sprintf("%s%d", c.word(), c.random.IntN(10_000))
	}
	second := c.word()
	return c.word() + strings.ToUpper(second[:1]) + second[1:]
}

func (c *corpus) sentence() string {
	list := make([]string, 5+c.random.IntN(8))
	for i := range list {
		list[i] = c.word()
	}
	return strings.Join(list, " ")
}

// text returns size bytes of code, with the numbers of its lines as tools print them.
func (c *corpus) text(size int) string {
	var out strings.Builder
	for n := 1 + c.random.IntN(900); out.Len() < size; n++ {
		fmt.Fprintf(&out, "%6d\t", n)
		for _, char := range code[c.random.IntN(len(code))] {
			switch char {
			case '#':
				out.WriteString(c.word())
			case '@':
				out.WriteString(c.identifier())
			case '$':
				fmt.Fprintf(&out, "0x%08x", c.random.Uint32())
			default:
				out.WriteRune(char)
			}
		}
		out.WriteByte('\n')
	}
	return out.String()[:size]
}

// turn returns a call of a tool and its answer, whose text has size bytes.
func (c *corpus) turn(size int) [][]byte {
	c.calls++
	id := fmt.Sprintf("call_%06d", c.calls)
	arguments := encoded(map[string]any{"path": c.word() + "/" + c.identifier() + ".go", "offset": c.random.IntN(2000)})
	function := map[string]any{"name": "read_file", "arguments": string(arguments)}
	call := map[string]any{"id": id, "type": "function", "function": function}
	return [][]byte{
		encoded(map[string]any{"role": "assistant", "content": c.sentence(), "tool_calls": []any{call}}),
		encoded(map[string]any{"role": "tool", "tool_call_id": id, "content": c.text(size)}),
	}
}

// conversation returns n messages: a question, then turns whose results have size bytes on the average.
func (c *corpus) conversation(n, size int) [][]byte {
	messages := [][]byte{encoded(map[string]any{"role": "user", "content": c.sentence()})}
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
