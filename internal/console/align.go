package console

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/varve-dev/varve/internal/compact/manifest"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// row is a message of the log beside what the view has of it, with the reasons between them. A row of a summary or a
// notice stands for all messages from First to Last, and has no Log.
type row struct {
	First, Last   int64
	Kind          string // what was done, as the legend has it
	Log, View     *side
	Why           []reason
	Before, After int64 // tokens
	Pins          []session.Pin
	Message       *protocol.Message
	Segments      []protocol.Summary // of a summary
	Begins        bool               // the first message behind the checkpoint
}

// reason is why something is not in the view as it was appended.
type reason struct {
	Do, Rule, Stage, Reason, Tool string
	Part                          int
	Before, After                 int64
	Ref, Link                     string // and where it is read back
	Source                        string
}

// IsRange reports whether the row stands for several messages.
func (r *row) IsRange() bool { return r.Log == nil && r.Last > r.First }

// Messages returns how many seqs the row stands for.
func (r *row) Messages() int64 { return r.Last - r.First + 1 }

// Changed reports whether the view does not have the message as it was appended.
func (r *row) Changed() bool { return r.Kind != kept }

// What rows are called beside the actions of the engine.
const (
	kept       = "keep"
	superseded = "superseded"
	removed    = "removed"
	repaired   = "repaired"
)

// aligner puts rows together.
type aligner struct {
	id      string // of the session
	through int64
	parts   map[int64][]manifest.Entry // by seq
	wholes  []manifest.Entry           // of messages as a whole
	pins    map[int64][]session.Pin
	log     []protocol.Message
	room    room
	begun   bool // a row behind the checkpoint was made
	// what the view has now by its seq, in the place of the log; nil for the log
	now   map[int64]*protocol.ViewMessage
	known session.MessagesRef // what now is known of
	rows  []row
}

func newAligner(id string, entries []protocol.ManifestEntry, pins []session.Pin, through int64, r room) *aligner {
	a := &aligner{
		id: id, through: through, parts: map[int64][]manifest.Entry{}, pins: map[int64][]session.Pin{}, room: r,
	}
	for _, e := range entries {
		if e.Part < 0 || e.LastSeq > e.Seq {
			a.wholes = append(a.wholes, e.Entry)
		} else {
			a.parts[e.Seq] = append(a.parts[e.Seq], e.Entry)
		}
	}
	for _, p := range pins {
		a.pins[p.Seq] = append(a.pins[p.Seq], p)
	}
	return a
}

// wholeOf returns the entry of messages that a unit replaces, nil if it replaces none: such a unit is one message,
// which stands for no message of the log alone.
func (a *aligner) wholeOf(u *protocol.ViewUnit) *manifest.Entry {
	if len(u.Messages) != 1 || u.First > a.through || a.isInside(u) {
		return nil
	}
	for i := range a.wholes {
		if e := &a.wholes[i]; e.Seq <= u.Last && u.First <= e.LastSeq {
			return e
		}
	}
	return nil
}

// isInside reports whether a unit begins among messages that another one replaces: a summary keeps it word for word.
func (a *aligner) isInside(u *protocol.ViewUnit) bool {
	return slices.ContainsFunc(a.wholes, func(e manifest.Entry) bool { return e.Seq < u.First && u.First <= e.LastSeq })
}

// lastOf returns the last message of the log that a unit stands for. Behind a unit that a summary keeps are others of
// the summary's messages.
func (a *aligner) lastOf(u *protocol.ViewUnit) int64 {
	if a.isInside(u) {
		return min(u.Last, u.First+max(1, int64(len(u.Messages)))-1)
	}
	return u.Last
}

// ranges returns which seqs of the log have to be read for some units.
func (a *aligner) ranges(units []protocol.ViewUnit) (list []session.MessagesRef) {
	for i := range units {
		u := &units[i]
		n := len(list)
		switch {
		case a.wholeOf(u) != nil:
		case n > 0 && list[n-1].Last+1 >= u.First:
			list[n-1].Last = max(list[n-1].Last, a.lastOf(u))
		default:
			list = append(list, session.MessagesRef{First: u.First, Last: a.lastOf(u)})
		}
	}
	return list
}

// align returns the rows of some units, given the messages of the log in ranges.
func (a *aligner) align(units []protocol.ViewUnit, log []protocol.Message) []row {
	a.log = log
	for i := range units {
		u := &units[i]
		if e := a.wholeOf(u); e != nil {
			a.addWhole(u, e)
		} else {
			a.addUnit(u)
		}
	}
	return a.rows
}

// addWhole adds the row of a summary or a notice.
func (a *aligner) addWhole(u *protocol.ViewUnit, e *manifest.Entry) {
	m := &u.Messages[0]
	a.rows = append(a.rows, row{
		First: e.Seq, Last: e.LastSeq, Kind: e.Do, View: sideOf(m.Format, m.Message, room{60, 6000}),
		Why: []reason{a.reasonOf(e)}, Before: e.TokensBefore, After: e.TokensAfter,
	})
}

