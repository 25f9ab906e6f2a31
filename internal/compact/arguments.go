package compact

import "slices"

// omitArguments omits the large arguments of old calls: what was written to a file is in the file.
func omitArguments(s *runState) {
	limits := &s.policy.Arguments
	after := min(float64(limits.AfterTokens), s.target/2)
	for i := range s.parts {
		p := &s.parts[i]
		listed := slices.Contains(limits.Operations, p.does.operation()) || slices.Contains(limits.Tools, p.tool)
		if p.kind != arguments || !listed {
			continue
		}
		if since := s.reached(p.message, after); since < len(s.messages) {
			s.proposeOmission(i, max(since, s.release[p.message]), 0)
		}
	}
}

// proposeOmission proposes to omit the large arguments of call i from message since on.
func (s *runState) proposeOmission(i, since int, newer int64) {
	p := &s.parts[i]
	if !s.free[i] || s.protected(p.message) {
		return
	}
	left := p.now
	if p.action == Keep {
		made := s.omissionOf(i)
		if made.text == nil {
			return
		}
		left = made.tokens
	}
	s.propose(i, since, proposal{action: Omit, newer: newer, distance: s.distance(p.message)}, left)
}
