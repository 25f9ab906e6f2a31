package compact

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// history is a session's messages and tool results, as far as the stages need to know them: those of the base from its
// state, those of the tail from their bytes. Its slices are indexed by message and by result.
type history struct {
	in       Input
	messages []message
	results  []result
	open     map[string][]call // calls without an answer by id, the newest last
	based    int               // how many of the messages are in the base
	units    int               // how many units have begun
	asked    int               // the newest assistant message, -1 for none
	waiting  int               // calls of asked without an answer
}

type message struct {
	seq         int64
	offset      int // in the base's body
	size        int
	tokens, now int // originally, and of what stands in the view
	role        role
	begins      bool // a unit began with it when it came
	whole       bool // base only: a unit begins with it although late answers have joined others
	unit        int  // how many units had begun with it
	calls       int  // tail only: how many calls it makes
	first, last int  // its results are results[first:last]
}

// role is as much of a message's role as decisions need.
type role uint8

const (
	other role = iota
	system
	user // not one that answers calls
	assistant
)

// call is a tool call that waits for its result.
type call struct {
	id, tool string
	identity identity
	message  int
	part     int
}

// identity is equal for calls of the same tool with the same arguments.
type identity [16]byte

// result is a tool result and what has become of it.
type result struct {
	message  int
	part     int
	value    wire.Span // of its content, in the message
	callID   string
	tool     string
	identity identity
	paired   bool // false: an orphan or an assistant's own, which no stage touches
	usable   bool // it succeeded and has content, so it can take the place of an older one
	asked    int  // tail only: the message and the part of its call, -1 for an orphan
	askedAt  int
	tokens   int // of the whole result
	now      int // of what stands in the view
	do       Do
	left     // zero while do is Keep
}

// left is what is kept in mind of a result that is not whole in the view any more.
type left struct {
	stage      string
	sum        [32]byte
	chars      int  // of the whole result
	text       bool // the whole result was nothing but text
	head, tail int  // characters that were asked for
	headBytes  int  // what stands before and behind the line of a bookend, decoded
	tailBytes  int
	preview    string
}

// readHistory reads a base and a tail.
func readHistory(in Input) (*history, error) {
	h := &history{in: in, open: map[string][]call{}, asked: -1}
	if in.Base != nil {
		if err := h.restore(in.Base); err != nil {
			return nil, err
		}
	}
	h.messages, h.results = slices.Grow(h.messages, len(in.Tail)), slices.Grow(h.results, len(in.Tail))
	var reader partReader
	for i := range in.Tail {
		e := &in.Tail[i]
		if n := len(h.messages); n > 0 && e.Seq <= h.messages[n-1].seq || e.Seq < 1 {
			return nil, fmt.Errorf("%w: %d", errOrder, e.Seq)
		}
		found, err := wire.Inspect(in.Format, e.Body)
		if err != nil {
			return nil, fmt.Errorf("compact: message %d: %w", e.Seq, err)
		}
		h.add(e, &found, &reader)
	}
	return h, nil
}

// body returns the bytes of a message as they stand in the view.
func (h *history) body(m int) []byte {
	if m >= h.based {
		return h.in.Tail[m-h.based].Body
	}
	from := h.messages[m].offset
	return h.in.Base.Body[from : from+h.messages[m].size]
}

// ref names a result whose content is known.
func (h *history) ref(r *result, content *left) session.ResultRef {
	return session.NewResultRef(h.messages[r.message].seq, r.part, content.sum)
}

// add appends a message of the tail.
func (h *history) add(e *Entry, found *wire.Message, reader *partReader) {
	m := message{seq: e.Seq, size: len(e.Body), tokens: e.Tokens, now: e.Tokens, role: roleOf(found), first: len(h.results)}
	m.begins = h.begins(m.role, found.StartsUnit)
	for i := range found.Parts {
		switch part := &found.Parts[i]; part.Kind {
		case wire.Result:
			h.answer(&m, reader.result(e.Body, part))
		case wire.Call:
			c := reader.call(e.Body, part)
			c.message = len(h.messages)
			h.open[c.id] = append(h.open[c.id], c)
			m.calls++
		}
	}
	m.last = len(h.results)
	h.push(m)
}

// answer pairs a result of message m with the nearest call before it that has its id and no answer yet.
func (h *history) answer(m *message, r result) {
	r.message, r.asked = len(h.messages), -1
	if calls := h.open[r.callID]; len(calls) > 0 {
		c := calls[len(calls)-1]
		h.open[r.callID] = calls[:len(calls)-1]
		switch c.message {
		case r.message:
			m.calls--
		case h.asked:
			h.waiting--
		}
		r.tool, r.identity, r.asked, r.askedAt = c.tool, c.identity, c.message, c.part
		r.paired = m.role != assistant
	}
	h.results = append(h.results, r)
}

func roleOf(found *wire.Message) role {
	switch {
	case found.Flags&wire.FlagPinned != 0:
		return system
	case found.Role == "assistant":
		return assistant
	case found.Role == "user" && found.StartsUnit && !answers(found):
		return user
	}
	return other
}

func answers(found *wire.Message) bool {
	for i := range found.Parts {
		if found.Parts[i].Kind == wire.Result {
			return true
		}
	}
	return false
}

// partReader reads calls and results out of messages. Its buffers are reused from one to the next.
type partReader struct{ unquoted, canonical []byte }

func (p *partReader) result(body []byte, part *wire.Part) result {
	empty := false
	switch string(body[part.Value.Start:part.Value.End]) {
	case "", `""`, "[]", "null":
		empty = true
	}
	return result{
		part: part.Index, value: part.Value, callID: part.CallID, tool: part.Name,
		usable: !empty && !part.IsError, tokens: part.Tokens, now: part.Tokens,
	}
}

func (p *partReader) call(body []byte, part *wire.Part) call {
	p.canonical = append(append(p.canonical[:0], part.Name...), 0)
	if value := body[part.Value.Start:part.Value.End]; len(value) > 0 {
		p.appendArguments(value)
	}
	sum := sha256.Sum256(p.canonical)
	return call{id: part.CallID, tool: part.Name, identity: identity(sum[:16]), part: part.Index}
}

// appendArguments appends a call's arguments so that those that mean the same have the same bytes. Some formats send
// them as JSON inside a string, and models sometimes write what is no JSON.
func (p *partReader) appendArguments(value []byte) {
	if value[0] == '"' {
		p.unquoted, _ = rawjson.Unquote(p.unquoted[:0], value)
		value = p.unquoted
		if rawjson.Check(value, rawjson.Limits{Depth: session.MaxJSONDepth}) != nil {
			p.canonical = append(p.canonical, value...)
			return
		}
	}
	p.canonical = rawjson.AppendCanonical(p.canonical, value)
}
