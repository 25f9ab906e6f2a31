package compacttest

import (
	"fmt"
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

func (g *generator) say(role, text string) { g.add(`{"role":%q,"content":%s}`, role, quoted(text)) }

// assistant makes n calls in one message.
func (g *generator) assistant(n int) []call {
	calls, blocks := make([]call, n), []string{}
	for i := range calls {
		calls[i] = g.newCall()
		arguments := g.arguments(calls[i].tool)
		if g.format == session.OpenAIChat {
			if g.wild(12) {
				arguments = "{not json"
			}
			blocks = append(blocks, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%s,"arguments":%s}}`, calls[i].id, quoted(calls[i].tool), quoted(arguments)))
			continue
		}
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%s,"input":%s}`, calls[i].id, quoted(calls[i].tool), arguments))
	}
	joined := strings.Join(blocks, ",")
	switch {
	case g.format == session.OpenAIChat:
		g.add(`{"role":"assistant","content":%s,"tool_calls":[%s]}`, g.pick([]string{"null", `"I look."`}), joined)
	case g.wild(10):
		g.add(`{"role":"assistant","content":[{"type":"thinking","thinking":%s,"signature":"c2ln"},%s]}`, g.text(g.size()), joined)
	default:
		g.add(`{"role":"assistant","content":[{"type":"text","text":"I look."},%s]}`, joined)
	}
	return calls
}

// answer sends the results of calls: a message each for OpenAI Chat, one message, or two, for Anthropic.
func (g *generator) answer(calls []call) {
	var blocks []string
	for _, c := range calls {
		content := g.content()
		if g.format == session.OpenAIChat {
			g.add(`{"role":"tool","tool_call_id":%q,"content":%s}`, c.id, content)
			continue
		}
		failed := ""
		if g.rng.IntN(15) == 0 {
			failed = `,"is_error":true`
		}
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":%s%s}`, c.id, content, failed))
	}
	if len(blocks) > 1 && g.wild(6) {
		g.add(`{"role":"user","content":[%s]}`, blocks[0])
		blocks = blocks[1:]
	}
	if g.wild(10) && len(blocks) > 0 {
		blocks = append(blocks, `{"type":"text","text":"By the way."}`)
	}
	if len(blocks) > 0 {
		g.add(`{"role":"user","content":[%s]}`, strings.Join(blocks, ","))
	}
}

const (
	openAIImage    = `{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}`
	anthropicImage = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}`
)

// shows is the user's word with a picture.
func (g *generator) shows() {
	image := openAIImage
	if g.format == session.Anthropic {
		image = anthropicImage
	}
	g.add(`{"role":"user","content":[{"type":"text","text":"It looks like this."},%s]}`, image)
}

// content is the JSON value of a result's content.
func (g *generator) content() string {
	if g.wild(20) {
		return g.pick([]string{`""`, `[]`, `null`, `{"exit":0,"big":1e400}`, `17`, `[{"type":"text","text":""}]`, `"\u0000"`, `"\ud800"`})
	}
	text := g.text(g.size())
	switch {
	case g.wild(10):
		half := g.text(g.size())
		return fmt.Sprintf(`[{"type":"text","text":%s}, {"type":"text","text":%s}]`, text, half)
	case g.wild(12) && g.format == session.OpenAIChat:
		return fmt.Sprintf(`[{"type":"text","text":%s},%s]`, text, openAIImage)
	case g.wild(12):
		return fmt.Sprintf(`[%s,{"type":"text","text":%s}]`, anthropicImage, text)
	}
	return text
}

var (
	lines = []string{
		`\tif err := s.store.Append(ctx, at, messages); err != nil {\n`, `\t\treturn fmt.Errorf(\"append to %s: %w\", at.ID, err)\n`,
		`func (s *Store) Append(ctx context.Context, at Address) (Appended, error) {\n`, `ok  \tgithub.com/acme/shop/internal/cart\t0.214s\n`,
		`internal/cart/cart.go:118:2: undefined: total\n`, `// Total is the sum of all items, in cents.\n`, `}\n\n`, `2026-03-04T10:11:12Z INFO request path=/cart status=200\n`,
	}
	oddities = []string{
		`\u0000`, `\ud83d`, `\ude00\ud83d`, `\ud83d\ude00`, "😀😀😀", "漢字かな交じり文", "é", `\/`, `\u0041`, `\r\n`, `\f`, "\u2028", `\u0007`,
		`[... trimmed -- read_result r1.0-0000 returns all 9 characters, ~3 tokens ...]`,
	}
)

// text is a string literal of about so many bytes.
func (g *generator) text(size int) string {
	var b strings.Builder
	b.WriteByte('"')
	odd := g.wild(3)
	for b.Len() < size {
		if odd && g.rng.IntN(2) == 0 {
			b.WriteString(g.pick(oddities))
			continue
		}
		b.WriteString(g.pick(lines))
	}
	b.WriteByte('"')
	return b.String()
}
