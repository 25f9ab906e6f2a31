package compact

import (
	"errors"

	"github.com/varve-dev/varve/internal/wire"
)

var errForeignPlan = errors.New("compact: the plan was not made from this input")

// Render makes the checkpoint that a plan of the same input describes. It splices: what no action touches is copied.
func Render(in Input, p *Plan) (*Checkpoint, error) {
	h := p.history
	if h == nil || in.Base != h.in.Base || len(in.Tail) != len(h.in.Tail) {
		return nil, errForeignPlan
	}
	starts, open := h.starts(p.covered), h.unanswered(p.covered)
	r := renderer{
		history: h, text: p.text, edits: p.edits, starts: starts, body: make([]byte, 0, p.size()),
		units: make([]Unit, 0, len(starts)), pinned: h.pinned(), state: newStateWriter(in.Format, p.covered),
	}
	for m := range p.covered {
		r.message(m)
	}
	c := &Checkpoint{Through: p.Through, Body: r.body, State: r.state.calls(open), Units: r.units, OpenCalls: make([]string, len(open))}
	for i := range open {
		c.OpenCalls[i] = open[i].id
	}
	for i := range c.Units {
		c.Tokens += c.Units[i].Tokens
	}
	return c, nil
}

// size is how many bytes the rendition has.
func (p *Plan) size() int {
	size := max(p.covered-1, 0)
	for m := range p.covered {
		size += p.history.messages[m].size
	}
	for _, e := range p.edits {
		value := p.history.results[e.result].value
		size += e.end - e.start - (value.End - value.Start)
	}
	return size
}

// renderer writes body, units and state side by side, message by message.
type renderer struct {
	*history
	text    []byte // the plan's replacements
	edits   []edit // those still to come
	starts  []int  // of the units still to come
	pinned  int
	body    []byte
	units   []Unit
	state   *stateWriter
	splices []wire.Edit // of the message at hand
}

func (r *renderer) message(m int) {
	if m > 0 {
		r.body = append(r.body, ',')
	}
	at, offset, first := r.messages[m], len(r.body), r.edits
	r.splices = r.splices[:0]
	for len(r.edits) > 0 && r.results[r.edits[0].result].message == m {
		e := r.edits[0]
		r.splices = append(r.splices, wire.Edit{Span: r.results[e.result].value, With: r.text[e.start:e.end]})
		r.edits = r.edits[1:]
	}
	r.body = wire.Replace(r.body, r.history.body(m), r.splices)
	at.size, at.whole = len(r.body)-offset, len(r.starts) > 0 && r.starts[0] == m
	r.unit(m, &at, offset)
	r.state.message(&at)
	moved := 0
	for i := at.first; i < at.last; i++ {
		result := r.results[i]
		size := result.value.End - result.value.Start
		if size > 0 { // one without a value lies nowhere
			result.value.Start += moved
		}
		if len(first) > 0 && first[0].result == i {
			moved += first[0].end - first[0].start - size
			size, first = first[0].end-first[0].start, first[1:]
		}
		result.value.End = result.value.Start + size
		r.state.result(&result)
	}
}

// unit counts a message into the unit that it belongs to.
func (r *renderer) unit(m int, at *message, offset int) {
	if at.whole {
		r.units = append(r.units, Unit{Offset: offset, FirstSeq: at.seq, Pinned: m < r.pinned})
		r.starts = r.starts[1:]
	}
	u := &r.units[len(r.units)-1]
	u.Messages++
	u.Tokens += int64(at.now)
}
