package compact

import (
	"cmp"
	"slices"
)

// lowerByWorth lowers results and large arguments until the view is within its target, first those that cost the view
// least for each token gained. Unlike the stages before, it measures the view as it is now, because what an earlier
// compaction lowered is smaller already. It leaves a unit alone that is worth less than anything else that could be
// lowered: a summary will replace the unit.
func lowerByWorth(s *runState) {
	r := &ranking{runState: s, gone: s.pinned}
	steps := r.steps()
	gone := r.foreseeGone(steps)
	r.walk(steps, gone)
	if r.gone > s.pinned && r.tooFew() {
		r.gone = s.pinned
		r.walk(r.partSteps(), s.pinned)
	}
}

// foreseeGone returns the end of the units that will leave if lines have about the size that they may have: what leaves
// need not be lowered, and its names not be found.
func (r *ranking) foreseeGone(steps []demotion) (gone int) {
	cheapestFirst(steps)
	dry := ranking{runState: r.runState, gone: r.pinned, size: r.runState.size()}
	line := stubTokens + r.policy.Rank.NamesChars/charsPerToken
	for _, step := range steps {
		switch {
		case float64(dry.size) <= r.target:
			return dry.gone
		case step.part < 0:
			dry.leave(step.end)
		case r.parts[step.part].message >= dry.gone && step.to.action != Bookend:
			dry.size -= int64(max(r.now(step.part)-line, 0))
		}
	}
	return dry.gone
}

// cheapestFirst sorts steps.
func cheapestFirst(steps []demotion) {
	slices.SortStableFunc(steps, func(a, b demotion) int { return cmp.Compare(b.score, a.score) })
}

// ranking walks the steps of the view's parts and units down, the cheapest first.
type ranking struct {
	*runState
	size int64 // of the view, after the steps so far
	gone int   // the messages before this one will be summarised
}

// demotion is a step of a part down the ladder, or the leaving of the oldest units up to a message.
type demotion struct {
	part  int // -1 for a unit
	end   int // of the unit
	to    proposal
	score float64 // how much the view gains for what it loses
}

// walk takes steps, the cheapest first, until the view is within its target. The messages before gone leave first.
func (r *ranking) walk(steps []demotion, gone int) {
	cheapestFirst(steps)
	if r.size = r.runState.size(); gone > r.pinned {
		r.leave(gone)
	}
	for _, step := range steps {
		if float64(r.size) <= r.target {
			return
		}
		if step.part < 0 {
			r.leave(step.end)
		} else {
			r.lower(step)
		}
	}
}

// steps returns every step that may be taken. Units leave only if stage summarise will work towards the same target.
func (r *ranking) steps() []demotion {
	steps := r.partSteps()
	if limits := &r.policy.Summarise; limits.Enabled && limits.Over*r.window <= r.target {
		steps = append(steps, r.unitSteps()...)
	}
	return steps
}

// tooFew reports whether the units that would leave are too few for a summary.
func (r *ranking) tooFew() bool {
	d := eviction{begin: r.pinned, end: r.gone, kept: r.newestUserKept}
	return float64(r.worth(&d)) < min(float64(r.policy.Summarise.MinTokens), r.target/4)
}

// lower lowers a part by one step, unless the part's unit leaves anyway. If a superfluous result would lose only its
// large members and has none, it becomes a line.
func (r *ranking) lower(step demotion) {
	if r.parts[step.part].message < r.gone {
		return
	}
	if !r.lowerTo(step.part, step.to) && step.to.action.rung() == Stub {
		step.to.action = Placeholder
		r.lowerTo(step.part, step.to)
	}
}

// lowerTo takes a step of part i, and reports whether that saves anything.
func (r *ranking) lowerTo(i int, to proposal) bool {
	saved := r.runState.lowerTo(i, to)
	r.size -= int64(saved)
	return saved > 0
}

// leave counts the messages before end out of the view. The first of them make room for the summary.
func (r *ranking) leave(end int) {
	if r.gone == r.pinned {
		r.size += int64(r.summaryRoom())
	}
	for m := r.gone; m < end; m++ {
		if m != r.newestUserKept {
			r.size -= int64(r.foreseen(m))
		}
	}
	r.gone = max(r.gone, end)
}

// lowerTo proposes an action for part i, as if it had always been right, and keeps its draft. It returns how many
// tokens that saves; if none, it proposes nothing.
func (s *runState) lowerTo(i int, to proposal) (saved int) {
	before := s.proposed[i]
	s.proposeAction(i, s.parts[i].message, to)
	if want := &s.proposed[i]; to.action == Bookend && want.action == Bookend {
		want.head, want.tail = to.head, to.tail
		want.bookend, want.stage = to.bookend, s.stage
	}
	made, now := s.makeDraft(i), s.now(i)
	if made.action == Keep || made.tokens >= now {
		s.proposed[i] = before
		return 0
	}
	s.assume(i, s.keepDraft(i, made))
	return now - made.tokens
}

// keepDraft keeps the draft of what is proposed for part i, so that it is made only once, and returns its tokens.
func (s *runState) keepDraft(i int, made draft) (tokens int) {
	made.quoted, made.text = slices.Clone(made.quoted), slices.Clone(made.text)
	s.drafts[i] = knownDraft{s.proposed[i], made}
	return made.tokens
}

// assumeCurrent records what earlier compactions have left of the parts of the base.
func (s *runState) assumeCurrent() {
	for i := range s.parts {
		if p := &s.parts[i]; p.action != Keep && p.now < s.now(i) {
			s.assume(i, p.now)
		}
	}
}

// assume records how many tokens part i has left, as if it had never had more.
func (s *runState) assume(i, tokens int) {
	s.addRelief(i, -1)
	s.steps[i] = append(s.steps[i][:0], step{s.parts[i].message, tokens})
	s.addRelief(i, +1)
}

// now returns how many tokens part i has after the proposals so far.
func (s *runState) now(i int) int {
	if steps := s.steps[i]; len(steps) > 0 {
		return min(steps[len(steps)-1].tokens, s.parts[i].tokens)
	}
	return s.parts[i].tokens
}
