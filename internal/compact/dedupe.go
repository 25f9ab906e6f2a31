package compact

import (
	"slices"

	"github.com/varve-dev/varve/internal/compact/rule"
)

// stubSuperseded replaces the older results for one resource, and, if the policy wants it, the large arguments of their
// calls. A newer result that is empty or an error supersedes nothing: the older one may be all that is known.
func stubSuperseded(s *runState) {
	limits := &s.policy.Dedupe
	results, occurrences := s.occurrences()
	for k, newer := range rule.Superseded(occurrences, limits.KeepLast) {
		i := results[k]
		p := &s.parts[i]
		if newer < 0 || p.identity == (identity{}) || !s.dedupable(i) {
			continue
		}
		by := s.parts[results[newer]].message
		since := max(by, s.release[p.message])
		if p.tokens >= limits.MinTokens && !s.protected(p.message) {
			s.propose(i, since, proposal{action: Stub, newer: s.messages[by].seq}, stubTokens)
		}
		if c := p.call; limits.Arguments && c >= 0 {
			s.proposeOmission(c, max(by, s.release[s.parts[c].message]), s.messages[by].seq)
		}
	}
}

// occurrences returns the results that answer a call, oldest first, with what each is about.
func (s *runState) occurrences() (results []int, of []rule.Occurrence[identity]) {
	results = make([]int, 0, len(s.parts))
	of = make([]rule.Occurrence[identity], 0, len(s.parts))
	for i := range s.parts {
		if p := &s.parts[i]; p.kind == result && p.paired {
			results = append(results, i)
			of = append(of, rule.Occurrence[identity]{Key: p.identity, Counts: p.usable})
		}
	}
	return results, of
}

// dedupable reports whether the policy allows to replace result i, or to omit the arguments of its call.
func (s *runState) dedupable(i int) bool {
	limits, p := &s.policy.Dedupe, &s.parts[i]
	return s.free[i] && selected(p.tool, limits.AllowTools, limits.DenyTools) &&
		selected(p.does.operation(), limits.AllowOperations, limits.DenyOperations)
}

// selected reports whether a list, unless it is empty, allows an entry, and the other does not deny it.
func selected[T comparable](entry T, allowed, denied []T) bool {
	return (len(allowed) == 0 || slices.Contains(allowed, entry)) && !slices.Contains(denied, entry)
}
