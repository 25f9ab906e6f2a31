package compact

import (
	"math"

	"github.com/varve-dev/varve/internal/compact/rule"
	"github.com/varve-dev/varve/internal/policy"
)

// trimByDistance shortens results by how many tokens came after them: whole in the hot zone, then head and tail that
// shrink along a span, then a line. A result that another stage has superseded ages like an ephemeral one.
func trimByDistance(s *runState) {
	for i := range s.parts {
		p := &s.parts[i]
		if p.kind != result || !s.free[i] || p.tokens < s.policy.Trim.MinTokens || s.protected(p.message) {
			continue
		}
		category := s.policy.Trim.Categories[p.tool]
		aging, distance := s.aging(category), s.distance(p.message)
		if step, chars := aging.At(float64(distance)); step != rule.Whole {
			s.proposeStep(i, step, s.stepped(chars, aging), category, aging)
		}
	}
}

// stepped rounds the characters of a bookend up to one of a few sizes, each less than the one before by size: a bookend
// that lost a few characters at every compaction would break the provider's cache of everything after it, and save
// almost nothing, or in tokens not even that.
func (s *runState) stepped(chars int, a rule.Aging) int {
	size := 1
	if s.policy.OnlySmaller {
		size = minCut
	}
	if sizes := s.policy.Trim.BookendSizes; sizes > 0 {
		size = max((a.MaxChars-a.MinChars)/sizes, size)
	}
	if chars >= a.MaxChars {
		return chars // the least is above the most
	}
	return a.MaxChars - (a.MaxChars-chars)/size*size
}

// aging returns how a result of a category ages in this window.
func (s *runState) aging(c policy.Category) rule.Aging {
	limits := &s.policy.Trim
	a := rule.Aging{
		Zone:     s.hotZone(),
		Span:     s.window * limits.DegradationSpanRatio,
		MaxChars: limits.BookendMaxChars,
		MinChars: limits.BookendMinChars,
	}
	a.MinChars = max(a.MinChars, s.minCutChars())
	a.MaxChars = max(a.MaxChars, s.minCutChars())
	if c == policy.NonReproducible {
		a.Zone *= limits.ExtendedRetentionMultiplier
	}
	return a
}

// hotZone returns how many tokens from the end results stay whole. In a small window that could be the whole target, so
// it is never more than half of the target.
func (s *runState) hotZone() float64 {
	limits := &s.policy.Trim
	zone := max(float64(limits.HotZoneMinTokens), s.window*limits.HotZoneRatio)
	if limits.HotZoneMaxRatio > 0 {
		zone = min(zone, limits.HotZoneMaxRatio*s.target)
	}
	return zone
}

// proposeStep proposes the replacement of result i at its present age, and records its earlier ones.
func (s *runState) proposeStep(i int, step rule.Step, chars int, c policy.Category, a rule.Aging) {
	p := &s.parts[i]
	since := max(s.reached(p.message, a.Zone), s.release[p.message])
	want := proposal{action: Bookend, head: chars, tail: chars, distance: s.distance(p.message)}
	if step == rule.Line {
		since = max(s.reached(p.message, a.Zone+a.Span), s.release[p.message])
		want = proposal{action: Placeholder, distance: want.distance}
		if c == policy.Ephemeral || s.proposed[i].action == Stub {
			want.action = Blank
		}
	}
	if a.Span > 0 {
		s.shrinks(i, a)
	}
	if step == rule.Line {
		s.propose(i, since, want, stubTokens)
		chars = s.stepped(a.MinChars, a) // if the line is not used
	} else {
		s.proposeAction(i, since, want)
	}
	if a.Span > 0 {
		s.proposed[i].bookend = max(chars, 1)
	}
}

// shrinks records in four steps what the bookends of result i keep of it along the span, if it can be cut.
func (s *runState) shrinks(i int, a rule.Aging) {
	p := &s.parts[i]
	const steps = 4
	perToken, cuts := s.density(i)
	if !cuts {
		return
	}
	for k := range steps {
		along := float64(k) / steps
		at := s.reached(p.message, a.Zone+along*a.Span)
		if at == len(s.messages) {
			return
		}
		_, chars := a.At(a.Zone + along*a.Span)
		chars = s.stepped(chars, a)
		s.foresee(i, max(at, s.release[p.message]), int(float64(2*chars)/perToken)+markerTokens)
	}
}

// trimOver keeps a view below the floor from being trimmed.
func trimOver(s *runState) float64 {
	floor := s.policy.Trim.FloorRatio * s.window
	if s.target > floor {
		return s.target
	}
	return math.Ceil(floor) - 1 // a view at the floor is trimmed
}