// addUnit adds a row for each message of the log that a unit stands for. Messages of the unit without a seq are those
// of the log that are still there, in order; what is left over has a row of its own.
func (a *aligner) addUnit(u *protocol.ViewUnit) {
	bySeq := map[int64]*protocol.ViewMessage{}
	var rest []*protocol.ViewMessage
	last := a.lastOf(u)
	for i := range u.Messages {
		if m := &u.Messages[i]; m.Seq != nil {
			bySeq[*m.Seq] = m
		} else {
			rest = append(rest, m)
		}
	}
	for i := range a.log {
		logged := &a.log[i]
		if logged.Seq < u.First || logged.Seq > last {
			continue
		}
		shown := bySeq[logged.Seq]
		if shown == nil && len(rest) > 0 && logged.RemovedAt == nil {
			shown, rest = rest[0], rest[1:]
		}
		a.add(logged, shown)
	}
	for _, m := range rest {
		shown := sideOf(m.Format, m.Message, a.room)
		a.rows = append(a.rows, row{First: u.First, Last: last, Kind: kept, View: shown})
	}
}

// add adds the row of one message.
func (a *aligner) add(logged *protocol.Message, shown *protocol.ViewMessage) {
	r := row{
		First: logged.Seq, Last: logged.Seq, Kind: kept, Message: logged, Pins: a.pins[logged.Seq],
		Log: sideOf(logged.Format, logged.Message, a.room), Before: int64(logged.Tokens), After: int64(logged.Tokens),
	}
	before := logged.Message
	if a.now != nil {
		before, r.Log = nil, &side{}
		if m := a.now[logged.Seq]; m != nil {
			before, r.Log = m.Message, sideOf(m.Format, m.Message, a.room)
		}
	}
	if logged.Seq > a.through && a.through > 0 && !a.begun {
		a.begun, r.Begins = true, true
	}
	for _, e := range a.parts[logged.Seq] {
		r.take(&e, a.reasonOf(&e))
	}
	switch {
	case shown != nil:
		r.show(shown, before, a.room)
	case logged.SupersededBy != nil:
		r.gone(superseded, fmt.Sprintf("message %d has taken its place", *logged.SupersededBy))
	case logged.RemovedAt != nil:
		r.gone(removed, "it was removed from the views")
	}
	a.rows = append(a.rows, r)
}

// gone says why no view has the message.
func (r *row) gone(do, why string) {
	r.Kind, r.After = do, 0
	r.Why = []reason{{Do: do, Reason: why, Part: -1}}
}

// show adds what the view has, and says of each part what was done to it. What is other without an entry was
// translated, or else capped when it was appended.
func (r *row) show(m *protocol.ViewMessage, before []byte, to room) {
	r.View = sideOf(m.Format, m.Message, to)
	r.View.Same = bytes.Equal(m.Message, before)
	switch {
	case r.View.Same && len(r.Why) > 0: // it was done before
		r.Kind, r.Why = kept, nil
	case r.View.Same || len(r.Why) > 0:
	case bytes.Equal(m.Message, r.Message.Message):
		r.Why = []reason{{Do: kept, Reason: "the view has it again as it was appended", Part: -1}}
	case m.Format != r.Message.Format:
		translated := fmt.Sprintf("appended as %s, in the view as %s", r.Message.Format, m.Format)
		r.Why = []reason{{Do: kept, Reason: translated, Part: -1}}
	default:
		r.Kind = "cap"
		r.Why = []reason{{Do: r.Kind, Rule: "cap.at_insertion", Reason: "capped when it was appended", Part: -1}}
	}
	for _, w := range r.Why {
		logged, shown := r.Log.part(w.Part), r.View.part(w.Part)
		if logged != nil && shown != nil {
			logged.Do, shown.Do = w.Do, w.Do
			diverge(logged, shown, to)
		}
	}
}

// take adds what was done to a part.
func (r *row) take(e *manifest.Entry, why reason) {
	r.Why = append(r.Why, why)
	r.After -= e.TokensBefore - e.TokensAfter
	if rung(e.Do) > rung(r.Kind) {
		r.Kind = e.Do
	}
}

func (a *aligner) reasonOf(e *manifest.Entry) reason {
	r := reason{
		Do: e.Do, Rule: e.Rule, Stage: e.Stage, Reason: e.Reason, Tool: e.Tool, Part: e.Part, Before: e.TokensBefore,
		After: e.TokensAfter, Ref: e.Ref, Source: cmp.Or(e.Source, e.Resource),
	}
	if r.Ref != "" {
		r.Link = pathOf("sessions", a.id, "results", r.Ref)
	}
	return r
}
