package compact

import "slices"

// setTarget sets the target: a share of the window less what never leaves it, and that. So there is room for the
// conversation whatever size the system message and the tools have. A policy whose protection does not yield has a
// share of the whole window, as the systems do that Varve unites.
func (s *runState) setTarget() {
	s.target = s.policy.TargetOf(s.window)
	if !s.policy.Protect.Yields {
		return
	}
	s.fixed = float64(s.in.OverheadTokens)
	for m := range s.pinned {
		if s.locks(m) {
			s.fixed += float64(s.messages[m].tokens)
		}
	}
	const belowTrigger = 0.9 // else a compaction would be due again at once
	own := s.fixed + s.policy.TargetOf(max(s.window-s.fixed, 0))
	s.target = max(s.target, min(own, belowTrigger*s.policy.Trigger*s.window))
}

// share returns a share of the window in tokens, never more than half of the target: of both without what never leaves.
func (s *runState) share(ratio float64) int {
	return int(max(min(ratio*(s.window-s.fixed), (s.target-s.fixed)/2), 0))
}

// seenWith returns for every message the one with which a request must have had its results: the agent's next, or
// len(messages) if there is none yet. A policy whose protection does not yield does not ask.
func (s *runState) seenWith() []int {
	list := make([]int, len(s.messages))
	next := len(s.messages)
	for m := len(s.messages) - 1; m >= 0; m-- {
		at := &s.messages[m]
		brings := func(p part) bool { return p.kind == result }
		if list[m] = m; s.policy.Protect.Yields && slices.ContainsFunc(s.parts[at.first:at.last], brings) {
			list[m] = next
		}
		if at.role == assistant {
			next = m
		}
	}
	return list
}

// unseen reports whether no request can have had the results of message m.
func (s *runState) unseen(m int) bool { return s.seen[m] >= len(s.messages) }

// releases returns for every message the one with which its protection ended: when enough units, messages and turns had
// come after it. The protection of a leading system message never ends, nor, where it yields only to the window, that
// of what no request has had yet.
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
		if release[m] = max(at, s.seen[m]); s.locks(m) {
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
	return s.reached(m, rule.MaxTurnRatio*s.policy.TargetOf(s.window)*float64(rule.LastTurns))
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
