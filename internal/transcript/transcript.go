// Package transcript writes messages of any format as text that a person or a model reads: texts as they are, calls and
// results marked by arrows.
//
// Start at Message; Sections are what it consists of.
package transcript

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// Message returns a message as text, under the heading of its role, which has the message's seq unless that is 0.
func Message(format session.Format, body []byte, seq int64) string {
	var text strings.Builder
	for _, p := range Sections(format, body, seq) {
		text.WriteString(p.Text)
	}
	return text.String()
}

// Section is a piece of a message's text: the text of a block, or a heading.
type Section struct {
	Kind    wire.Kind
	Text    string
	Heading bool
}

// Sections returns the text of a message in pieces. A body that its format does not have is one piece.
func Sections(format session.Format, body []byte, seq int64) (pieces []Section) {
	number := ""
	if seq > 0 {
		number = fmt.Sprintf("[%d] ", seq)
	}
	if _, err := wire.Inspect(format, body); err != nil {
		return []Section{{Text: fmt.Sprintf("\n## %sa message\n\n%s\n", number, body)}}
	}
	for _, m := range wire.Decode(format, body) {
		pieces = append(pieces, Section{Text: fmt.Sprintf("\n## %s%s\n\n", number, roleName(&m)), Heading: true})
		for i := range m.Blocks {
			pieces = append(pieces, Section{Kind: m.Blocks[i].Kind, Text: blockText(&m.Blocks[i]) + "\n"})
		}
	}
	return pieces
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
		return literal(m.Name)
	}
	return "user"
}

// Blocks returns the blocks of a message as text, one after another.
func Blocks(blocks []wire.Block) string {
	var text strings.Builder
	for i := range blocks {
		text.WriteString(blockText(&blocks[i]) + "\n")
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
		return "←" + idOf(b, " %s") + "\n" + strings.TrimSuffix(Blocks(b.Content), "\n")
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
			words = append(words, clip(literal(known)))
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

// clip returns the beginning of a name.
func clip(name string) string {
	const limit = 100
	if utf8.RuneCountInString(name) <= limit {
		return name
	}
	return string([]rune(name)[:limit]) + "…"
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
	text, _ := rawjson.Unquote(nil, value)
	return string(text)
}
