package compact

import (
	"errors"
	"fmt"
	"slices"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/units"
	"github.com/varve-dev/varve/internal/wire"
)

// history has a session's messages with their tool results and large calls, as far as the stages need them: those of
// the base from its state, those of the tail from their bytes. Its slices are indexed by message and by part.
type history struct {
	in       Input
	messages []message
	parts    []part
	open     units.Pairer[call] // the calls without a result
	units    units.Tracker
	entered  []int64      // by stage: the message at which the base's history first needed it, 0 for none
	tail     []wire.Facts // of the tail, where a summary may need them
	based    int          // how many of the messages are in the base
}

type message struct {
	seq         int64
	offset      int // in the base's body
	size        int
	tokens      int // originally
	now         int // of what the view has of it
	role        role
	begins      bool // a unit began with it when it came
	whole       bool // base only: a unit begins with it, even after late answers have joined others
	unit        int  // how many units had begun with it
	calls       int  // tail only: how many calls it makes
	first, last int  // its parts are parts[first:last]
	coverage
}

// coverage tells which messages a summary or a notice replaces; zero for a message of the log.
type coverage struct {
	from     int64 // the first of them
	to       int64 // the last of them
	messages int   // their number
	inner    span  // where the summary is in the decoded text, empty for a notice
}

// span is a half-open range.
type span struct{ start, end int }

func (c *coverage) coversOthers() bool { return c.messages > 0 }

// cover adds a message, or those that it covers.
func (c *coverage) cover(m *message) {
	first, messages := m.seq, 1
	if m.coversOthers() {
		first, messages = m.from, m.messages
	}
	if c.from == 0 || first < c.from {
		c.from = first
	}
	c.to = max(c.to, m.through())
	c.messages += messages
}

// through returns the last seq that a message of the view accounts for.
func (m *message) through() int64 { return max(m.seq, m.to) }

// role is what decisions need of a message's role.
type role uint8

const (
	other role = iota
	system
	user // its message does not answer calls
	assistant
)

// call is a tool call that waits for its result.
type call struct {
	subject
	id      string
	message int
	unit    int
	index   int // of the part in its message
	part    int // its number among the history's parts, -1 for a call that is too small to be one
}

// kind is the kind of a part.
type kind uint8

const (
	result    kind = iota // a tool's result: its content may be replaced
	arguments             // a call with large arguments: they may be omitted
)

// part is a piece of a message that stages may shorten, and what has become of it.
type part struct {
	subject
	kind        kind
	message     int
	index       int       // of the part in its message
	value       wire.Span // of its content or its arguments, in the message
	callID      string
	paired      bool // a result that answers a call, a call that has an answer; no stage touches others
	usable      bool // a result that succeeded and has content, so that it can supersede an older one
	asked       int  // tail only, a result: the message of its call, -1 for an orphan
	askedAt     int  // the part of that message
	call        int  // a result: the number of its call among the parts, -1 if the call is not one
	tokens      int  // of the whole
	now         int  // of what the view has of it
	action      ActionKind
	replacement // zero while action is Keep
}

// valueBytes returns how many bytes the part's value has in its message.
func (p *part) valueBytes() int { return p.value.End - p.value.Start }

// replacement is what the state remembers of a part that is no longer whole in the view.
type replacement struct {
	stage     string
	sum       [32]byte
	capped    int // as in the proposal
	collapsed int
	bytes     int // of the whole
	chars     int
	onlyText  bool // the whole was nothing but text
	head      int  // characters of head and tail that were asked for
	tail      int
	headBytes int // before and after the line between them, decoded
	tailBytes int
	preview   string
}

var errOrder = errors.New("compact: the messages are not in the order of their seqs")

