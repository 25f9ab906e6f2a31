package compact

import (
	"slices"

	"github.com/varve-dev/varve/internal/compact/text"
)

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

// measure replaces what the stages before foresee of the newest messages by what they will have: here an estimate is
// not enough. It stops at a message that must leave in any case. What the checkpoint does not cover stays as it is.
func (s *runState) measure() {
	s.assumeCurrent()
	covered := s.through()
	sum, all := 0, !s.policy.Summarise.Enabled && !s.policy.Truncate.Enabled
	for m := len(s.messages) - 1; m >= 0 && (all || float64(sum) <= s.window); m-- {
		for i := s.messages[m].first; i < s.messages[m].last; i++ {
			left := s.parts[i].now
			if m < covered {
				left = s.measured(i)
			}
			s.assume(i, left)
		}
		sum += s.foreseen(m)
	}
}

// measured returns how many tokens part i has once what is proposed is applied.
func (s *runState) measured(i int) int {
	p := &s.parts[i]
	if !s.proposed[i].lowers(p) {
		return p.now
	}
	made := s.makeDraft(i)
	if made.action == Keep {
		return p.now
	}
	return min(s.keepDraft(i, made), p.now)
}

// now returns how many tokens part i has after the proposals so far.
func (s *runState) now(i int) int {
	if steps := s.steps[i]; len(steps) > 0 {
		return min(steps[len(steps)-1].tokens, s.parts[i].tokens)
	}
	return s.parts[i].tokens
}

// cutTo cuts part i to head and tail of about as many tokens, unless it has fewer.
func (s *runState) cutTo(i, tokens int) {
	p := &s.parts[i]
	if s.now(i) <= tokens+markerTokens {
		return
	}
	perToken, _ := s.density(i)
	half := max(int(perToken*float64(max(tokens-markerTokens, 0))/2), s.minCutChars(), 1)
	to := proposal{action: Bookend, head: half, tail: half, bookend: half, distance: s.distance(p.message)}
	s.lowerTo(i, to)
}

// density returns how many characters a token of result i has, and whether it can be cut: media beside a text cannot.
func (s *runState) density(i int) (perToken float64, cuts bool) {
	p := &s.parts[i]
	chars, cuts := p.chars, p.onlyText
	if p.action == Keep {
		content := s.content(i)
		chars, cuts = text.Len(content.Text), content.OnlyText
	}
	return float64(max(chars, 1)) / float64(max(p.tokens, 1)), cuts
}
