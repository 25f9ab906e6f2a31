package view

import (
	"strings"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/units"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// bound leaves the oldest units of a view out until it has at most limit tokens. The pinned head and the newest unit
// are kept. A view of a provider that wants the user's message first has to begin with one: if the units that are
// kept do not, the newest user message before them is kept, too, because they answer it.
//
// Errors: *session.CannotFitError.
func (o *opened) bound(limit int64) (omitted protocol.Omitted, err error) {
	all := append(o.units, o.tailUnits()...)
	c := cut{format: o.stored.Format, limit: limit, minimum: o.stored.Tokens}
	if !c.find(all, o.stored.Tokens) {
		return omitted, &session.CannotFitError{MaxTokens: limit, Minimum: c.minimum}
	}
	o.units, o.tail = nil, nil
	for i, u := range all {
		if i >= c.first || i == c.anchor || u.Pinned {
			o.units = append(o.units, u)
			continue
		}
		omitted.Units++
		omitted.Messages += u.Messages
		omitted.Tokens += u.Tokens
	}
	return omitted, nil
}

// cut is where a bounded view begins.
type cut struct {
	format  session.Format
	limit   int64
	minimum int64 // tokens of the smallest view that was found
	first   int   // the first unit that is kept
	anchor  int   // the unit before it that has to be kept, -1 for none
}

// find finds the largest view of the units, which have tokens in all, within the limit. It reports whether
// there is one.
func (c *cut) find(all []unit, tokens int64) bool {
	user := -1 // the newest unit before i that a view may begin with
	tied := lastTied(all)
	for i := range all {
		u := &all[i]
		if u.Pinned {
			continue
		}
		size := tokens
		c.first, c.anchor = i, -1
		if provider.Of(c.format).FirstUser {
			if !u.tied && u.isFromUser(c.format) {
				user = i
			} else if c.anchor = user; user >= 0 {
				size += all[user].Tokens
			}
		}
		tokens -= u.Tokens
		if i <= tied {
			continue
		}
		c.minimum = min(c.minimum, size)
		if size <= c.limit {
			return true
		}
	}
	return false
}

// lastTied returns the last unit that must not be separated from the checkpoint, because the call that it answers is
// somewhere in there; -1 for none.
func lastTied(all []unit) int {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].tied {
			return i
		}
	}
	return -1
}

// isFromUser reports whether a unit begins with a message of the user: one that only answers calls does not count.
func (u *unit) isFromUser(own session.Format) bool {
	messages, err := u.messages(own)
	if err != nil || len(messages) == 0 {
		return false
	}
	first, err := wire.Inspect(messages[0].Format, messages[0].Body)
	return err == nil && first.Role == "user" && first.StartsUnit
}

// checkpoint is the place of a call that the checkpoint makes and leaves open.
const checkpoint = -1

// place is where a call stands in a tail.
type place struct{ message, unit int }

// tailUnits groups the messages after the checkpoint by units, as a compaction does.
func (o *opened) tailUnits() []unit {
	t := tailReader{tracker: units.Tracker{Items: provider.Of(o.stored.Format).Items}, tied: map[int]bool{}}
	if len(o.stored.OpenCalls) > 0 {
		for _, id := range strings.Split(string(o.stored.OpenCalls), "\x1d") {
			t.calls.Call(id, "", place{message: checkpoint})
		}
	}
	for i := range o.tail {
		t.read(i, &o.tail[i])
	}
	list := make([]unit, len(t.starts))
	for i, start := range t.starts {
		end := len(o.tail)
		if i+1 < len(t.starts) {
			end = t.starts[i+1]
		}
		u := &list[i]
		u.tail = o.tail[start:end]
		u.Messages = end - start
		u.Pinned = o.tail[start].Seq <= o.stored.Pinned
		for m := start; m < end; m++ {
			u.Tokens += o.tokens[m]
			u.tied = u.tied || t.tied[m]
		}
	}
	return list
}

// tailReader finds the units of a tail.
type tailReader struct {
	tracker units.Tracker
	calls   units.Pairer[place]
	starts  []int        // the messages with which units begin
	tied    map[int]bool // messages that answer a call of the checkpoint
}

// read takes message i. One that cannot be inspected has no calls and no results.
func (t *tailReader) read(i int, m *wire.Stored) {
	found, err := wire.Inspect(m.Format, m.Body)
	assistant := found.Role == "assistant" || found.Role == "model"
	if t.tracker.Add(units.Message{Assistant: assistant, StartsUnit: found.StartsUnit || err != nil}) {
		t.starts = append(t.starts, i)
	}
	for p := range found.Parts {
		switch part := &found.Parts[p]; part.Kind {
		case wire.Call:
			t.calls.Call(part.CallID, part.Name, place{i, t.tracker.Unit()})
			t.tracker.Called(t.tracker.Unit())
		case wire.Result:
			t.answer(i, part)
		}
	}
}

func (t *tailReader) answer(i int, result *wire.Part) {
	call, ok := t.calls.Answer(result.CallID, result.Name)
	switch {
	case !ok:
	case call.message == checkpoint:
		t.tied[i] = true
	default:
		t.tracker.Answered(call.unit)
		t.starts = units.Join(t.starts, call.message)
	}
}
