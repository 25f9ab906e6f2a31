package compact

// FreedAfter returns how many messages of the log must come before the policy no longer protects messages that have
// this many tokens together, or more. It is a lower bound: units and turns may have several messages. It returns 0 if
// the units, messages and turns that it protects because they are the newest do not have as many.
func (p *Plan) FreedAfter(tokens int64) int {
	s, freed := p.state, map[int]int64{} // tokens by the messages that must come
	furthest := 0
	units := len(s.messagesThat(func(m *message) bool { return m.begins }))
	turns := 0 // that begin after m
	for m := len(s.messages) - 1; m >= s.pinned; m-- {
		if s.protected(m) {
			n := s.releasedAfter(m, units, turns)
			freed[n] += int64(s.messages[m].now)
			furthest = max(furthest, n)
		}
		if s.messages[m].role == user {
			turns++
		}
	}
	sum := int64(0)
	for n := 1; n <= furthest; n++ {
		if sum += freed[n]; sum >= tokens {
			return max(1, n*s.logged()/len(s.messages))
		}
	}
	return 0
}

// logged returns how many messages of the log the messages are: one of the log may be divided into several.
func (s *runState) logged() int {
	n := 0
	for m := range s.messages {
		if m == 0 || s.messages[m].seq != s.messages[m-1].seq {
			n++
		}
	}
	return n
}

// releasedAfter returns how many messages must come at the least before the protection of message m ends. units is how
// many units have begun, turns how many turns have begun after m.
func (s *runState) releasedAfter(m, units, turns int) int {
	rule := &s.policy.Protect
	return max(1,
		s.messages[m].unit+rule.LastUnits-units,
		m+rule.LastMessages+1-len(s.messages),
		rule.LastTurns-turns)
}
