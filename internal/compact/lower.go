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
	chars := p.chars
	if p.action == Keep {
		chars = text.Len(s.content(i).Text)
	}
	perToken := float64(chars) / float64(max(p.tokens, 1))
	half := max(int(perToken*float64(max(tokens-markerTokens, 0))/2), s.minCutChars(), 1)
	to := proposal{action: Bookend, head: half, tail: half, bookend: half, distance: s.distance(p.message)}
	s.lowerTo(i, to)
}
