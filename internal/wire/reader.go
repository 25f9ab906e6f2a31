package wire

import (
	"github.com/varve-dev/varve/internal/session"
)

// Reader reads messages again whose tokens are known since they were appended. It estimates only what the sum of a
// message's parts does not tell, and shares memory between messages: for a whole session that is twice as fast as
// Inspect. The zero Reader is ready for use, by one goroutine.
type Reader struct {
	parts []Part
	names map[string]string
}

// Read is Inspect of a message that has so many tokens. Texts and reasoning may be left uncounted; calls and results never
// are.
func (r *Reader) Read(f session.Format, body []byte, tokens int) (Message, error) {
	const most, chunk = 16, 1024
	if cap(r.parts)-len(r.parts) < most {
		r.parts = make([]Part, 0, chunk)
	}
	if r.names == nil {
		r.names = map[string]string{}
	}
	s := scanner{body: body, reader: r}
	s.message.Parts = r.parts[len(r.parts):]
	m, err := inspectWith(f, &s)
	if err != nil {
		return m, err
	}
	if n := len(r.parts) + len(m.Parts); n <= cap(r.parts) {
		r.parts = r.parts[:n]
	}
	s.settle(&m, tokens)
	return m, nil
}

// settle gives the one part that was not counted what the others leave of the message's tokens. If there are several,
// the results among them are counted after all.
func (s *scanner) settle(m *Message, tokens int) {
	s.reader = nil
	for i := range m.Parts {
		p := &m.Parts[i]
		switch {
		case s.uncounted == 1 && p.Value == s.last:
			p.Tokens = max(tokens-m.Tokens, 0)
		case s.uncounted > 1 && p.Kind == Result && s.is(p.Value, '"'):
			p.Tokens = s.tokens(p.Value)
		}
	}
	m.Tokens = tokens
}

// later estimates the tokens of a string, unless the sum of its message may tell them.
func (s *scanner) later(at Span) int {
	if s.reader == nil || !s.is(at, '"') {
		return s.tokens(at)
	}
	s.uncounted, s.last = s.uncounted+1, at
	return 0
}

// known returns the text as a string that other messages share.
func (r *Reader) known(text []byte) string {
	name, ok := r.names[string(text)]
	if !ok {
		name = string(text)
		r.names[name] = name
	}
	return name
}
