package compact

import (
	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
	"github.com/varve-dev/varve/internal/wire"
)

// counter counts tokens as a policy wants it. The formulas of the five systems count texts and results only.
type counter struct{ by policy.Tokenizer }

// estimates reports whether tokens are those that were estimated when a message was appended.
func (c counter) estimates() bool { return !c.by.IsFormula() }

// text counts a text.
func (c counter) text(t []byte) int {
	if c.estimates() {
		return tokens.Estimate(t)
	}
	return c.quarter(c.size(t))
}

// size returns the length of a text in the unit of the formula.
func (c counter) size(t []byte) int {
	switch c.by {
	case policy.Bytes4:
		return len(t)
	case policy.Runes4:
		return len([]rune(string(t)))
	}
	return text.Len(t)
}

func (c counter) quarter(size int) int {
	if c.by == policy.Runes4 {
		return size / 4
	}
	return (size + 3) / 4
}

// message counts a message again, unless it is counted by the estimate.
func (c counter) message(f session.Format, body []byte, m *wire.Facts) {
	if c.estimates() {
		return
	}
	size, texts := 0, 0
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Tokens = 0; p.Kind {
		case wire.Text, wire.Result:
			n := c.size(wire.ResultText(f, body, *p).Text)
			p.Tokens = c.quarter(n)
			size += n
			texts++
		}
	}
	if c.by == policy.JSONChars4 {
		size += falaiExtra(body, texts)
	}
	m.Tokens = c.quarter(size)
}

// falaiExtra returns what falai counts of a message besides its texts: its name, its role as four units, and content
// that is null as the JSON of an empty text.
func falaiExtra(body []byte, texts int) int {
	size := 4
	for key, value := range rawjson.Members(body, rawjson.Start(body)) {
		switch {
		case rawjson.KeyIs(body, key, "name") && body[value.Start] == '"':
			name, _ := rawjson.Unquote(nil, value.Of(body))
			size += text.Len(name)
		case rawjson.KeyIs(body, key, "content") && body[value.Start] == '"':
			texts++
		}
	}
	if texts == 0 {
		size += len(`""`)
	}
	return size
}

// Recount counts the tokens of an inspected message as a policy wants it.
func Recount(p *policy.Policy, f session.Format, body []byte, m *wire.Facts) {
	counter{p.Tokens.Tokenizer}.message(f, body, m)
}
