package compact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/varve-dev/varve/internal/compact/failure"
	"github.com/varve-dev/varve/internal/units"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
)

var errOrder = errors.New("compact: the messages are not in the order of their seqs")

// readHistory reads a base and a tail, until ctx ends. stages is how many stages a run has.
func readHistory(ctx context.Context, in Input, stages int) (*history, error) {
	h := &history{
		in: in, entered: make([]int64, stages), provider: provider.Of(in.Format),
		count: counter{in.Policy.Tokens.Tokenizer},
		facts: map[int]*wire.Facts{}, reader: &wire.Reader{},
	}
	h.units.Items = h.provider.Items
	if in.Base != nil {
		if err := h.restore(in.Base); err != nil {
			return nil, err
		}
	}
	h.messages = slices.Grow(h.messages, len(in.Tail))
	h.parts = slices.Grow(h.parts, len(in.Tail))
	reader := newPartReader(&in.Policy)
	pins := pinningOf(&in.Policy.Pins)
	for i := range in.Tail {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e := &in.Tail[i]
		if !h.follows(e) {
			return nil, fmt.Errorf("%w: %d", errOrder, e.Seq)
		}
		found, err := reader.messages.Read(in.Format, e.Body, e.Tokens)
		if err != nil {
			return nil, fmt.Errorf("compact: message %d: %w", e.Seq, err)
		}
		if !h.count.estimates() {
			h.count.message(in.Format, e.Body, &found)
			counted := *e
			e = &counted
			e.Tokens = found.Tokens
		}
		h.add(e, &found, reader)
		h.findPins(e, &found, pins)
		if in.Policy.Summarise.Enabled {
			h.tail = append(h.tail, found)
		}
	}
	h.compaction = h.compactionAt()
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

// add appends a message of the tail.
func (h *history) add(e *Entry, found *wire.Facts, reader *partReader) {
	m := message{
		seq: e.Seq, size: len(e.Body), tokens: e.Tokens, now: e.Tokens, role: roleOf(found), first: len(h.parts),
		continues: e.Part > 0,
	}
	m.begins = h.units.Add(units.Message{
		Assistant: m.role == assistant, StartsUnit: found.StartsUnit, Continues: e.Part > 0 && !e.Step,
	})
	m.unit = h.units.Unit()
	if m.begins {
		h.open.Turn()
	}
	for i := range found.Parts {
		switch at := &found.Parts[i]; at.Kind {
		case wire.Result:
			r := resultPart(e.Body, at)
			r.setPlace(e, at.Index)
			h.answer(&m, e.Body, r)
		case wire.Call:
			h.ask(&m, e, at, reader)
		case wire.Text:
			h.addProse(&m, e, at)
		}
	}
	m.last = len(h.parts)
	h.messages = append(h.messages, m)
}

// setPlace sets where the log has a part, whose number in its entry is index.
func (p *part) setPlace(e *Entry, index int) {
	p.seq, p.index = placeOf(e, index)
	if e.Appended != nil {
		at := &e.Appended[index]
		p.appended = at.SHA256
		p.foreign = at.SHA256 != [32]byte{} || at.Seq != e.Seq
	}
}

// proseShare is the share of the window above which a text is a part.
const proseShare = 1.0 / 16

// addProse makes a text of message m a part if it is very large, and if the policy may want to cut it.
func (h *history) addProse(m *message, e *Entry, at *wire.Part) {
	large := float64(at.Tokens) > proseShare*float64(h.in.WindowTokens)
	value := at.Value.Of(e.Body)
	if !h.in.Policy.Protect.Yields || !large || m.role == system || len(value) == 0 || value[0] != '"' {
		return
	}
	p := part{
		kind: prose, message: len(h.messages), value: at.Value, asked: -1, call: -1, tokens: at.Tokens, now: at.Tokens,
	}
	p.setPlace(e, at.Index)
	h.parts = append(h.parts, p)
}

// ask records a call of message m, and makes it a part if its arguments are large.
func (h *history) ask(m *message, e *Entry, at *wire.Part, reader *partReader) {
	c := call{
		subject: reader.subject(e.Body, at), id: at.CallID, message: len(h.messages), unit: m.unit,
		index: at.Index + e.Part, part: -1,
	}
	if at.Value.End-at.Value.Start > reader.maxArgument && !at.Fixed {
		c.part = len(h.parts)
		p := part{
			subject: c.subject, kind: arguments, message: c.message, value: at.Value, callID: at.CallID,
			asked: -1, call: -1, tokens: at.Tokens, now: at.Tokens,
		}
		p.setPlace(e, at.Index)
		h.parts = append(h.parts, p)
	}
	h.open.Call(c.id, c.tool, c)
	h.units.Called(c.unit)
	m.calls++
}

// answer pairs a result of message m with its call.
func (h *history) answer(m *message, body []byte, r part) {
	r.message = len(h.messages)
	if c, ok := h.open.Answer(r.callID, r.tool); ok {
		h.units.Answered(c.unit)
		if c.message == r.message {
			m.calls--
		}
		r.subject = c.subject
		r.asked, r.askedAt = c.message, c.index
		r.paired = m.role != assistant || h.provider.OwnResults
		r.origin = h.originOf(body, &r)
		if r.usable && !h.provider.FlagsErrors {
			r.usable = !h.failed(body, &r)
		}
		if r.paired && c.part >= 0 {
			r.call = c.part
			h.parts[c.part].paired, h.parts[c.part].subject = true, c.subject
		}
	}
	h.parts = append(h.parts, r)
}

// failed reports whether the text of a result shows that its tool failed, in a format that has no flag for it.
func (h *history) failed(body []byte, r *part) bool {
	text := edgesOf(r.value.Of(body))
	if text == nil {
		at := wire.Part{Kind: wire.Result, Index: r.index, Value: r.value}
		text = wire.ResultText(h.in.Format, body, at).Text
	}
	return failure.Shows(text, r.does.runs(), h.in.Policy.Tools.Errors)
}

// edgesOf returns about the first and the last 1,000 characters of a long string literal that is no object, where a
// failure shows. It decodes line ends alone.
func edgesOf(literal []byte) []byte {
	const edge = 1100
	if len(literal) < 3*edge || literal[0] != '"' || literal[1] == '{' {
		return nil
	}
	edges := make([]byte, 0, 2*edge+1)
	edges = append(append(append(edges, literal[1:edge]...), '\n'), literal[len(literal)-edge:len(literal)-1]...)
	return bytes.ReplaceAll(edges, []byte(`\n`), []byte("\n"))
}

// resultPart returns a result as a part; its message is set later.
func resultPart(body []byte, at *wire.Part) part {
	empty := false
	switch string(at.Value.Of(body)) {
	case "", `""`, "[]", "null":
		empty = true
	}
	return part{
		subject: subject{tool: at.Name}, kind: result, index: at.Index, value: at.Value, callID: at.CallID,
		usable: !empty && !at.IsError, asked: -1, call: -1, tokens: at.Tokens, now: at.Tokens,
	}
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
