package console

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// side is one message, in the log or in the view.
type side struct {
	Role  string
	Parts []part
	Same  bool // of the view: it has the bytes of the log
}

// part returns the part of that number, nil for none.
func (s *side) part(index int) *part {
	for i := range s.Parts {
		if s.Parts[i].Index == index {
			return &s.Parts[i]
		}
	}
	return nil
}

// part is a piece of a message as a person reads it.
type part struct {
	Index  int
	Kind   string // as package wire names it
	Name   string // of a tool
	CallID string
	Error  bool // a result: the tool failed
	Do     string
	Lead   string // what is before the characters that both sides have alike and that are not shown
	Alike  int    // their number
	text   string // all of it
	clipped
}

// room is how much of a part is shown.
type room struct{ lines, chars int }

// sideOf reads a message. One that its format does not have is a single text.
func sideOf(format session.Format, body []byte, r room) *side {
	s := read(format, body)
	for i := range s.Parts {
		s.Parts[i].clipped = r.clip(s.Parts[i].text)
	}
	return s
}

func (r room) clip(text string) clipped { return clip(text, r.lines, r.chars) }

func read(format session.Format, body []byte) *side {
	facts, err := wire.Inspect(format, body)
	if err != nil {
		return &side{Role: "?", Parts: []part{{Kind: wire.Opaque.String(), text: string(body)}}}
	}
	s := &side{Role: facts.Role}
	for _, p := range facts.Parts {
		shown := part{Index: p.Index, Kind: p.Kind.String(), Name: p.Name, CallID: p.CallID, Error: p.IsError}
		shown.text = textOf(format, body, p)
		s.Parts = append(s.Parts, shown)
	}
	return s
}

// diverge shows two texts from where they begin to differ, with a little of what is before.
func diverge(a, b *part, r room) {
	n := 0
	for n < len(a.text) && n < len(b.text) && a.text[n] == b.text[n] {
		n++
	}
	const lead, before = 160, 80
	from := strings.LastIndexByte(a.text[:max(n-before, 0)], '\n') + 1
	if n-from > 4*before {
		from = n - before
	}
	for from > 0 && !utf8.RuneStart(a.text[from]) {
		from--
	}
	alike := utf8.RuneCountInString(a.text[:from]) - lead
	if alike < lead {
		return
	}
	first := string([]rune(a.text[:from])[:lead])
	for _, p := range []*part{a, b} {
		p.Lead, p.Alike = first, alike
		p.clipped = r.clip(p.text[from:])
	}
}

// textOf returns what a part says. Pictures, files and what Varve does not know are named only.
func textOf(format session.Format, body []byte, p wire.Part) string {
	value := p.Value.Of(body)
	switch p.Kind {
	case wire.Result:
		return string(wire.ResultText(format, body, p).Text)
	case wire.Text, wire.Call:
		return literal(value)
	case wire.Reasoning:
		if len(value) == 0 {
			return "(only the provider can read it)"
		}
		return literal(value)
	}
	return fmt.Sprintf("(%d bytes)", p.Raw.End-p.Raw.Start)
}

// literal returns the text of a string, or the JSON of another value.
func literal(value []byte) string {
	if len(value) == 0 || value[0] != '"' {
		return string(value)
	}
	text, _ := rawjson.Unquote(nil, value)
	return string(text)
}
