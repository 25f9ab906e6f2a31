package compact

import (
	"github.com/varve-dev/varve/internal/compact/text"
)

// collapseWhitespace makes each run of white space in old results one space. A result that another stage has already
// cut is not collapsed; a result that is collapsed first is cut from its collapsed text.
func collapseWhitespace(s *runState) {
	for i := range s.parts {
		p := &s.parts[i]
		if p.kind != result || !s.free[i] || p.tokens < s.policy.Whitespace.MinTokens || s.protected(p.message) {
			continue
		}
		since := max(s.since, s.release[p.message])
		if steps := s.steps[i]; len(steps) > 0 && steps[0].at <= since {
			continue
		}
		left := s.collapsed(i)
		if left == 0 {
			continue
		}
		s.propose(i, since, proposal{action: CollapseSpace}, left)
		s.proposed[i].collapsed = left
	}
}

// collapsed returns how many tokens part i has with its white space collapsed, 0 if there is nothing to gain.
func (s *runState) collapsed(i int) int {
	p := &s.parts[i]
	if p.action != Keep {
		return p.collapsed
	}
	content := s.content(i)
	if !content.OnlyText {
		return 0
	}
	s.text = text.Collapse(s.text[:0], content.Text)
	left := s.count.text(s.text)
	if left < p.tokens || !s.policy.OnlySmaller && len(s.text) < len(content.Text) {
		return max(left, 1)
	}
	return 0
}
