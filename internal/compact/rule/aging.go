// Package rule has the decisions of the stages of compaction over plain numbers, without messages, texts or policies.
// Start at Aging (how much of an old result is kept) and Superseded (which results a newer one supersedes); Worth
// compares a compaction with the provider's cache. It is pure and owns no tables.
package rule

import "math"

// Step is how much of a result is kept in the view.
type Step int

// The steps, each less than the one before.
const (
	Whole   Step = iota // all of it
	Bookend             // its beginning and its end
	Line                // one line that describes it
)

// Aging shortens older results: whole within the zone, then beginning and end, which shrink linearly over the span
// after it, then one line. Distances, Zone and Span have the same unit, chosen by the caller.
type Aging struct {
	Zone, Span         float64
	MaxChars, MinChars int // of beginning and end each: next to the zone, and at the end of the span
}

// At returns the step at a distance from the end of the session, and for Bookend the characters of beginning and end
// each. MinChars wins over a smaller MaxChars.
func (a Aging) At(distance float64) (step Step, chars int) {
	if distance < a.Zone {
		return Whole, 0
	}
	along := 1.0
	if a.Span > 0 {
		along = (distance - a.Zone) / a.Span
	}
	if along >= 1 {
		return Line, 0
	}
	// The conversions keep machines that multiply and add in one step from rounding differently.
	wanted := float64(float64(a.MaxChars)*(1-along)) + float64(float64(a.MinChars)*along)
	return Bookend, max(a.MinChars, halfUp(wanted))
}

// halfUp returns the nearest whole number, halves rounded towards +∞, like JavaScript's Math.round.
func halfUp(x float64) int {
	floor := math.Floor(x)
	if x-floor >= 0.5 {
		floor++
	}
	return int(floor)
}
