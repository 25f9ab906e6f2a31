package compact

import (
	"fmt"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// Capped is a message whose oversized results were cut before it entered a view.
type Capped struct {
	Body    []byte // as the view has it
	Tokens  int    // of Body
	Results []Result
}

// CapAtIngest cuts the oversized results of a message that is appended as number seq: it runs the cap stage on a
// session that has this message alone. It calls tool with every part of the message, in order; for a result, tool
// returns the tool of the call that it answers. A result without a call is kept whole. CapAtIngest returns nil if
// nothing changes.
func CapAtIngest(
	p *policy.Policy, f session.Format, seq int64, body []byte, tool func(part *wire.Part) (string, bool),
) (*Capped, error) {
	words, err := wordsOf(&p.Wording)
	if err != nil {
		return nil, fmt.Errorf("compact: wording: %w", err)
	}
	found, err := wire.Inspect(f, body)
	if err != nil {
		return nil, fmt.Errorf("compact: message %d: %w", seq, err)
	}
	h := &history{
		in:       Input{Format: f, Tail: []Entry{{Seq: seq, Tokens: found.Tokens, Body: body}}},
		provider: provider.Of(f),
		count:    counter{p.Tokens.Tokenizer},
	}
	h.count.message(f, body, &found)
	h.in.Tail[0].Tokens = found.Tokens
	for i := range found.Parts {
		at := &found.Parts[i]
		name, known := tool(at)
		if at.Kind == wire.Result {
			r := resultPart(body, at)
			r.seq = seq
			r.tool, r.paired = name, known
			r.origin = h.originOf(body, &r)
			h.parts = append(h.parts, r)
		}
	}
	m := message{seq: seq, size: len(body), tokens: found.Tokens, now: found.Tokens, begins: true, unit: 1}
	m.last = len(h.parts)
	h.messages = []message{m}
	h.in.Policy, h.in.WindowTokens = *p, 1
	h.in.Policy.Cap.MaxRatio, h.in.Policy.Cap.UnitRatio = 0, 0 // no window is known here
	s := newRunState(h)
	s.words = words
	capOversized(s)
	return s.capped(), nil
}

// capped applies what the cap stage proposed for the only message of the history; it returns nil if nothing changes.
func (s *runState) capped() *Capped {
	p := &Plan{history: s.history}
	for i := range s.parts {
		p.apply(s, i)
	}
	if len(p.edits) == 0 {
		return nil
	}
	body := wire.Replace(nil, s.body(0), p.splices(nil, p.edits))
	return &Capped{Body: body, Tokens: s.messages[0].now, Results: p.Results}
}
