package compact

// capOversized cuts every result over a limit to its head and tail, the newest ones too: one result can be larger than
// all that a view may have.
func capOversized(s *scene) bool {
	limit := s.policy.Cap
	if !limit.Enabled {
		return false
	}
	for i := range s.results {
		r := &s.results[i]
		if r.tokens <= limit.MaxTokens || !s.free(i) {
			continue
		}
		if chars, text := s.chars(i); text && chars > limit.HeadChars+limit.TailChars {
			kept := int(int64(r.tokens) * int64(limit.HeadChars+limit.TailChars) / int64(chars))
			s.propose(i, r.message, proposal{do: Cap, head: limit.HeadChars, tail: limit.TailChars}, kept+markerTokens)
		}
	}
	return true
}
