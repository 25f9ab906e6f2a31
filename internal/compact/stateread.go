package compact

import (
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/units"
	"github.com/varve-dev/varve/internal/wire"
)

// decode reports whether state is one of the base's body.
func (h *history) decode(base *Checkpoint, state []byte) bool {
	r := stateReader{rest: string(state)}
	if r.byte() != stateVersion || r.int() != int(h.in.Format.Number()) || r.int() != len(h.entered) {
		return false
	}
	for i := range h.entered {
		h.entered[i] = int64(r.int())
	}
	n := r.count()
	h.messages = make([]message, 0, n+len(h.in.Tail))
	for offset := 0; n > 0 && r.err == nil; n-- {
		m := r.message()
		m.offset, m.first = offset, len(h.parts)
		for range r.count() {
			h.parts = append(h.parts, r.part(len(h.messages), m.size, h.parts))
		}
		m.last = len(h.parts)
		offset += m.size + 1
		h.units.Add(units.Message{Assistant: m.role == assistant, StartsUnit: m.begins, Continues: !m.begins})
		m.unit = h.units.Unit()
		h.messages = append(h.messages, m)
	}
	for range r.count() {
		c := r.call(len(h.messages), len(h.parts))
		if r.err != nil {
			break
		}
		c.unit = h.messages[c.message].unit
		h.open.Call(c.id, c.tool, c)
		h.units.Called(c.unit)
	}
	h.based = len(h.messages)
	return r.err == nil && r.rest == "" && h.describes(base)
}

// describes reports whether what was restored fits the checkpoint's other fields.
func (h *history) describes(base *Checkpoint) bool {
	if len(h.messages) == 0 {
		return len(base.Body) == 0 && base.Through == 0
	}
	through := int64(0) // a message of the user may stay behind those that a summary stands for
	for i := range h.messages {
		through = max(through, h.messages[i].through())
	}
	last := &h.messages[len(h.messages)-1]
	return last.offset+last.size == len(base.Body) && through == base.Through && h.messages[0].whole && h.messages[0].begins
}

// stateReader reads what stateWriter wrote. After the first thing that does not fit it returns zeros.
type stateReader struct {
	rest  string
	names []string
	seq   int64
	err   error
}

// most bounds every number in a state, so that sums of them cannot overflow.
const maxNumber = 1 << 40

func (r *stateReader) int() int {
	v, shift := uint64(0), 0
	for i := 0; i < len(r.rest) && i < 7; i++ {
		b := r.rest[i]
		v |= uint64(b&0x7F) << shift
		if shift += 7; b < 0x80 && v < maxNumber {
			r.rest = r.rest[i+1:]
			return int(v)
		}
	}
	r.fail()
	return 0
}

func (r *stateReader) fail() {
	r.rest, r.err = "", errState
}

// count reads how many of something come, of which each has a byte at least.
func (r *stateReader) count() int {
	n := r.int()
	if n > len(r.rest) {
		r.fail()
		return 0
	}
	return n
}

func (r *stateReader) text() string { return r.take(r.int()) }

func (r *stateReader) take(n int) string {
	if n > len(r.rest) {
		r.fail()
		return ""
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

func (r *stateReader) byte() byte {
	s := r.take(1)
	if s == "" {
		return 0
	}
	return s[0]
}

func (r *stateReader) name() string {
	n := r.int()
	switch {
	case n == 0:
		r.names = append(r.names, r.text())
		n = len(r.names)
	case n > len(r.names):
		r.fail()
		return ""
	}
	return r.names[n-1]
}

func (r *stateReader) message() message {
	r.seq += int64(r.int())
	m := message{seq: r.seq, size: r.int()}
	flags := r.byte()
	m.role, m.begins, m.whole = role(flags&roleMask), flags&flagBegins != 0, flags&flagWhole != 0
	m.tokens, m.now = r.int(), r.int()
	if flags&flagStandsIn != 0 {
		m.from, m.to, m.messages = int64(r.int()), int64(r.int()), r.int()
		m.inner = span{r.int(), r.int()}
	}
	return m
}

func (r *stateReader) part(message, size int, before []part) part {
	p := part{message: message, index: r.int(), asked: -1, call: -1}
	start, length := r.int(), r.int()
	p.value = wire.Span{Start: start, End: start + length}
	flags := r.byte()
	if flags&flagArguments != 0 {
		p.kind = arguments
	}
	p.action, p.paired, p.usable, p.replacement.onlyText = ActionKind(r.byte()), flags&flagPaired != 0, flags&flagUsable != 0, flags&flagText != 0
	p.callID, p.tool, p.tokens = r.text(), r.name(), r.int()
	p.now = p.tokens
	if p.paired {
		r.subject(&p.subject)
		if back := r.int(); back > len(before) {
			r.fail()
		} else if back > 0 {
			p.call = len(before) - back
		}
	}
	if p.action != Keep {
		r.replacement(&p)
	}
	if p.value.End > size || p.action > Omit || p.headBytes+p.tailBytes > length {
		r.fail()
	}
	return p
}

func (r *stateReader) replacement(p *part) {
	p.now, p.stage = r.int(), r.name()
	copy(p.sum[:], r.take(len(p.sum)))
	p.capped, p.collapsed, p.bytes, p.chars = r.int(), r.int(), r.int(), r.int()
	p.head, p.tail, p.headBytes, p.tailBytes = r.int(), r.int(), r.int(), r.int()
	p.preview = r.text()
}

func (r *stateReader) subject(s *subject) {
	if s.does = does(r.byte()); int(s.does) >= len(policy.Operations) {
		r.fail()
		return
	}
	copy(s.identity[:], r.take(len(s.identity)))
	s.resource = r.name()
	for range r.count() {
		s.paths = append(s.paths, r.name())
	}
}

func (r *stateReader) call(messages, parts int) call {
	c := call{message: r.int(), index: r.int(), part: r.int() - 1, id: r.text()}
	c.tool = r.name()
	r.subject(&c.subject)
	if c.message >= messages || c.part >= parts {
		r.fail()
	}
	return c
}
