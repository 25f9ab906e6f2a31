package view

import (
	"iter"
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
// Errors: *session.CannotFitError, ErrShortEnd.
func (o *opened) bound(limit int64) (omitted protocol.Omitted, err error) {
	all, known, err := o.knownUnits()
	if err != nil {
		return omitted, err
	}
	smallest := cut{tokens: o.size}
	for c := range cuts(all, o.stored.Format, o.size, nobody) {
		if c.tokens = known.fewest(c, all); c.tokens < smallest.tokens {
			smallest = c
		}
		if c.tokens > limit {
			continue
		}
		if known.isShortFor(c) {
			return omitted, ErrShortEnd
		}
		o.units, o.tail = nil, nil
		for i, u := range all {
			if c.keeps(i, &u) {
				o.units = append(o.units, u)
			}
		}
		omitted = omittedBy(c, all)
		if known.end != nil {
			omitted.Units = 0
		}
		return omitted, nil
	}
	if known.isShortFor(smallest) {
		return omitted, ErrShortEnd
	}
	return omitted, &session.CannotFitError{MaxTokens: limit, Minimum: smallest.tokens}
}

// allUnits returns the units of the checkpoint and of the tail, each with the seqs of its messages.
func (o *opened) allUnits() []unit {
	last := o.stored.LastSeq
	if n := len(o.tail); n > 0 && o.stored.IsStretch {
		last = o.tail[n-1].Seq
	}
	return o.pinLoading(withLast(append(o.units, o.unitsOf(o.readTail())...), last))
}

// withLast sets the last seqs of units, of which the last one ends with the log.
func withLast(all []unit, last int64) []unit {
	for i := range all {
		u := &all[i]
		next := last + 1
		if i+1 < len(all) {
			next = all[i+1].FirstSeq
		}
		u.last = max(next-1, u.FirstSeq)
		if u.FirstSeq = max(u.FirstSeq, 1); u.last == u.FirstSeq { // the next begins in this one, or before it
			u.last = u.FirstSeq + max(int64(u.Messages), 1) - 1
		}
	}
	return all
}

// cut is a way to bound a view: the units from first on are kept, and the one before them that is the anchor.
type cut struct {
	first, anchor int
	tokens        int64 // of the view
}

// nobody is the number of a unit that is not there.
const nobody = -1

// cuts yields the ways to bound a view of units, which has tokens in all: from the one that keeps everything to the
// one that keeps the newest unit. The unit user, if there is one, is kept by all.
func cuts(all []unit, own session.Format, tokens int64, user int) iter.Seq[cut] {
	return func(yield func(cut) bool) {
		newest := nobody // user's message before unit i
		tied := lastTied(all)
		for i := range all {
			u := &all[i]
			if u.Pinned {
				continue
			}
			c := cut{first: i, anchor: nobody, tokens: tokens}
			if provider.Of(own).FirstUser {
				if !u.tied && u.isFromUser(own) {
					newest = i
				} else {
					c.anchor = newest
				}
			}
			if nobody < user && user < i {
				c.anchor = user
			}
			if c.anchor >= 0 {
				c.tokens += all[c.anchor].Tokens
			}
			tokens -= u.Tokens
			if i > tied && !yield(c) {
				return
			}
		}
	}
}

func (c *cut) keeps(i int, u *unit) bool { return i >= c.first || i == c.anchor || u.Pinned }

// omittedBy counts the units that a cut leaves out.
func omittedBy(c cut, all []unit) (omitted protocol.Omitted) {
	var run session.MessagesRef
	for i := range all {
		u := &all[i]
		if c.keeps(i, u) {
			continue
		}
		omitted.Units++
		omitted.Messages += u.Messages
		omitted.Tokens += u.Tokens
		if continues := run.First <= u.FirstSeq && u.FirstSeq <= run.Last+1; run.First == 0 || !continues {
			omitted.Refs = appendRef(omitted.Refs, run)
			run = session.MessagesRef{First: u.FirstSeq}
		}
		run.Last = max(run.Last, u.last) // of a message that was divided by step, each step is a unit
	}
	omitted.Refs = appendRef(omitted.Refs, run)
	return omitted
}

func appendRef(refs []string, run session.MessagesRef) []string {
	if run.Last == 0 {
		return refs
	}
	return append(refs, run.String())
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

// place is where a call of a tool stands in a tail.
type place struct {
	message, unit int
	tool          string
}

// readTail finds the units of the messages after the checkpoint, as a compaction does.
func (o *opened) readTail() *tailReader {
	t := &tailReader{
		tracker: units.Tracker{Items: provider.Of(o.stored.Format).Items}, tied: map[int]bool{}, unsure: nobody,
		user: len(o.tail),
	}
	if o.stored.End != nil {
		t.waits = setOf(o.stored.End.Early)
	}
	if len(o.stored.OpenCalls) > 0 {
		for _, id := range strings.Split(string(o.stored.OpenCalls), "\x1d") {
			t.calls.Call(id, "", place{message: checkpoint})
		}
	}
	for i := range o.tail {
		t.read(i, &o.tail[i])
	}
	return t
}

// unitsOf returns the units that a reader of the tail has found.
func (o *opened) unitsOf(t *tailReader) []unit {
	list := make([]unit, len(t.starts))
	for i, start := range t.starts {
		end := len(o.tail)
		if i+1 < len(t.starts) {
			end = t.starts[i+1]
		}
		u := &list[i]
		u.tail = o.tail[start:end]
		u.FirstSeq = o.tail[start].Seq
		u.Messages = end - start
		u.Pinned = o.tail[start].Seq <= o.stored.Pinned
		for m := start; m < end; m++ {
			u.Tokens += o.tokens[m]
			u.tied = u.tied || t.tied[m]
			u.Pinned = u.Pinned || o.summary > 0 && o.tail[m].Seq == o.summary
		}
	}
	return list
}

// tailReader finds the units of a tail.
type tailReader struct {
	tracker units.Tracker
	calls   units.Pairer[place]
	early   units.Early[int]
	starts  []int        // the messages with which units begin
	tied    map[int]bool // messages that answer a call of the checkpoint

	// What matters if there are messages before these that were not read:
	waits  map[string]bool // ids of results there that wait for their calls
	sure   int             // the first message, but message 0, with which a unit of the assistant begins; 0 for none
	unsure int             // the last message that may belong to what was not read; -1 for none
	user   int             // the first message of the user that may begin a unit
}

// read takes message i. One that cannot be inspected has no calls and no results.
func (t *tailReader) read(i int, m *wire.Stored) {
	found, err := wire.Inspect(m.Format, m.Body)
	assistant := found.Role == "assistant" || found.Role == "model"
	if t.tracker.Add(units.Message{Assistant: assistant, StartsUnit: found.StartsUnit || err != nil}) {
		t.starts = append(t.starts, i)
		t.calls.Turn()
		if assistant && t.sure == 0 {
			t.sure = i
		}
	}
	results := 0
	for p := range found.Parts {
		switch part := &found.Parts[p]; part.Kind {
		case wire.Call:
			t.call(i, part)
		case wire.Result:
			t.answer(i, part)
			results++
		}
	}
	if found.Role == "user" && found.StartsUnit {
		t.user = min(t.user, i)
	}
	if found.Role == "user" && results == 0 {
		t.early.Said()
	}
}

// call adds a call. Results before it that may be its own stay in its unit.
func (t *tailReader) call(i int, call *wire.Part) {
	for _, result := range t.early.Call(call.CallID, i) {
		t.starts = units.Join(t.starts, result)
	}
	if t.waits[call.CallID] && i < units.EarlyReach {
		t.unsure = i
	}
	t.early.Called(call.CallID)
	t.calls.Call(call.CallID, call.Name, place{i, t.tracker.Unit(), call.Name})
	t.tracker.Called(t.tracker.Unit())
}

func (t *tailReader) answer(i int, result *wire.Part) {
	call, ok := t.calls.Answer(result.CallID, result.Name)
	if !ok || call.message == checkpoint || call.tool != result.Name && call.tool != "" && result.Name != "" {
		t.unsure = i
	}
	switch {
	case !ok:
		t.early.Result(result.CallID, i, i)
	case call.message == checkpoint:
		t.tied[i] = true
	default:
		t.tracker.Answered(call.unit)
		t.starts = units.Join(t.starts, call.message)
	}
}
