package view

import (
	"bytes"
	"fmt"

	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// piece is what can be cut of a part: a text, or the arguments of a call.
type piece struct {
	text   []byte
	tokens int
	before string // around a text that takes the place of the part's value
	after  string
	call   *wire.Part // whose arguments the text is, nil for none
	quoted bool       // the arguments are inside a string
}

// pieceOf returns what can be cut of part i of a message, nil for nothing: images and files, reasoning, whose provider
// may have signed it, and what Varve does not know are kept as they are.
func pieceOf(e *entry, i int) *piece {
	p := &e.facts.Parts[i]
	value := p.Value.Of(e.Body)
	switch {
	case len(value) == 0:
		return nil
	case p.Kind == wire.Result:
		return resultPiece(e.Format, e.Body, p)
	case p.Kind == wire.Text && value[0] == '"':
		t, _ := rawjson.Unquote(nil, value)
		return &piece{text: t, tokens: p.Tokens}
	case p.Kind == wire.Call:
		c := &piece{text: value, call: p, quoted: value[0] == '"'}
		if c.quoted {
			c.text, _ = rawjson.Unquote(nil, value)
		}
		c.tokens = tokens.Estimate(c.text)
		return c
	}
	return nil
}

func resultPiece(f session.Format, body []byte, p *wire.Part) *piece {
	value := p.Value.Of(body)
	if mixed, ok := wire.MixedResult(f, value); ok {
		return &piece{text: wire.ResultText(f, body, *p).Text, tokens: mixed.TextTokens, before: mixed.Before,
			after: mixed.After}
	}
	content := wire.ResultText(f, body, *p)
	made := &piece{text: content.Text, tokens: p.Tokens}
	if value[0] == '[' && !content.OnlyText {
		if f != session.AISDK {
			return nil // media, and no text
		}
		made.text = value
	}
	if provider.Of(f).ResultObjects && value[0] != '"' {
		made.before, made.after = `{"output":`, `}`
	}
	if tokens.Estimate(made.text) > 2*p.Tokens+shortest {
		return nil // it holds media, whose bytes are not what they cost
	}
	return made
}

// cutTo returns the value of the part with its piece cut to a number of tokens, nil if there is none that is smaller.
func (p *piece) cutTo(goal int, ref string) []byte {
	line := fmt.Sprintf("[... cut to fit the window -- all %d characters, ~%d tokens: read_result %s ...]",
		text.Len(p.text), p.tokens, ref)
	if p.call != nil {
		return p.cutArguments(goal, line)
	}
	made := cutText(p.text, p.tokens, goal, line)
	if len(made) >= len(p.text) {
		return nil
	}
	return append(rawjson.Quote([]byte(p.before), made), p.after...)
}

// cutText returns the beginning and the end of a text of size tokens, and a line between them: about goal tokens.
func cutText(t []byte, size, goal int, line string) []byte {
	room := goal - tokens.Estimate([]byte(line)) - 2
	chars := text.Len(t) * max(room, 0) / max(size, 1)
	for {
		if chars < minShown {
			return []byte(line)
		}
		head, tail := ends(t, chars)
		made := bytes.Join([][]byte{head, []byte(line), tail}, []byte("\n\n"))
		if tokens.Estimate(made) <= goal {
			return made
		}
		chars = chars * 9 / 10
	}
}

// minShown is the number of characters below which nothing of a text is shown.
const minShown = 24

// ends returns the two ends of a text, of whole lines if its lines are short: two thirds at the beginning.
func ends(t []byte, chars int) (head, tail []byte) {
	last := chars / 3
	first := chars - last
	head, tail = text.WholeLinesHead(t, first), text.WholeLinesTail(t, last)
	if text.Len(head) < first/2 {
		head = text.First(t, first)
	}
	if text.Len(tail) < last/2 {
		tail = text.Last(t, last)
	}
	return head, tail
}

// cutArguments cuts the large texts in a call's arguments. Arguments that are large without such texts become an object
// that has the line alone, unless their provider knows their form.
func (p *piece) cutArguments(goal int, line string) []byte {
	made := cutText(p.text, p.tokens, goal, line) // of a custom tool, or not JSON
	if rawjson.Check(p.text, rawjson.Limits{}) == nil {
		made = cutStrings(p.text, goal, line)
		isObject := p.text[rawjson.Start(p.text)] == '{'
		if isObject && !p.call.Fixed && tokens.Estimate(made) > goal+shortest {
			made = append(rawjson.Quote([]byte(`{"_cut":`), []byte(line)), '}')
		}
	}
	switch {
	case len(made) >= len(p.text):
		return nil
	case p.quoted:
		return rawjson.Quote(nil, made)
	}
	return made
}

// cutStrings cuts the longest strings in a JSON value, so that it has about goal tokens.
func cutStrings(value []byte, goal int, line string) []byte {
	var edits []wire.Edit
	var targets []*target
	rest := int64(tokens.Estimate(value) - goal)
	for _, at := range stringsIn(nil, value, rawjson.Value(value)) {
		t, _ := rawjson.Unquote(nil, at.Of(value))
		if n := tokens.EstimateLiteral(at.Of(value)); n > shortest {
			targets = append(targets, &target{piece: &piece{text: t, tokens: n}, goal: n})
			edits = append(edits, wire.Edit{Span: at})
		}
	}
	lower(targets, step{floor: shortest}, rest)
	for i, t := range targets {
		edits[i].With = edits[i].Span.Of(value)
		if made := cutText(t.text, t.tokens, t.goal, line); t.goal < t.tokens && len(made) < len(t.text) {
			edits[i].With = rawjson.Quote(nil, made)
		}
	}
	return wire.Replace(nil, value, edits)
}

// stringsIn appends where the strings of a JSON value are, names aside.
func stringsIn(dst []rawjson.Span, data []byte, at rawjson.Span) []rawjson.Span {
	switch data[at.Start] {
	case '"':
		return append(dst, at)
	case '[':
		for element := range rawjson.Elements(data, at.Start) {
			dst = stringsIn(dst, data, element)
		}
	case '{':
		for _, member := range rawjson.Members(data, at.Start) {
			dst = stringsIn(dst, data, member)
		}
	}
	return dst
}
