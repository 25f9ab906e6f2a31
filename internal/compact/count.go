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
	size := 0
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Tokens = 0; p.Kind {
		case wire.Text, wire.Result:
			n := c.size(wire.ResultText(f, body, *p).Text)
			p.Tokens = c.quarter(n)
			size += n
		}
	}
	if c.by == policy.JSONChars4 {
		size = falaiSize(body, size)
	}
	m.Tokens = c.quarter(size)
}

// falaiSize returns what falai counts of a message: its content, a text or else its JSON, its name, and its role as
// four units. Content that is null is the JSON of an empty text. Formats without content have the size of their texts.
func falaiSize(body []byte, texts int) int {
	const role = 4
	name, content := 0, max(texts, len(`""`))
	for key, value := range rawjson.Members(body, rawjson.Start(body)) {
		read := value.Of(body)
		if read[0] == '"' {
			read, _ = rawjson.Unquote(nil, read)
		}
		switch {
		case rawjson.KeyIs(body, key, "name") && body[value.Start] == '"':
			name = text.Len(read)
		case rawjson.KeyIs(body, key, "content") && string(read) != "null":
			content = text.Len(read)
		}
	}
	return content + name + role
}

// Recount counts the tokens of an inspected message as a policy wants it.
func Recount(p *policy.Policy, f session.Format, body []byte, m *wire.Facts) {
	counter{p.Tokens.Tokenizer}.message(f, body, m)
}
