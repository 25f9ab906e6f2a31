package view

import (
	"slices"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/readback"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// What is left of a part that is cut, in tokens: enough to be read, while other parts can be cut instead; in the end a
// line that names its ref, and a few words.
const (
	readable = 200
	shortest = 40
)

// step is a way to make a view smaller: the parts of a tier are cut, the largest first, to not less than floor tokens.
type step struct {
	tier  tier
	floor int
}

// tier says how dear a part is.
type tier int

// The tiers, in the order in which they are cut.
const (
	results   tier = iota
	others         // the assistant's texts and the arguments of its calls, and what the user wrote earlier
	userTexts      // of the user's newest message
	pinned         // the system prompt and summaries
	tiers
)

var steps = func() (list []step) {
	for _, floor := range []int{readable, shortest} {
		for t := range tiers {
			list = append(list, step{t, floor})
		}
	}
	return list
}()

// target is a part of a view that can be cut.
type target struct {
	*piece
	entry *entry
	part  int // among the message's parts
	tier  tier
	goal  int // tokens that are to be left
}

// shorten cuts parts of the messages that a view keeps, so that it has about excess tokens fewer: those of the unit
// border, or of all if that is nobody. smallest reports that no more can be cut.
func (f *fitter) shorten(kept []*entry, border int, excess int64) (done []protocol.Cut, smallest bool, err error) {
	if excess <= 0 {
		return nil, false, nil
	}
	var targets []*target
	for _, e := range kept {
		if border == nobody || e.unit == border {
			targets = append(targets, f.targets(e)...)
		}
	}
	for _, s := range steps {
		if excess > 0 {
			excess -= lower(targets, s, excess)
		}
	}
	for len(targets) > 0 {
		n := 1
		for n < len(targets) && targets[n].entry == targets[0].entry {
			n++
		}
		cuts, err := f.cutMessage(targets[0].entry, targets[:n])
		if err != nil {
			return nil, false, err
		}
		done, targets = append(done, cuts...), targets[n:]
	}
	return done, border == nobody && excess > 0, nil
}

// targets returns the parts of a message that can be cut.
func (f *fitter) targets(e *entry) (list []*target) {
	for i := range e.facts.Parts {
		if p := pieceOf(e, i); p != nil && p.tokens > shortest {
			list = append(list, &target{piece: p, entry: e, part: i, tier: f.tierOf(e, i), goal: p.tokens})
		}
	}
	return list
}

func (f *fitter) tierOf(e *entry, part int) tier {
	switch {
	case f.units[e.unit].Pinned:
		return pinned
	case e.facts.Parts[part].Kind == wire.Result:
		return results
	case e.unit == f.user:
		return userTexts
	}
	return others
}

// lower lowers the goals of the largest targets of a tier to one level, so that they are excess tokens less in all, or
// as many as the step's floor allows. It returns by how many they are less.
func lower(targets []*target, s step, excess int64) (saved int64) {
	saving := func(level int) (sum int64) {
		for _, t := range targets {
			if t.tier == s.tier {
				sum += int64(max(t.goal-level, 0))
			}
		}
		return sum
	}
	level, above := s.floor, s.floor // the least level that saves enough is sought between them
	for _, t := range targets {
		above = max(above, t.goal)
	}
	for level+1 < above {
		if middle := (level + above) / 2; saving(middle) >= excess {
			level = middle
		} else {
			above = middle
		}
	}
	saved = saving(level)
	for _, t := range targets {
		if t.tier == s.tier {
			t.goal = min(t.goal, level)
		}
	}
	return saved
}

// cutMessage cuts the targets of a message to their goals.
func (f *fitter) cutMessage(e *entry, targets []*target) (done []protocol.Cut, err error) {
	var edits []wire.Edit
	for _, t := range targets {
		if t.goal >= t.tokens {
			continue
		}
		part := &e.facts.Parts[t.part]
		ref, err := f.refOf(e, t.part)
		if err != nil {
			return nil, err
		}
		with := t.cutTo(t.goal, ref)
		if with == nil {
			continue
		}
		edits = append(edits, wire.Edit{Span: part.Value, With: with})
		done = append(done, protocol.Cut{Seq: e.first, Kind: part.Kind.String(), Ref: ref, TokensBefore: part.Tokens})
	}
	if edits == nil {
		return nil, nil
	}
	e.made = wire.Replace(nil, e.Body, edits)
	facts, err := f.exact.inspect(e.Format, e.made)
	if err != nil {
		return nil, &BrokenError{err}
	}
	e.now = int64(facts.Tokens)
	n := 0
	for _, t := range targets {
		if n < len(edits) && edits[n].Span == e.facts.Parts[t.part].Value {
			done[n].TokensAfter = facts.Parts[t.part].Tokens
			n++
		}
	}
	return done, nil
}

// refOf returns the ref by which a part of a message is read back: its own if it is a result or a call of one message
// of the log, else that of the message, or of all that it stands for.
func (f *fitter) refOf(e *entry, part int) (string, error) {
	whole := session.MessagesRef{First: e.first, Last: e.last}.String()
	p := &e.facts.Parts[part]
	if e.first != e.last || p.Kind != wire.Result && p.Kind != wire.Call {
		return whole, nil
	}
	logged, ok := f.known[e.first]
	if !ok {
		var err error
		if logged, err = f.Fit.Parts(e.first); err != nil {
			return "", err
		}
		f.known[e.first] = logged
	}
	alike := 0 // parts before it of its kind and call: an id may come twice
	for i := range e.facts.Parts[:part] {
		if before := &e.facts.Parts[i]; before.Kind == p.Kind && before.CallID == p.CallID {
			alike++
		}
	}
	logged = slices.DeleteFunc(slices.Clone(logged), func(l readback.Part) bool {
		return l.Kind != p.Kind || l.CallID != p.CallID
	})
	if alike >= len(logged) {
		return whole, nil
	}
	return logged[alike].Ref, nil
}
