package compact

import "slices"

// stubSuperseded replaces the older results of one tool with the same arguments. A newer result that is empty or an
// error supersedes nothing: the older one may be all that is known.
func stubSuperseded(s *scene) bool {
	rule := s.policy.Dedupe
	if !rule.Enabled {
		return false
	}
	first := s.unitStarts()
	newer := map[identity][]int{} // messages of the newer results of a call, the newest first
	for i := len(s.results) - 1; i >= 0; i-- {
		r := &s.results[i]
		if !r.paired {
			continue
		}
		after := newer[r.identity]
		if n := len(after); n >= rule.KeepLast && r.tokens >= rule.MinTokens && s.dedupable(i) && !s.protected(r.message) {
			superseded := after[n-rule.KeepLast]
			unprotected := first[s.messages[r.message].unit+s.policy.Protect.LastUnits]
			s.propose(i, max(superseded, unprotected), proposal{do: Stub, newer: s.messages[after[n-1]].seq}, stubTokens)
		}
		if r.usable {
			newer[r.identity] = append(after, r.message)
		}
	}
	return true
}

func (s *scene) dedupable(i int) bool {
	tool, rule := s.results[i].tool, &s.policy.Dedupe
	return s.free(i) && (len(rule.AllowTools) == 0 || slices.Contains(rule.AllowTools, tool)) && !slices.Contains(rule.DenyTools, tool)
}

// unitStarts returns the message with which unit n began, for n from 1.
func (s *scene) unitStarts() []int {
	first := make([]int, s.units+1)
	for m := range s.messages {
		if s.messages[m].begins {
			first[s.messages[m].unit] = m
		}
	}
	return first
}
