package compact

// ranked: after a compaction the view is, as the stages foresee it, within its target, or above it by less than what is
// worth a summary, or rank has nothing left that it may lower.
func (l *trial) ranked() {
	for _, o := range append([]outcome{l.whole}, l.steps...) {
		s := o.plan.state
		few := 0.0
		if s.policy.Summarise.Enabled {
			few = min(float64(s.policy.Summarise.MinTokens), s.target/4)
		}
		if o.yielded() || s.failed["summarise"] != nil || o.plan.eviction != nil || float64(s.size()) <= s.target+few {
			continue
		}
		for i := range s.parts {
			p := &s.parts[i]
			may := s.free[i] && !s.protected(p.message) && p.message < o.plan.covered && p.kind == result && p.action == Keep
			if may && p.tokens-s.media(i) >= max(s.policy.Rank.MinTokens, 200+s.policy.Rank.NamesChars) {
				l.Errorf("the view has %d tokens of %.0f, and result %d.%d of %d tokens is whole", o.plan.After, s.target, s.messages[p.message].seq, p.index, p.tokens)
			}
		}
	}
}
