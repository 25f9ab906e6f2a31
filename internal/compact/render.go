package compact

import (
	"slices"

	"github.com/varve-dev/varve/internal/wire"
)

// render makes the checkpoint that a plan describes. It splices: what no action touches is copied.
func render(p *Plan) *Checkpoint {
	h := p.history
	r := newRenderer(h, p)
	for m := range p.covered {
		if d := p.eviction; d != nil && m == d.begin {
			r.writeEviction(d)
		}
		if !p.evicts(m) {
			r.message(m)
		}
	}
	open := r.openCalls(h.unanswered(p.covered))
	c := &Checkpoint{
		Through:   p.Through,
		Body:      r.body,
		State:     r.state.end(open, h.pending, h.markedThrough(p.Through), h.memory),
		Units:     r.units,
		OpenCalls: make([]string, len(open)),
	}
	for i := range open {
		c.OpenCalls[i] = open[i].id
	}
	for i := range c.Units {
		c.Tokens += c.Units[i].Tokens
	}
	return c
}

// size returns an upper limit of the rendition's bytes.
func (p *Plan) size() int {
	size := p.covered
	for m := range p.covered {
		if !p.evicts(m) {
			size += p.history.messages[m].size
		}
	}
	if p.eviction != nil {
		size += len(p.eviction.body) + 1
	}
	for _, e := range p.edits {
		value := p.history.parts[e.part].value
		size += e.end - e.start - (value.End - value.Start)
	}
	return size
}

// renderer writes body, units and state side by side, message by message.
type renderer struct {
	*history
	plan    *Plan
	edits   []edit // not yet applied
	starts  []bool // by message: a unit begins with it
	pinned  int
	body    []byte
	units   []Unit
	state   *codec
	written []int       // by message: its number among those that were written, -1 for an evicted one
	parts   int         // number of parts that were written
	moved   []int       // by part: its number among those that were written, -1 for an evicted one
	splices []wire.Edit // of the current message
}

func newRenderer(h *history, p *Plan) *renderer {
	r := &renderer{
		history: h,
		plan:    p,
		edits:   p.edits,
		starts:  h.startsOf(p.covered),
		pinned:  h.systemMessages(),
		body:    make([]byte, 0, p.size()),
		written: make([]int, p.covered),
		moved:   slices.Repeat([]int{-1}, len(h.parts)),
	}
	next := 0
	for m := range r.written {
		if p.eviction != nil && m == p.eviction.begin {
			next++ // the message that replaces the evicted ones
		}
		if r.written[m] = next; p.evicts(m) {
			r.written[m] = -1
			continue
		}
		next++
	}
	r.state = newStateWriter(h.in.Format, p.Entered, next)
	return r
}

// writeEviction writes the message that replaces the evicted ones.
func (r *renderer) writeEviction(d *eviction) {
	offset := r.begin()
	r.body = append(r.body, d.body...)
	at := message{
		seq: d.from, size: len(d.body), tokens: d.tokens, now: d.now, role: other, begins: true, whole: true,
		coverage: d.coverage,
	}
	r.unit(d.begin, &at, offset)
	r.state.message(&at)
}

// begin separates the next message from the one before, and returns its offset.
func (r *renderer) begin() int {
	if len(r.body) > 0 {
		r.body = append(r.body, ',')
	}
	return len(r.body)
}

func (r *renderer) message(m int) {
	offset, at := r.begin(), r.messages[m]
	n := 0
	for n < len(r.edits) && r.history.parts[r.edits[n].part].message == m {
		n++
	}
	edits := r.edits[:n]
	r.edits = r.edits[n:]
	r.splices = r.plan.splices(r.splices[:0], edits)
	r.body = wire.Replace(r.body, r.history.body(m), r.splices)
	d := r.plan.eviction
	at.size = len(r.body) - offset
	at.whole = r.starts[m] || d != nil && (m == d.kept || m == d.end || d.keeps(m) && d.evicts(m-1))
	r.unit(m, &at, offset)
	r.state.message(&at)
	r.writeParts(&at, edits)
}

// writeParts writes the parts of a message, whose values have moved by what the edits before them have changed.
func (r *renderer) writeParts(at *message, edits []edit) {
	moved := 0
	for i := at.first; i < at.last; i++ {
		p := r.history.parts[i]
		size := p.valueBytes()
		if size > 0 { // a part without a value has no place
			p.value.Start += moved
		}
		if len(edits) > 0 && edits[0].part == i {
			e := edits[0]
			p.value.Start += e.lead
			moved += e.end - e.start - size
			size = e.end - e.start - e.lead - e.trail
			edits = edits[1:]
		}
		p.value.End = p.value.Start + size
		r.moved[i] = r.parts
		if p.call >= 0 {
			p.call = r.moved[p.call]
		}
		r.state.part(&p, r.parts)
		r.parts++
	}
}

// unit counts a message into the unit that it belongs to.
func (r *renderer) unit(m int, at *message, offset int) {
	if at.whole {
		u := Unit{Offset: offset, FirstSeq: at.seq, Pinned: m < r.pinned}
		if at.coversOthers() {
			u.FirstSeq, u.Messages = at.from, at.messages-1
			u.Pinned = true
		}
		r.units = append(r.units, u)
	}
	u := &r.units[len(r.units)-1]
	u.Pinned = u.Pinned || !at.coversOthers() && (m == r.compaction || r.plan.state != nil && r.plan.state.spared[m])
	if !at.continues {
		u.Messages++
	}
	u.Tokens += int64(at.now)
}

// openCalls returns the calls of messages that are kept, with their new numbers.
func (r *renderer) openCalls(open []call) []call {
	kept := open[:0]
	for _, c := range open {
		if c.message = r.written[c.message]; c.message < 0 {
			continue
		}
		if c.part >= 0 {
			c.part = r.moved[c.part]
		}
		kept = append(kept, c)
	}
	return kept
}
