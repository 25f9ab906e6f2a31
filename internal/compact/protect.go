package compact

// releases returns for every message the one with which its protection ended: when enough units, messages and turns had
// come after it. The protection of a leading system message never ends.
func (s *runState) releases() []int {
	now, rule := len(s.messages), &s.policy.Protect
	release := make([]int, now)
	starts := s.messagesThat(func(m *message) bool { return m.begins }) // of units
	turns := s.messagesThat(func(m *message) bool { return m.role == user })
	turn := len(turns) // the first of turns that begins after m
	for m := now - 1; m >= 0; m-- {
		for turn > 0 && turns[turn-1] > m {
			turn--
		}
		at := max(nth(starts, s.messages[m].unit+rule.LastUnits-1, now), min(m+rule.LastMessages, now))
		if rule.LastTurns > 0 {
			at = max(at, min(nth(turns, turn+rule.LastTurns-1, now), s.outgrown(m)))
		}
		if release[m] = max(at, m); m < s.pinned {
			release[m] = now
		}
	}
	return release
}

// outgrown returns the message with which the turns after m had become so large that they no longer protect it.
func (s *runState) outgrown(m int) int {
	rule := &s.policy.Protect
	if rule.MaxTurnRatio == 0 {
		return len(s.messages)
	}
	return s.reached(m, rule.MaxTurnRatio*s.target*float64(rule.LastTurns))
}

// nth returns an element of a list, or fallback if the list is shorter.
func nth(list []int, n, fallback int) int {
	if n >= len(list) {
		return fallback
	}
	return list[max(n, 0)]
}

// messagesThat returns the messages for which is reports true.
func (s *runState) messagesThat(is func(*message) bool) (list []int) {
	for m := range s.messages {
		if is(&s.messages[m]) {
			list = append(list, m)
		}
	}
	return list
}
