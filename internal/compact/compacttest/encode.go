package compacttest

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

//go:embed forms.txt
var formsText string

// forms has the forms of forms.txt by format and name.
var forms = readForms()

func readForms() map[session.Format]map[string]string {
	all := map[session.Format]map[string]string{}
	var formats []string
	for line := range strings.Lines(formsText) {
		name, form, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "=" {
			formats = strings.Fields(form)
			continue
		}
		for _, f := range formats {
			f := session.Format(f)
			if all[f] == nil {
				all[f] = map[string]string{}
			}
			all[f][name] = form
		}
	}
	return all
}

// values are the values of a form by name.
type values map[string]string

// form returns a form of the generator's format with its values.
func (g *generator) form(name string, v values) string {
	return os.Expand(forms[g.format][name], func(name string) string {
		if name == "n" {
			return strconv.Itoa(len(g.messages))
		}
		return v[name]
	})
}

func quoted(text string) string { return string(rawjson.Quote(nil, []byte(text))) }

func (g *generator) add(body string) {
	if g.wild(10) {
		body = " " + strings.Replace(body, `{"role":`, "{\n \"role\" : ", 1) + "\n"
	}
	g.messages = append(g.messages, []byte(body))
}

// say adds a message that is one text.
func (g *generator) say(role, text string) {
	g.flush()
	if g.format == session.Gemini && role == "assistant" {
		role = "model"
	}
	g.add(g.form("say", values{"role": role, "text": quoted(text)}))
}

// assistant makes n calls in one message, or in one item each.
func (g *generator) assistant(n int) []call {
	if len(g.pending) > 0 || len(g.steps) == 0 {
		g.flush()
	}
	calls, blocks := make([]call, n), make([]string, n)
	for i := range calls {
		calls[i] = g.newCall()
		blocks[i] = g.callBlock(&calls[i])
	}
	said := ""
	switch g.format {
	case session.AISDK: // the calls come with their results
		return calls
	case session.OpenAIResponses:
		g.items(blocks)
		return calls
	case session.OpenAIChat:
		said = g.pick([]string{"null", `"I look."`})
	case session.Anthropic:
		said = g.textBlock(`"I look."`)
		if g.wild(10) {
			said = g.form("thinking", values{"text": g.text(g.size())})
		}
	}
	g.add(g.form("calls", values{"said": said, "blocks": strings.Join(blocks, ",")}))
	return calls
}

// items adds the items of one answer of OpenAI's Responses.
func (g *generator) items(calls []string) {
	if g.wild(4) {
		g.add(g.form("reasoning", nil))
	}
	if g.rng.IntN(3) == 0 {
		g.add(g.form("said", nil))
	}
	for _, item := range calls {
		g.add(item)
	}
}

// callBlock returns a call as its format writes it.
func (g *generator) callBlock(c *call) string {
	c.arguments = g.arguments(c.tool)
	v := values{"id": c.id, "tool": quoted(c.tool), "arguments": c.arguments, "written": quoted(c.arguments)}
	if g.wild(12) {
		v["written"] = quoted("{not json")
	}
	switch g.format {
	case session.Gemini:
		if g.wild(2) {
			v["signature"] = `,"thoughtSignature":"c2ln"`
		}
		c.bare = g.calls%2 == 0
		v["member"] = c.idMember()
	case session.AISDK:
		g.pending = append(g.pending, *c)
	}
	return g.form("call", v)
}

// idMember returns the id of a call of Gemini as a member; many contents do not have it.
func (c *call) idMember() string {
	if c.bare {
		return ""
	}
	return fmt.Sprintf(`"id":%q,`, c.id)
}

// answer sends the results of calls: a message each, or one message, or two, where results are blocks of one.
func (g *generator) answer(calls []call) {
	var blocks []string
	for i := range calls {
		v := values{"id": calls[i].id, "content": g.content()}
		switch g.format {
		case session.OpenAIChat, session.OpenAIResponses:
			g.add(g.form("answer", v))
		default:
			blocks = append(blocks, g.resultBlock(&calls[i], v))
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

func (g *generator) resultBlock(c *call, v values) string {
	v["tool"] = quoted(c.tool)
	switch g.format {
	case session.Gemini:
		v["member"], v["name"] = c.idMember(), "output"
		if g.rng.IntN(4) == 0 {
			v["before"], v["name"] = `"exit":0,`, "stdout"
		}
	case session.AISDK:
		v["arguments"] = cmp.Or(c.arguments, "{}")
	default:
		if g.rng.IntN(15) == 0 {
			v["failed"] = `,"is_error":true`
		}
	}
	return g.form("result", v)
}

func (g *generator) resultMessages(blocks []string) {
	if len(blocks) > 1 && g.wild(6) {
		g.add(g.form("results", values{"blocks": blocks[0]}))
		blocks = blocks[1:]
	}
	if g.wild(10) {
		blocks = append(blocks, g.textBlock(`"By the way."`))
	}
	g.add(g.form("results", values{"blocks": strings.Join(blocks, ",")}))
}

// uiMessage adds the message that makes calls and holds their results. Calls without an answer come first.
func (g *generator) uiMessage(answered []call, results []string) {
	blocks := ""
	for _, c := range g.pending {
		if !slices.ContainsFunc(answered, func(a call) bool { return a.id == c.id }) {
			v := values{"id": c.id, "tool": quoted(c.tool), "arguments": c.arguments}
			blocks += "," + g.form("waiting", v)
		}
	}
	g.pending = nil
	for _, result := range results {
		blocks += "," + result
	}
	g.steps = append(g.steps, g.form("step", values{"blocks": blocks}))
	if len(g.steps) >= g.options.Steps {
		g.endMessage()
	}
}

// endMessage adds the message of the steps so far.
func (g *generator) endMessage() {
	g.add(g.form("steps", values{"steps": strings.Join(g.steps, ",")}))
	g.steps = nil
}

// flush adds the calls that have no result, and the message that may have had more steps.
func (g *generator) flush() {
	if len(g.pending) > 0 {
		g.uiMessage(nil, nil)
	}
	if len(g.steps) > 0 {
		g.endMessage()
	}
}

// textBlock returns a text as a block of its format.
func (g *generator) textBlock(literal string) string { return g.form("text", values{"text": literal}) }

// shows adds a message of the user with an image.
func (g *generator) shows() {
	g.flush()
	blocks := g.textBlock(`"It looks like this."`) + "," + g.form("image", nil)
	g.add(g.form("show", values{"blocks": blocks}))
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
		return fmt.Sprintf(`[%s,%s]`, g.textBlock(text), g.form("image", nil))
	case g.wild(12):
		return fmt.Sprintf(`[%s,%s]`, g.form("image", nil), g.textBlock(text))
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
		`[... trimmed -- all 9 characters, ~3 tokens: read_result r1.0-0000 ...]`,
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
