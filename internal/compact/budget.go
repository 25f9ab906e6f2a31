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

// keepBudget bounds the tokens of all results together: the oldest become placeholders until the others fit.
// Placeholders count nothing and originals count whole, so that what is over once stays over.
func keepBudget(s *runState) {
	budget := s.budget()
	end, total := 0, 0 // the results from i to before end have total tokens
	for i := range s.parts {
		for ; end < len(s.parts) && total <= budget; end++ {
			total += s.parts[end].resultTokens()
		}
		if total <= budget {
			return
		}
		s.proposeOverBudget(i, s.parts[end-1].message)
		total -= s.parts[i].resultTokens()
	}
}

func (p *part) resultTokens() int {
	if p.kind != result {
		return 0
	}
	return p.tokens
}

// proposeOverBudget proposes a placeholder for result i, which was over the budget with message since.
func (s *runState) proposeOverBudget(i, since int) {
	p := &s.parts[i]
	if p.kind != result || !s.free[i] || s.protected(p.message) {
		return
	}
	want := proposal{action: Placeholder, distance: s.distance(p.message)}
	if s.proposed[i].action.rung() == Stub {
		want.action = Blank
	}
	s.propose(i, max(since, s.release[p.message]), want, stubTokens)
}

// budget returns how many tokens all results may have together.
func (s *runState) budget() int {
	limits := &s.policy.Budget
	if limits.Tokens > 0 {
		return limits.Tokens
	}
	return min(max(int(s.window*limits.Ratio), limits.Min), limits.Max)
}
