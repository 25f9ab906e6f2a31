package compact

import "math"

// trimByDistance shortens results by how many tokens came after them: whole in the hot zone, then head and tail that
// shrink along a span, then a line. A result that another stage has superseded ages like an ephemeral one.
func trimByDistance(s *scene) bool {
	rule := &s.policy.Trim
	if !rule.Enabled || float64(s.peak()) < rule.FloorRatio*s.window {
		return false
	}
	now := len(s.messages) - 1
	distance := int64(0)
	for m := now; m >= 0; m-- {
		at := &s.messages[m]
		for i := at.first; i < at.last && !s.protected(m); i++ {
			if !s.free(i) || s.results[i].tokens < rule.MinTokens {
				continue
			}
			p := s.age(i, distance)
			p.distance = distance
			s.propose(i, now, p, min(s.foreseen[i], (p.head+p.tail)/4+markerTokens))
		}
		distance += int64(at.tokens)
	}
	return true
}

// age decides what a result at a distance from the end deserves.
func (s *scene) age(i int, distance int64) proposal {
	rule := &s.policy.Trim
	category, zone := rule.Categories[s.results[i].tool], s.hotZone()
	if category == NonReproducible {
		zone *= rule.ExtendedRetentionMultiplier
	}
	if float64(distance) < zone {
		return proposal{}
	}
	span, t := s.window*rule.DegradationSpanRatio, 1.0
	if span > 0 {
		t = min((float64(distance)-zone)/span, 1)
	}
	switch longest, shortest := float64(rule.BookendMaxChars), float64(rule.BookendMinChars); {
	case t < 1:
		chars := int(max(shortest, math.Floor(longest*(1-t)+shortest*t+0.5)))
		return proposal{do: Bookend, head: chars, tail: chars}
	case category == Ephemeral || s.wants[i].do == Stub:
		return proposal{do: Clear}
	}
	return proposal{do: Placeholder}
}

// hotZone is how many tokens from the end results stay whole. In a small window it would be all that the target allows,
// so it is never more than half of that.
func (s *scene) hotZone() float64 {
	rule := &s.policy.Trim
	return min(max(float64(rule.HotZoneMinTokens), s.window*rule.HotZoneRatio), s.target/2)
}
