// Package rule decides over plain numbers: it is the heart of each stage of compaction, without messages, texts or
// policies. Start at Aging (how much of an old result stays) and Superseded (which results a newer one has made
// superfluous); Worth weighs a compaction against the provider's cache. It is pure and owns no tables.
package rule

import "math"

// Step is how much of a result stays in the view.
type Step int

// The steps, each less than the one before.
const (
	Whole   Step = iota // all of it
	Bookend             // its beginning and its end
	Line                // one line that says what it was
)

// Aging shortens what lies further back: whole within the zone, then beginning and end, which shrink linearly over the
// span behind it, then one line. Distances, Zone and Span have one unit, the caller's.
type Aging struct {
	Zone, Span         float64
	MaxChars, MinChars int // of beginning and end each: next to the zone, and at the end of the span
}

// At is the step at a distance from the end of the session, and for Bookend the characters of beginning and end each.
// MinChars wins over a smaller MaxChars.
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

// halfUp rounds to the nearest whole number, halves towards +∞, as JavaScript's Math.round.
func halfUp(x float64) int {
	floor := math.Floor(x)
	if x-floor >= 0.5 {
		floor++
	}
	return int(floor)
}
