package compact

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/varve-dev/varve/internal/compact/memory"
	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/units"
)

// A checkpoint's state saves the next compaction from parsing the bodies and replacements of the view. It holds, in
// this order: the header, the messages with their parts, the open calls, the summary that
// the view waits for, the memory, and the CRC-32C of all that (4 bytes, little endian). The methods of codec below list
// the values. Numbers are unsigned varints unless a method says otherwise, strings have their length before them. A
// tool, stage, resource or path is 0 and the string the first time, and 1 + its number in the order of first times
// afterwards.
const stateVersion = 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// newStateWriter begins the state of a checkpoint with a number of messages.
func newStateWriter(f session.Format, entered []int64, messages int) *codec {
	c := &codec{writing: true, bytes: make([]byte, 0, 64+messages*64), numbers: map[string]uint64{}}
	c.header(f, entered)
	c.count(messages)
	return c
}

// header handles the beginning of a state and reports whether it is that of this version, format and number of stages.
func (c *codec) header(f session.Format, entered []int64) bool {
	version, format, stages := c.byte(stateVersion), int(f.Number()), len(entered)
	c.ints(&format, &stages)
	if version != stateVersion || format != int(f.Number()) || stages != len(entered) {
		return false
	}
	for i := range entered {
		c.int64s(&entered[i])
	}
	return true
}

// message handles a message and returns the number of its parts.
func (c *codec) message(m *message) (parts int) {
	step := m.seq - c.seq
	c.int64s(&step)
	c.seq += step
	m.seq = c.seq
	c.ints(&m.size)
	covers := m.coversOthers()
	m.role = role(c.flags(byte(m.role), 2, &m.begins, &m.whole, &covers, &m.continues))
	c.ints(&m.tokens, &m.now)
	if covers {
		c.int64s(&m.from, &m.to)
		c.ints(&m.messages, &m.inner.start, &m.inner.end)
		c.largest(&m.coverage)
		c.segments(&m.coverage)
		c.pinned(&m.coverage)
	}
	return c.count(m.last - m.first)
}

// largest handles the results that a summary or a notice names.
func (c *codec) largest(of *coverage) {
	of.largest = sized(c, of.largest)
	for i := range of.largest {
		r := &of.largest[i]
		c.text(&r.ref)
		c.name(&r.tool)
		c.ints(&r.tokens)
	}
}

// segmentStates are the states of a segment by their number.
var segmentStates = []SegmentState{Written, Due, Failed}

// segments handles the summaries of a message.
func (c *codec) segments(of *coverage) {
	of.segments = sized(c, of.segments)
	for i := range of.segments {
		g := &of.segments[i]
		c.int64s(&g.from, &g.to)
		c.ints(&g.messages, &g.replaced, &g.text.start, &g.present, &g.text.end, &g.tokens, &g.ofPresent, &g.generation)
		c.name(&g.writer)
		asked := g.digest != summary.Digest{}
		state := c.flags(byte(max(slices.Index(segmentStates, g.state), 0)), 2, &asked)
		if g.text.start > g.present || g.present > g.text.end || int(state) >= len(segmentStates) {
			c.fail()
			return
		}
		g.state = segmentStates[state]
		if asked {
			c.digest(g.digest[:])
		}
		g.flags = sized(c, g.flags)
		for k := range g.flags {
			c.name(&g.flags[k])
		}
	}
}

// waiting handles the summary that the view waits for.
func (c *codec) waiting(p *pending) {
	c.int64s(&p.first, &p.last, &p.kept)
	c.ints(&p.shown)
	if p.last > 0 {
		c.digest(p.digest[:])
	}
}

// part handles a part. number is its own; that of its call is counted in the same way.
func (c *codec) part(p *part, number int) {
	size := p.valueBytes()
	c.ints(&p.index, &p.value.Start, &size)
	p.value.End = p.value.Start + size
	copied := p.source != ""
	p.kind = kind(c.flags(byte(p.kind), 2, &p.paired, &p.usable, &p.onlyText, &p.readBack, &copied, &p.foreign))
	if copied {
		c.text(&p.source)
	}
	c.placeOf(p)
	p.action = ActionKind(c.byte(byte(p.action)))
	c.text(&p.callID)
	c.name(&p.tool)
	c.ints(&p.tokens)
	if p.paired {
		c.subject(&p.subject)
		c.callOf(p, number)
	}
	if p.action == Keep {
		p.now = p.tokens
		return
	}
	c.ints(&p.now)
	c.name(&p.stage)
	c.digest(p.sum[:])
	c.ints(&p.capped, &p.collapsed, &p.bytes, &p.chars, &p.head, &p.tail, &p.headBytes, &p.tailBytes)
	c.text(&p.preview)
}