// readHistory reads a base and a tail. stages is how many stages a run has.
func readHistory(in Input, stages int) (*history, error) {
	h := &history{in: in, entered: make([]int64, stages)}
	h.units.Items = in.Format == session.OpenAIResponses
	if in.Base != nil {
		if err := h.restore(in.Base); err != nil {
			return nil, err
		}
	}
	h.messages = slices.Grow(h.messages, len(in.Tail))
	h.parts = slices.Grow(h.parts, len(in.Tail))
	reader := newPartReader(&in.Policy)
	for i := range in.Tail {
		e := &in.Tail[i]
		if !h.follows(e) {
			return nil, fmt.Errorf("%w: %d", errOrder, e.Seq)
		}
		found, err := reader.messages.Read(in.Format, e.Body, e.Tokens)
		if err != nil {
			return nil, fmt.Errorf("compact: message %d: %w", e.Seq, err)
		}
		h.add(e, &found, reader)
		if in.Policy.Summarise.Enabled {
			h.tail = append(h.tail, found)
		}
	}
	return h, nil
}

// follows reports whether e may be the next message.
func (h *history) follows(e *Entry) bool {
	n := len(h.messages)
	switch {
	case e.Seq < 1:
		return false
	case n == 0 || e.Seq > h.messages[n-1].seq:
		return e.Part == 0
	}
	return e.Seq == h.messages[n-1].seq && e.Part > 0
}

// body returns the bytes of a message as the view has them.
func (h *history) body(m int) []byte {
	if m >= h.based {
		return h.in.Tail[m-h.based].Body
	}
	from := h.messages[m].offset
	return h.in.Base.Body[from : from+h.messages[m].size]
}

// ref returns the ref of a part whose content is known.
func (h *history) ref(p *part, content *replacement) session.ResultRef {
	return session.NewResultRef(h.messages[p.message].seq, p.index, content.sum)
}

// add appends a message of the tail.
func (h *history) add(e *Entry, found *wire.Facts, reader *partReader) {
	m := message{
		seq: e.Seq, size: len(e.Body), tokens: e.Tokens, now: e.Tokens, role: roleOf(found), first: len(h.parts),
	}
	m.begins = h.units.Add(units.Message{
		Assistant: m.role == assistant, StartsUnit: found.StartsUnit, Continues: e.Part > 0,
	})
	m.unit = h.units.Unit()
	for i := range found.Parts {
		switch at := &found.Parts[i]; at.Kind {
		case wire.Result:
			r := resultPart(e.Body, at)
			r.index += e.Part
			h.answer(&m, r)
		case wire.Call:
			h.ask(&m, e, at, reader)
		}
	}
	m.last = len(h.parts)
	h.messages = append(h.messages, m)
}

// ask records a call of message m, and makes it a part if its arguments are large.
func (h *history) ask(m *message, e *Entry, at *wire.Part, reader *partReader) {
	c := call{
		subject: reader.subject(e.Body, at), id: at.CallID, message: len(h.messages), unit: m.unit,
		index: at.Index + e.Part, part: -1,
	}
	if at.Value.End-at.Value.Start > reader.maxArgument && !at.Fixed {
		c.part = len(h.parts)
		h.parts = append(h.parts, part{
			subject: c.subject, kind: arguments, message: c.message, index: c.index, value: at.Value, callID: at.CallID,
			asked: -1, call: -1, tokens: at.Tokens, now: at.Tokens,
		})
	}
	h.open.Call(c.id, c.tool, c)
	h.units.Called(c.unit)
	m.calls++
}

// answer pairs a result of message m with its call.
func (h *history) answer(m *message, r part) {
	r.message = len(h.messages)
	if c, ok := h.open.Answer(r.callID, r.tool); ok {
		h.units.Answered(c.unit)
		if c.message == r.message {
			m.calls--
		}
		r.subject = c.subject
		r.asked, r.askedAt = c.message, c.index
		// Messages of the AI SDK hold the results of their own calls.
		r.paired = m.role != assistant || h.in.Format == session.AISDK
		if r.paired && c.part >= 0 {
			r.call = c.part
			h.parts[c.part].paired, h.parts[c.part].subject = true, c.subject
		}
	}
	h.parts = append(h.parts, r)
}

func roleOf(found *wire.Facts) role {
	switch {
	case found.Flags&wire.FlagPinned != 0:
		return system
	case found.Role == "assistant" || found.Role == "model":
		return assistant
	case found.Role == "user" && found.StartsUnit && !answers(found):
		return user
	}
	return other
}

func answers(found *wire.Facts) bool {
	for i := range found.Parts {
		if found.Parts[i].Kind == wire.Result {
			return true
		}
	}
	return false
}
