package compact

import "math"

// budgetOver returns the limit of a stage that has its own measures of what is too much: none at all if it may have
// something to do.
func budgetOver(s *runState) float64 {
	if s.policy.Budget.Enabled || len(s.heavy().over(s.policy.MediaBytes)) > 0 {
		return -1
	}
	return math.MaxFloat64
}

// keepBudgets bounds the tokens of all results, and the bytes of those with media.
func keepBudgets(s *runState) {
	if s.policy.Budget.Enabled {
		keepBudget(s)
	}
	if s.policy.MediaBytes > 0 {
		keepMediaBytes(s)
	}
}

// keepBudget bounds the tokens that all results have in the view: as each comes, the oldest become placeholders until
// the view is within the budget. A capped result has the tokens of what is kept, a replaced one those of its line.
// Both depend on the result alone, also of one that the cap may not cut yet, so that what is over once stays over.
func keepBudget(s *runState) {
	budget := s.budget()
	end, total := 0, 0 // the results before end have total tokens in the view, those before i as placeholders
	for i := range s.parts {
		for ; end < len(s.parts) && (total <= budget || end <= i); end++ {
			total += s.shownTokens(end)
		}
		if total <= budget {
			return
		}
		if whole := s.shownTokens(i); whole > 0 && s.proposeOverBudget(i, s.parts[end-1].message) {
			total += s.placeholderTokens(i) - whole
		}
	}
}

// shownTokens returns the tokens that part i has in the view before anything replaces it, 0 if it is no result.
func (s *runState) shownTokens(i int) int {
	p := &s.parts[i]
	if p.kind != result {
		return 0
	}
	capped := s.proposed[i].capped
	if s.free[i] && s.capSince(p.message) == len(s.messages) {
		capped = s.cappedTo(i)
	}
	if capped > 0 {
		return min(capped, p.tokens)
	}
	return p.tokens
}

// placeholderTokens returns the tokens of the line that may replace result i, or of the result if that is no longer.
func (s *runState) placeholderTokens(i int) int {
	p := &s.parts[i]
	known := p.replacement
	if p.action == Keep {
		known = s.replacementOf(i)
	}
	v := s.valuesOf(i, &known)
	v.action = Placeholder
	line := s.words.appendLine(nil, v)
	if tokens := s.count.text(line); s.fits(i, &known, line, addedTo(line)) {
		return tokens
	}
	return s.shownTokens(i)
}

// proposeOverBudget proposes a placeholder for result i, which was over the budget with message since, and reports
// whether the result may be replaced.
func (s *runState) proposeOverBudget(i, since int) bool {
	p := &s.parts[i]
	if p.kind != result || !s.free[i] || s.protected(p.message) {
		return false
	}
	want := proposal{action: Placeholder, distance: s.distance(p.message)}
	if s.proposed[i].action == Stub {
		want.action = Blank
	}
	s.propose(i, max(since, s.release[p.message]), want, stubTokens)
	return true
}

// budget returns how many tokens all results may have together.
func (s *runState) budget() int {
	limits := &s.policy.Budget
	if limits.Tokens > 0 {
		return limits.Tokens
	}
	return min(max(int(s.window*limits.Ratio), limits.Min), limits.Max)
}
