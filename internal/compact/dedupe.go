package compact

import (
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/compact/rule"
)

// stubSuperseded replaces the older results for one resource, and, if the policy wants it, the large arguments of their
// calls. A newer result that is empty or an error supersedes nothing: the older one may be all that is known.
func stubSuperseded(s *runState) {
	limits := &s.policy.Dedupe
	found, superseding := s.supersedingOccurrences()
	for k, newer := range superseding {
		i := found[k].part
		if newer < 0 || i < 0 || !s.dedupable(i) {
			continue
		}
		p, by := &s.parts[i], found[newer].message
		if p.identity == (identity{}) {
			continue
		}
		since := max(by, s.release[p.message])
		if p.tokens >= limits.MinTokens && !s.protected(p.message) && s.bytesOf(i) >= limits.MinBytes {
			s.propose(i, since, proposal{action: Stub, newer: s.messages[by].seq}, stubTokens)
		}
		if c := p.call; limits.Arguments && c >= 0 {
			s.proposeOmission(c, max(by, s.release[s.parts[c].message]), s.messages[by].seq)
		}
	}
}

// supersedingOccurrences returns all occurrences and, for each, the index of the one that supersedes it, -1 for none.
func (s *runState) supersedingOccurrences() (found []occurrence, superseding []int) {
	found = s.occurrences()
	keys := make([]rule.Occurrence[identity], len(found))
	for k := range found {
		keys[k] = found[k].Occurrence
	}
	return found, rule.Superseded(keys, s.policy.Dedupe.KeepLast)
}

// occurrence is a result that answers a call, or a call that has none yet.
type occurrence struct {
	rule.Occurrence[identity]
	part    int // of the result, -1 for a call
	message int // with which it supersedes older ones
}

// occurrences returns what may supersede or be superseded, oldest first. With calls that have no result yet, a result
// supersedes from its call on, whatever it is: what was decided by the call must not change when the result comes.
func (s *runState) occurrences() []occurrence {
	found := make([]occurrence, 0, len(s.parts))
	pending := s.policy.Dedupe.Pending
	for i := range s.parts {
		p := &s.parts[i]
		if p.kind != result || !p.paired {
			continue
		}
		o := occurrence{rule.Occurrence[identity]{Key: p.identity, Counts: p.usable || pending}, i, p.message}
		if pending {
			o.message = s.unitOf(p.message)
		}
		found = append(found, o)
	}
	if pending {
		for c := range s.open.All() {
			o := rule.Occurrence[identity]{Key: c.identity, Counts: true}
			found = append(found, occurrence{o, -1, s.unitOf(c.message)})
		}
		slices.SortStableFunc(found, func(a, b occurrence) int { return a.message - b.message })
	}
	return found
}

// unitOf returns the first message of the unit of message m.
func (s *runState) unitOf(m int) int {
	for m > 0 && s.messages[m-1].unit == s.messages[m].unit {
		m--
	}
	return m
}

// dedupable reports whether the policy allows to replace result i, or to omit the arguments of its call.
func (s *runState) dedupable(i int) bool {
	limits, p := &s.policy.Dedupe, &s.parts[i]
	isTool := func(name string) bool { return strings.EqualFold(name, p.tool) }
	does := p.does.operation()
	switch {
	case !s.free[i] || slices.ContainsFunc(limits.DenyTools, isTool):
		return false
	case slices.ContainsFunc(limits.AllowTools, isTool):
		return true
	case len(limits.AllowTools) > 0 && len(limits.AllowOperations)+len(limits.DenyOperations) == 0:
		return false
	case slices.Contains(limits.DenyOperations, does):
		return false
	default:
		return len(limits.AllowOperations) == 0 || slices.Contains(limits.AllowOperations, does)
	}
}

// bytesOf returns the size of a result. It need not be read if no size is too small.
func (s *runState) bytesOf(i int) int {
	p := &s.parts[i]
	switch {
	case s.policy.Dedupe.MinBytes == 0:
		return 0
	case p.action != Keep:
		return p.bytes
	}
	return len(s.content(i).Stored)
}
