package compacttest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

func quoted(text string) string { return string(rawjson.Quote(nil, []byte(text))) }

func (g *generator) add(format string, args ...any) {
	body := fmt.Sprintf(format, args...)
	if g.wild(10) {
		body = " " + strings.Replace(body, `{"role":`, "{\n \"role\" : ", 1) + "\n"
	}
	g.messages = append(g.messages, []byte(body))
}

// say adds a message that is one text.
func (g *generator) say(role, text string) {
	g.flush()
	switch g.format {
	case session.Gemini:
		if role == "assistant" {
			role = "model"
		}
		g.add(`{"role":%q,"parts":[{"text":%s}]}`, role, quoted(text))
	case session.AISDK:
		g.add(`{"id":"m%d","role":%q,"parts":[{"type":"text","text":%s}]}`, len(g.messages), role, quoted(text))
	default:
		g.add(`{"role":%q,"content":%s}`, role, quoted(text))
	}
}

// assistant makes n calls in one message, or in one item each.
func (g *generator) assistant(n int) []call {
	g.flush()
	calls, blocks := make([]call, n), make([]string, n)
	for i := range calls {
		calls[i] = g.newCall()
		blocks[i] = g.callBlock(&calls[i])
	}
	joined := strings.Join(blocks, ",")
	switch g.format {
	case session.OpenAIChat:
		g.add(`{"role":"assistant","content":%s,"tool_calls":[%s]}`, g.pick([]string{"null", `"I look."`}), joined)
	case session.OpenAIResponses:
		g.items(blocks)
	case session.Gemini:
		g.add(`{"role":"model","parts":[{"text":"I look."},%s]}`, joined)
	case session.AISDK: // the calls come with their results
	case session.Anthropic:
		first := `{"type":"text","text":"I look."}`
		if g.wild(10) {
			first = fmt.Sprintf(`{"type":"thinking","thinking":%s,"signature":"c2ln"}`, g.text(g.size()))
		}
		g.add(`{"role":"assistant","content":[%s,%s]}`, first, joined)
	}
	return calls
}

// items adds the items of one answer of OpenAI's Responses.
func (g *generator) items(calls []string) {
	if g.wild(4) {
		g.add(`{"type":"reasoning","id":"rs_%d","summary":[],"encrypted_content":"c2VjcmV0"}`, len(g.messages))
	}
	if g.rng.IntN(3) == 0 {
		g.add(`{"type":"message","role":"assistant",` +
			`"content":[{"type":"output_text","text":"I look.","annotations":[]}]}`)
	}
	for _, item := range calls {
		g.add("%s", item)
	}
}

// callBlock returns a call as its format writes it.
func (g *generator) callBlock(c *call) string {
	c.arguments = g.arguments(c.tool)
	tool, written := quoted(c.tool), c.arguments
	if g.wild(12) {
		written = "{not json"
	}
	switch g.format {
	case session.OpenAIChat:
		const form = `{"id":%q,"type":"function","function":{"name":%s,"arguments":%s}}`
		return fmt.Sprintf(form, c.id, tool, quoted(written))
	case session.OpenAIResponses:
		const form = `{"type":"function_call","call_id":%q,"name":%s,"arguments":%s}`
		return fmt.Sprintf(form, c.id, tool, quoted(written))
	case session.Gemini:
		signature := ""
		if g.wild(2) {
			signature = `,"thoughtSignature":"c2ln"`
		}
		return fmt.Sprintf(`{"functionCall":{%s"name":%s,"args":%s}%s}`, g.geminiID(c), tool, c.arguments, signature)
	case session.AISDK:
		g.pending = append(g.pending, *c)
		return ""
	}
	return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%s,"input":%s}`, c.id, tool, c.arguments)
}

// geminiID returns the id of a call, which many contents do not have.
func (g *generator) geminiID(c *call) string {
	if g.calls%2 == 0 {
		c.bare = true
		return ""
	}
	return fmt.Sprintf(`"id":%q,`, c.id)
}

// answer sends the results of calls: a message each, or one message, or two, where results are blocks of one.
func (g *generator) answer(calls []call) {
	var blocks []string
	for i := range calls {
		c, content := &calls[i], g.content()
		switch g.format {
		case session.OpenAIChat:
			g.add(`{"role":"tool","tool_call_id":%q,"content":%s}`, c.id, content)
		case session.OpenAIResponses:
			g.add(`{"type":"function_call_output","call_id":%q,"output":%s}`, c.id, content)
		case session.AISDK:
			c.output = content
			blocks = append(blocks, g.tool(c))
		default:
			blocks = append(blocks, g.resultBlock(c, content))
		}
	}
	switch {
	case len(blocks) == 0:
	case g.format == session.AISDK:
		g.uiMessage(calls, blocks)
	default:
		g.resultMessages(blocks)
	}
}

func (g *generator) resultBlock(c *call, content string) string {
	if g.format == session.Gemini {
		id := fmt.Sprintf(`"id":%q,`, c.id)
		if c.bare {
			id = ""
		}
		response := fmt.Sprintf(`{"output":%s}`, content)
		if g.rng.IntN(4) == 0 {
			response = fmt.Sprintf(`{"exit":0,"stdout":%s}`, content)
		}
		return fmt.Sprintf(`{"functionResponse":{%s"name":%s,"response":%s}}`, id, quoted(c.tool), response)
	}
	failed := ""
	if g.rng.IntN(15) == 0 {
		failed = `,"is_error":true`
	}
	return fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":%s%s}`, c.id, content, failed)
}

