package terminal

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// View writes every message of a view under its role: texts as they are, calls and results marked by arrows.
func View(out io.Writer, v *protocol.View) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "session %s (%s): %d messages, %d tokens, checkpoint %d through %d of %d\n",
		Printable(v.Session), v.Format, len(v.Messages), v.Tokens, v.Checkpoint, v.Through, v.LastSeq)
	if o := v.Omitted; o != nil {
		fmt.Fprintf(w, "left out: %d units (%d messages, %d tokens)\n", o.Units, o.Messages, o.Tokens)
	}
	if len(v.System) > 0 {
		fmt.Fprintf(w, "\n## system\n\n%s", systemText(v.Format, v.System))
	}
	for _, body := range v.Messages {
		fmt.Fprint(w, Message(v.Format, body))
	}
	return w.Flush()
}

// Message returns a message as text, under the heading of its role.
func Message(format session.Format, body []byte) string {
	if _, err := wire.Inspect(format, body); err != nil {
		return fmt.Sprintf("\n## a message\n\n%s\n", Plain(string(body)))
	}
	var text strings.Builder
	for _, m := range wire.Decode(format, body) {
		fmt.Fprintf(&text, "\n## %s\n\n%s", roleName(&m), blockLines(m.Blocks))
	}
	return text.String()
}

// systemText returns a system prompt, which a view has in the form that the provider takes it in.
func systemText(format session.Format, system json.RawMessage) string {
	body := []byte(system)
	if body[0] != '{' { // the content of a message, not a message
		body = fmt.Appendf(nil, `{"role":"user","content":%s}`, system)
	}
	if _, err := wire.Inspect(format, body); err != nil {
		return Plain(string(system)) + "\n"
	}
	var text strings.Builder
	for _, m := range wire.Decode(format, body) {
		text.WriteString(blockLines(m.Blocks))
	}
	return text.String()
}

func roleName(m *wire.Message) string {
	switch m.Role {
	case wire.Assistant:
		return "assistant"
	case wire.Tool:
		return "tool"
	case wire.System:
		return "system"
	case wire.Other:
		return Plain(literal(m.Name))
	}
	return "user"
}

func blockLines(blocks []wire.Block) string {
	var text strings.Builder
	for i := range blocks {
		text.WriteString(Plain(blockText(&blocks[i])) + "\n")
	}
	return text.String()
}

func blockText(b *wire.Block) string {
	switch b.Kind {
	case wire.Text:
		if b.Thought {
			return "(thinking) " + literal(b.Text)
		}
		return literal(b.Text)
	case wire.Reasoning:
		if b.Text == nil {
			return "(thinking that only the provider can read)"
		}
		return "(thinking) " + literal(b.Text)
	case wire.Call:
		return fmt.Sprintf("→ %s %s%s", literal(b.Name), callValue(b), idOf(b, " (%s)"))
	case wire.Result:
		return "←" + idOf(b, " %s") + "\n" + strings.TrimSuffix(blockLines(b.Content), "\n")
	case wire.Image, wire.File:
		return mediaText(b)
	}
	return opaqueText(b.Raw)
}

// idOf returns the id of a call in a form. Gemini may have none.
func idOf(b *wire.Block, form string) string {
	if b.CallID == "" {
		return ""
	}
	return fmt.Sprintf(form, b.CallID)
}

// callValue returns the arguments of a call: JSON, or the text of a tool that takes text.
func callValue(b *wire.Block) string {
	if b.Custom {
		return literal(b.Value)
	}
	return string(b.Value)
}

// mediaText names an image or a file, where it is, or how large it is.
func mediaText(b *wire.Block) string {
	m := &b.Media
	words := []string{b.Kind.String()}
	for _, known := range [][]byte{m.Name, m.Type, m.ID, m.URL} {
		if known != nil {
			words = append(words, Cut(literal(known), 100))
		}
	}
	switch {
	case m.Data != nil:
		words = append(words, fmt.Sprintf("%d bytes of base64", len(literal(m.Data))))
	case m.Text != nil:
		words = append(words, fmt.Sprintf("%d bytes of text", len(literal(m.Text))))
	}
	return "(" + strings.Join(words, ", ") + ")"
}

// opaqueText names a block that Varve keeps but does not know.
func opaqueText(raw []byte) string {
	var of struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &of) != nil || of.Type == "" {
		return string(raw)
	}
	return fmt.Sprintf("(%s, %d bytes)", of.Type, len(raw))
}

// literal returns the text of a string literal, or the JSON of what is not one.
func literal(value []byte) string {
	if len(value) == 0 || value[0] != '"' {
		return string(value)
	}
	text, ok := rawjson.Unquote(nil, value)
	if !ok { // half of a surrogate pair
		return string(value)
	}
	return string(text)
}
