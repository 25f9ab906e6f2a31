package compact

import "github.com/varve-dev/varve/internal/wire"

// yielded reports whether protection had to yield, now or before.
func (o outcome) yielded() bool {
	for _, report := range o.plan.Stages {
		if report.Stage == "hard" {
			return report.Entered
		}
	}
	return false
}

// belowHard: after a compaction under a policy whose protection yields, with no call in flight, the view is below the hard limit, or nothing is
// left of the covered messages but what never leaves and what no summary or notice is smaller than.
func (l *trial) belowHard() {
	for _, o := range l.all() {
		p := &o.in.Policy
		last := p.Summarise.Enabled || p.Truncate.Enabled
		size := float64(o.plan.After) + float64(o.in.OverheadTokens)
		if o.plan.state.failed["summarise"] != nil {
			continue // and the next compaction tries again
		}
		if !p.Protect.Yields || !last || len(o.made.OpenCalls) > 0 || o.made.Through < o.end() || size <= p.Hard*float64(o.in.WindowTokens)+150 {
			continue // nobody knows before how long a summary or a notice will be, to a sentence
		}
		left, small := l.mayLeave(o), 150
		if !p.Truncate.Enabled {
			small = 4 * p.Summarise.MaxTokens
		}
		if left > small {
			l.Errorf("the view has %.0f tokens of %d, and %d of them could leave", size, o.in.WindowTokens, left)
		}
	}
}

// mayLeave returns how many tokens of a view could leave it.
func (l *trial) mayLeave(o outcome) (tokens int) {
	newest, leading := int64(0), true
	for m := range l.count(o.end()) {
		if l.asks(m) {
			newest = l.in.Tail[m].Seq
		}
	}
	for _, m := range o.view {
		if leading = leading && m.found.Flags&wire.FlagPinned != 0; leading || m.coversOthers() {
			continue
		}
		if m.seq == newest && o.in.Policy.Protect.NewestUser {
			continue
		}
		tokens += m.found.Tokens
	}
	return tokens
}
