package wire

import (
	"github.com/varve-dev/varve/internal/session"
)

// Read inspects a message that is known to have this number of tokens.
func (r *Reader) Read(f session.Format, body []byte, tokens int) (Facts, error) {
	const most, chunk = 16, 1024
	if cap(r.parts)-len(r.parts) < most {
		r.parts = make([]Part, 0, chunk)
	}
	if r.names == nil {
		r.names = map[string]string{}
	}
	s := scanner{body: body, reader: r}
	s.facts.Parts = r.parts[len(r.parts):]
	m, err := s.read(f)
	if err != nil {
		return m, err
	}
	if n := len(r.parts) + len(m.Parts); n <= cap(r.parts) {
		r.parts = r.parts[:n]
	}
	s.settle(&m, tokens)
	return m, nil
}

// settle counts the parts that were left uncounted, but for the largest of them: that has what the others leave of the
// message's tokens.
func (s *scanner) settle(m *Facts, tokens int) {
	largest := -1
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Tokens == 0 && s.is(p.Value, '"') && (largest < 0 || p.size() > m.Parts[largest].size()) {
			largest = i
		}
	}
	s.reader = nil
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Tokens == 0 && s.is(p.Value, '"') && i != largest {
			p.Tokens = s.tokens(p.Value)
			m.Tokens += p.Tokens
		}
	}
	if largest >= 0 {
		m.Parts[largest].Tokens = max(tokens-m.Tokens, 0)
	}
	m.Tokens = tokens
}

func (p *Part) size() int { return p.Value.End - p.Value.Start }
