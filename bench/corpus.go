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

// Enough different words that code does not compress better than real code.
var (
	verbs   = strings.Fields("open close read write parse render flush merge split append encode decode verify resolve schedule load")
	nouns   = strings.Fields("buffer session record policy index cursor window header frame segment token ledger bucket worker request result")
	kinds   = strings.Fields("int string []byte error bool time.Duration *Node map[string]int context.Context io.Reader")
	phrases = strings.Fields("the a this that first last every newest because when unless before after which must may holds returns keeps fails")
)

func (c *corpus) pick(from []string) string { return from[c.random.IntN(len(from))] }

func (c *corpus) identifier() string {
	noun := c.pick(nouns)
	if c.random.IntN(2) == 0 {
		return fmt.Sprintf("%s%d", noun, c.random.IntN(10_000))
	}
	return c.pick(verbs) + strings.ToUpper(noun[:1]) + noun[1:]
}

func (c *corpus) sentence() string {
	words := make([]string, 5+c.random.IntN(8))
	for i := range words {
		words[i] = c.pick([][]string{phrases, nouns, verbs}[c.random.IntN(3)])
	}
	return strings.Join(words, " ")
}

// line is one line of a source file, numbered as tools print them.
func (c *corpus) line(n int) string {
	var code string
	switch a, b := c.identifier(), c.identifier(); c.random.IntN(7) {
	case 0:
		code = fmt.Sprintf("func (s *%s) %s(%s %s) error {", c.identifier(), a, b, c.pick(kinds))
	case 1:
		code = fmt.Sprintf("\tif err := s.%s(ctx, %s); err != nil {", a, b)
	case 2:
		code = fmt.Sprintf("\t\treturn fmt.Errorf(\"%s %%d: %%w\", %s, err)", c.sentence(), b)
	case 3:
		code = fmt.Sprintf("\t%s := %s[%d:%s.%s]", a, b, c.random.IntN(4096), a, c.identifier())
	case 4:
		code = "\t// " + c.sentence()
	case 5:
		code = fmt.Sprintf("\tconst %s = 0x%016x", a, c.random.Uint64())
	default:
		code = "\t}"
	}
	return fmt.Sprintf("%6d\t%s\n", n, code)
}

// text is about size bytes of code.
func (c *corpus) text(size int) string {
	var text strings.Builder
	for n := 1 + c.random.IntN(900); text.Len() < size; n++ {
		text.WriteString(c.line(n))
	}
	return text.String()[:size]
}

type chatMessage struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content"`
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type chatCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// ask is what the user says.
func (c *corpus) ask() []byte {
	content := c.sentence()
	return encoded(chatMessage{Role: "user", Content: &content})
}

// turn is a call of a tool and its answer, whose text has size bytes.
func (c *corpus) turn(size int) [][]byte {
	c.calls++
	id := fmt.Sprintf("call_%06d", c.calls)
	arguments := string(encoded(map[string]any{"path": c.pick(verbs) + "/" + c.identifier() + ".go", "offset": c.random.IntN(2000)}))
	says, result := c.sentence(), c.text(size)
	call := chatCall{ID: id, Type: "function", Function: chatFunction{Name: c.pick([]string{"read_file", "grep", "run_tests"}), Arguments: arguments}}
	return [][]byte{
		encoded(chatMessage{Role: "assistant", Content: &says, ToolCalls: []chatCall{call}}),
		encoded(chatMessage{Role: "tool", Content: &result, ToolCallID: id}),
	}
}

// conversation is n messages: a question, then turns whose results have size bytes on the average.
func (c *corpus) conversation(n, size int) [][]byte {
	messages := [][]byte{c.ask()}
	for len(messages) < n {
		messages = append(messages, c.turn(size/2+c.random.IntN(size))...)
	}
	return messages[:n]
}

// message is one message of exactly size bytes.
func (c *corpus) message(size int) []byte {
	content := c.text(size)
	for {
		full := encoded(chatMessage{Role: "user", Content: &content})
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

// joined is messages as the elements of a JSON array.
func joined(messages [][]byte) []byte { return bytes.Join(messages, []byte(",")) }