func (g *generator) resultMessages(blocks []string) {
	member, text := "content", `{"type":"text","text":"By the way."}`
	if g.format == session.Gemini {
		member, text = "parts", `{"text":"By the way."}`
	}
	if len(blocks) > 1 && g.wild(6) {
		g.add(`{"role":"user",%q:[%s]}`, member, blocks[0])
		blocks = blocks[1:]
	}
	if g.wild(10) {
		blocks = append(blocks, text)
	}
	g.add(`{"role":"user",%q:[%s]}`, member, strings.Join(blocks, ","))
}

// tool returns a call of an AI SDK message, with its output if it has one.
func (g *generator) tool(c *call) string {
	arguments := c.arguments
	if arguments == "" {
		arguments = "{}"
	}
	state := `"input-available"`
	if c.output != "" {
		state = `"output-available","output":` + c.output
	}
	const form = `{"type":"dynamic-tool","toolName":%s,"toolCallId":%q,"input":%s,"state":%s}`
	return fmt.Sprintf(form, quoted(c.tool), c.id, arguments, state)
}

// uiMessage adds the message that makes calls and holds their results. Calls without an answer come first.
func (g *generator) uiMessage(answered []call, blocks []string) {
	parts := []string{`{"type":"step-start"}`}
	for _, c := range g.pending {
		if !slices.ContainsFunc(answered, func(a call) bool { return a.id == c.id }) {
			parts = append(parts, g.tool(&c))
		}
	}
	g.pending = nil
	parts = append(append(parts, blocks...), `{"type":"text","text":"I looked."}`)
	g.add(`{"id":"m%d","role":"assistant","parts":[%s]}`, len(g.messages), strings.Join(parts, ","))
}

// flush adds the calls that have no result.
func (g *generator) flush() {
	if len(g.pending) > 0 {
		g.uiMessage(nil, nil)
	}
}

// images has an image as each format writes it.
var images = map[session.Format]string{
	session.OpenAIChat:      `{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}`,
	session.OpenAIResponses: `{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo="}`,
	session.Anthropic: `{"type":"image","source":{"type":"base64","media_type":"image/png",` +
		`"data":"iVBORw0KGgo="}}`,
	session.Gemini: `{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}`,
	session.AISDK:  `{"type":"file","mediaType":"image/png","url":"data:image/png;base64,iVBORw0KGgo="}`,
}

// textBlock returns a text as a block of its format.
func (g *generator) textBlock(literal string) string {
	switch g.format {
	case session.Gemini:
		return `{"text":` + literal + `}`
	case session.OpenAIResponses:
		return `{"type":"input_text","text":` + literal + `}`
	}
	return `{"type":"text","text":` + literal + `}`
}

// shows adds a message of the user with an image.
func (g *generator) shows() {
	g.flush()
	blocks := g.textBlock(`"It looks like this."`) + "," + images[g.format]
	switch g.format {
	case session.Gemini, session.AISDK:
		g.add(`{"role":"user","parts":[%s]}`, blocks)
	default:
		g.add(`{"role":"user","content":[%s]}`, blocks)
	}
}

// content returns the JSON value of a result's content.
func (g *generator) content() string {
	if g.wild(20) {
		return g.pick([]string{
			`""`, `[]`, `null`, `{"exit":0,"big":1e400}`, `17`, `[{"type":"text","text":""}]`, `"\u0000"`, `"\ud800"`,
		})
	}
	text := g.text(g.size())
	switch {
	case g.wild(10):
		half := g.text(g.size())
		return fmt.Sprintf(`[%s, %s]`, g.textBlock(text), g.textBlock(half))
	case g.wild(12) && g.format == session.OpenAIChat:
		return fmt.Sprintf(`[%s,%s]`, g.textBlock(text), images[g.format])
	case g.wild(12):
		return fmt.Sprintf(`[%s,%s]`, images[g.format], g.textBlock(text))
	}
	return text
}

var (
	lines = []string{
		`\tif err := s.store.Append(ctx, at, messages); err != nil {\n`,
		`\t\treturn fmt.Errorf(\"append to %s: %w\", at.ID, err)\n`,
		`func (s *Store) Append(ctx context.Context, at Address) (Appended, error) {\n`,
		`ok  \tgithub.com/acme/shop/internal/cart\t0.214s\n`,
		`internal/cart/cart.go:118:2: undefined: total\n`,
		`// Total is the sum of all items, in cents.\n`,
		`}\n\n`,
		`2026-03-04T10:11:12Z INFO request path=/cart status=200\n`,
	}
	oddities = []string{
		`\u0000`, `\ud83d`, `\ude00\ud83d`, `\ud83d\ude00`, "😀😀😀", "漢字かな交じり文", "é",
		`\/`, `\u0041`, `\r\n`, `\f`, "\u2028", `\u0007`,
		`[... trimmed -- read_result r1.0-0000 returns all 9 characters, ~3 tokens ...]`,
	}
)

// text returns a string literal of about size bytes.
func (g *generator) text(size int) string {
	var b strings.Builder
	b.WriteByte('"')
	unusual := g.wild(3)
	for b.Len() < size {
		if unusual && g.rng.IntN(2) == 0 {
			b.WriteString(g.pick(oddities))
			continue
		}
		b.WriteString(g.pick(lines))
	}
	b.WriteByte('"')
	return b.String()
}