// placeOf handles which message of the log has a part, and what that has of a foreign part.
func (c *codec) placeOf(p *part) {
	earlier := c.seq - p.seq
	if p.foreign {
		c.int64s(&earlier)
		c.digest(p.appended[:])
	} else {
		earlier = 0
	}
	p.seq = c.seq - earlier
}

// callOf handles the distance of a result from its call, 0 if the call is not a part.
func (c *codec) callOf(p *part, number int) {
	back := 0
	if p.call >= 0 {
		back = number - p.call
	}
	c.ints(&back)
	switch {
	case back == 0:
		p.call = -1
	case back > number:
		c.fail()
	default:
		p.call = number - back
	}
}

func (c *codec) subject(s *subject) {
	if s.does = does(c.byte(byte(s.does))); int(s.does) >= len(policy.Operations) {
		s.does = 0
		c.fail()
		return
	}
	c.digest(s.identity[:])
	c.name(&s.resource)
	c.name(&s.detail)
	s.paths = sized(c, s.paths)
	for i := range s.paths {
		c.name(&s.paths[i])
	}
}

func (c *codec) call(o *call) {
	part := o.part + 1
	c.ints(&o.message, &o.index, &part)
	o.part = part - 1
	c.text(&o.id)
	c.name(&o.tool)
	c.subject(&o.subject)
}

// end writes the open calls, the summary that is waited for, the pins and the memory, and returns the whole state.
func (c *codec) end(open []call, waits pending, found []Pin, remembered *memory.Memory) []byte {
	c.count(len(open))
	for i := range open {
		c.call(&open[i])
	}
	c.waiting(&waits)
	c.foundPins(&found)
	encoded := remembered.Encode()
	c.bytes = binary.AppendUvarint(slices.Grow(c.bytes, len(encoded)+2*binary.MaxVarintLen64), uint64(len(encoded)))
	c.bytes = append(c.bytes, encoded...)
	return binary.LittleEndian.AppendUint32(c.bytes, crc32.Checksum(c.bytes, castagnoli))
}

// restore fills an empty history from a checkpoint.
func (h *history) restore(base *Checkpoint) error {
	end := len(base.State) - 4
	if end >= 0 && crc32.Checksum(base.State[:end], castagnoli) == binary.LittleEndian.Uint32(base.State[end:]) &&
		h.decode(base, base.State[:end]) {
		return nil
	}
	return fmt.Errorf("%w: checkpoint through message %d", errState, base.Through)
}

// decode reads a state and reports whether it is one of the base's body.
func (h *history) decode(base *Checkpoint, state []byte) bool {
	c := &codec{rest: string(state)}
	if !c.header(h.in.Format, h.entered) {
		return false
	}
	n := c.count(0)
	h.messages = make([]message, 0, n+len(h.in.Tail))
	for offset := 0; n > 0 && c.err == nil; n-- {
		offset += h.decodeMessage(c, offset) + 1
	}
	unit := 0
	for range c.count(0) {
		var open call
		if c.call(&open); c.err != nil || open.message >= len(h.messages) || open.part >= len(h.parts) {
			return false
		}
		if open.unit = h.messages[open.message].unit; open.unit != unit {
			h.open.Turn()
		}
		unit = open.unit
		h.open.Call(open.id, open.tool, open)
		h.units.Called(open.unit)
	}
	h.based = len(h.messages)
	c.waiting(&h.pending)
	h.awaited = h.pending
	c.foundPins(&h.marked)
	encoded := ""
	c.text(&encoded)
	remembered, err := memory.Decode(encoded)
	if err != nil {
		return false
	}
	h.memory = remembered
	return c.err == nil && c.rest == "" && h.describes(base)
}

// decodeMessage reads a message with its parts and returns its size.
func (h *history) decodeMessage(c *codec, offset int) int {
	m := message{offset: offset, first: len(h.parts)}
	for range c.message(&m) {
		p := part{message: len(h.messages), asked: -1, call: -1}
		c.part(&p, len(h.parts))
		if p.value.End > m.size || p.kind > prose || p.action > Omit || p.headBytes+p.tailBytes > p.valueBytes() {
			c.fail()
		}
		h.parts = append(h.parts, p)
	}
	m.last = len(h.parts)
	h.units.Add(units.Message{Assistant: m.role == assistant, StartsUnit: m.begins, Continues: !m.begins})
	m.unit = h.units.Unit()
	h.messages = append(h.messages, m)
	return m.size
}

// describes reports whether what was restored fits the checkpoint's other fields.
func (h *history) describes(base *Checkpoint) bool {
	if len(h.messages) == 0 {
		return len(base.Body) == 0 && base.Through == 0
	}
	through := int64(0) // a message of the user may come after those that a summary covers
	for i := range h.messages {
		through = max(through, h.messages[i].through())
	}
	first, last := &h.messages[0], &h.messages[len(h.messages)-1]
	return last.offset+last.size == len(base.Body) && through == base.Through && first.whole && first.begins
}
