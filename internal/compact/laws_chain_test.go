package compact

import (
	"bytes"
	"reflect"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/wire"
)

func (l *trial) deterministic() {
	_, again := l.run(l.in)
	l.same("the same input", l.whole.made, again)
}

// same compares checkpoints. cmp.Diff alone would look at every byte of their bodies.
func (l *trial) same(what string, want, got *Checkpoint) {
	l.Helper()
	if reflect.DeepEqual(want, got) {
		return
	}
	if !bytes.Equal(want.Body, got.Body) {
		l.Errorf("%s makes another body:\n-%s\n+%s", what, want.Body, got.Body)
		return
	}
	l.Errorf("%s makes another checkpoint:\n%s", what, cmp.Diff(want, got))
}

// idempotent: what was just compacted has nothing left to do. With summaries it may take a few times, with the notice of
// a truncation twice: a plan only foresees how long one will be, and what was not worth one may be once its results are
// shorter.
func (l *trial) idempotent() {
	before, times := l.whole.made, 1
	switch {
	case l.in.Policy.Summarise.Enabled:
		times = 4
	case mayTruncate(&l.in.Policy):
		times = 2
	}
	for ; times > 0; times-- {
		plan, again := l.run(l.next(before, l.in.Policy))
		if !plan.Changed() && len(plan.Results) == 0 {
			want, got := *before, *again
			if l.in.Policy.Summarise.Enabled {
				want.State, got.State = nil, nil // it counts with the summary now, and may need a later stage sooner
			}
			l.same("compacting again", &want, &got)
			return
		}
		before = again
	}
	l.Errorf("compacting again and again goes on for ever")
}

// protectedStay: what the policy protects is not touched, whatever the stages want, caps of giants aside.
func (l *trial) protectedStay() {
	for _, o := range append([]outcome{l.whole}, l.steps...) {
		if o.yielded() {
			continue
		}
		protected := l.protected(l.count(o.end()))
		for _, a := range o.plan.Actions {
			if a.Part < 0 || a.Kind == Cap {
				continue
			}
			if protected[l.place(a.Seq, a.Part)] || slices.Contains(o.in.Policy.Protect.Tools, a.Tool) {
				l.Errorf("protected: %+v", a)
			}
		}
		shown := o.units()
		for m := range l.count(o.made.Through) {
			if _, ok := shown[m]; !ok && protected[m] {
				l.Errorf("message %d has left, and is protected", l.in.Tail[m].Seq)
			}
		}
	}
}

// protected says of each of the first n messages whether the policy protects it.
func (l *trial) protected(n int) []bool {
	rule, target := &l.in.Policy.Protect, l.in.Policy.Target*float64(l.in.WindowTokens)
	_, units := l.boundary(n)
	protected := make([]bool, n)
	turns, tokens := 0, 0 // after the message at hand
	for m := n - 1; m >= 0; m-- {
		turn := turns < rule.LastTurns && float64(tokens) < rule.MaxTurnRatio*target*float64(rule.LastTurns)
		asks := l.asks(m)
		protected[m] = units[m] > units[n-1]-rule.LastUnits || m >= n-rule.LastMessages || turn || rule.NewestUser && asks && turns == 0
		if asks {
			turns++
		}
		tokens += l.originals[m].Tokens
	}
	for m := 0; m < n && l.originals[m].Flags&wire.FlagPinned != 0; m++ {
		protected[m] = true
	}
	return protected
}

// asks reports whether message m is a word of the user, not the answer to a call.
func (l *trial) asks(m int) bool {
	found := &l.originals[m]
	answers := slices.ContainsFunc(found.Parts, func(p wire.Part) bool { return p.Kind == wire.Result })
	return found.Role == "user" && found.StartsUnit && !answers
}

// downTheLadder: from one checkpoint to the next, under whatever policy, a part only moves down the ladder and becomes
// no larger, and what has left does not come back.
func (l *trial) downTheLadder() {
	for _, chain := range l.chains() {
		for i := 1; i < len(chain); i++ {
			l.noStepUp(&chain[i-1], &chain[i])
		}
	}
}

func (l *trial) noStepUp(before, now *outcome) {
	type key struct {
		seq  int64
		part int
	}
	ladder, shown := map[key]part{}, before.units()
	for _, m := range before.view {
		for _, p := range m.parts {
			ladder[key{m.seq, p.index}] = p
		}
	}
	for _, m := range now.view {
		if _, stood := shown[m.place]; !stood && !m.coversOthers() && m.seq <= before.made.Through {
			l.Errorf("message %d has come back", m.seq)
		}
		for _, p := range m.parts {
			was, ok := ladder[key{m.seq, p.index}]
			if ok && (p.action < was.action || p.now > was.now || p.valueBytes() > was.value.End-was.value.Start) {
				l.Errorf("%s was %s: from %d to %d tokens", at(m.seq, p), was.action, was.now, p.now)
			}
		}
	}
}

// incremental: a chain of compactions makes the bytes that one from the log makes.
func (l *trial) incremental() {
	if l.in.Policy.Summarise.Enabled {
		return // a summary of a summary is another one
	}
	if slices.ContainsFunc(append([]outcome{l.whole}, l.steps...), outcome.yielded) {
		return // what had to yield at one moment need not at another
	}
	if l.in.Policy.Truncate.Enabled && l.lateAnswers() {
		return // a call that was dropped as abandoned leaves its late answer behind; no provider takes one
	}
	if l.in.Policy.Budget.Enabled && l.dropsAny() {
		return // the lines of results that a notice replaces count, but for a checkpoint that no longer has them
	}
	if pending := l.in.Policy.Dedupe.Enabled && l.in.Policy.Dedupe.Pending; pending && (l.abandons() || l.lateAnswers()) {
		return // a call that superseded a result is forgotten when it is given up, or answered after others
	}
	last := l.steps[len(l.steps)-1]
	want, got := *l.whole.made, *last.made
	want.State, got.State = nil, nil
	l.same("compacting step by step", &want, &got)
	if l.whole.plan.eviction != nil {
		return // what was persisted may have left on the way
	}
	results := 0
	for _, o := range l.steps {
		results += len(o.plan.Results)
	}
	if results != len(l.whole.plan.Results) {
		l.Errorf("%d parts persisted on the way, %d from the log", results, len(l.whole.plan.Results))
	}
}

// dropsAny reports whether a notice replaces messages, at once or on the way.
func (l *trial) dropsAny() bool {
	drops := func(o outcome) bool { return o.plan.eviction != nil }
	return drops(l.whole) || slices.ContainsFunc(l.steps, drops)
}

// abandons reports whether a call is not answered before the next one of the assistant.
func (l *trial) abandons() bool {
	answered := map[[2]int]bool{}
	calls := 0
	for m := range l.originals {
		for _, part := range l.originals[m].Parts {
			if part.Kind == wire.Call {
				calls++
			}
			if at, ok := l.nearest(m, part, answered); ok {
				answered[at] = true
			}
		}
	}
	return len(answered) < calls
}

// lateAnswers reports whether a result comes after another assistant message than its call's.
func (l *trial) lateAnswers() bool {
	asked, answered := -1, map[[2]int]bool{}
	for m := range l.originals {
		if l.speaks(m) {
			asked = m
		}
		for _, part := range l.originals[m].Parts {
			if at, ok := l.nearest(m, part, answered); ok {
				if answered[at] = true; at[0] != asked {
					return true
				}
			}
		}
	}
	return false
}
