package compact

// stubStale replaces what was read of a file before it was written: whoever goes by the old text goes wrong.
func stubStale(s *scene) {
	written := map[string]int{} // the oldest successful write of a path after the message at hand
	for i := len(s.parts) - 1; i >= 0; i-- {
		p := &s.parts[i]
		if p.kind != result || !p.paired {
			continue
		}
		switch {
		case p.does.writes() && p.usable:
			for _, path := range p.paths {
				written[path] = p.message
			}
		case p.does.reads() && p.tokens >= s.policy.Stale.MinTokens && s.free[i] && !s.protected(p.message):
			if by, ok := firstWrite(written, p); ok {
				s.propose(i, max(by, s.release[p.message]), proposal{do: Stale, newer: s.messages[by].seq}, stubTokens)
			}
		}
	}
}

// firstWrite finds the first write after p with which all that p read is out of date.
func firstWrite(written map[string]int, p *part) (by int, all bool) {
	for _, path := range p.paths {
		m, ok := written[path]
		if !ok || m <= p.message {
			return 0, false
		}
		by = max(by, m)
	}
	return by, len(p.paths) > 0
}
