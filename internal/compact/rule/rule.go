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

// Occurrence is one result of the resource that Key identifies.
type Occurrence[K comparable] struct {
	Key    K
	Counts bool // it may supersede older ones; a failed or empty result may not
}

// Superseded returns for each occurrence the index of the newer one that supersedes it, or -1: the keepLast-th counting
// one of its key after it. keepLast must be at least 1. Later occurrences never change an index.
func Superseded[K comparable](newestLast []Occurrence[K], keepLast int) []int {
	by := make([]int, len(newestLast))
	newer := make(map[K][]int) // those that count, from the newest backwards
	for i := len(newestLast) - 1; i >= 0; i-- {
		o, seen := newestLast[i], newer[newestLast[i].Key]
		by[i] = -1
		if len(seen) >= keepLast {
			by[i] = seen[len(seen)-keepLast]
		}
		if o.Counts {
			newer[o.Key] = append(seen, i)
		}
	}
	return by
}

// Cache has a provider's prices of cached input tokens, as multiples of the price of an uncached one.
type Cache struct {
	Read  float64 // of a token that is read from the cache
	Write float64 // of a token that is written to it
}

// Worth compares the gain of a compaction over the next horizon requests with its cost, the cached prefix that it
// breaks. The compacted view is a kept prefix, which is read as before, and rewritten tokens after it; without the
// compaction there are saved tokens more. Uncached tokens after the prefix may be counted as rewritten, which
// overstates the cost.
//
// While the cache is warm, waiting reads rewritten+saved tokens in each request. Compacting writes the rewritten ones
// in the first request and reads them in the others. The difference is
//
//	gain = horizon × Read × saved
//	cost = (Write − Read) × rewritten
//
// When it is cold, the next request writes the whole view in any case: without the compaction, the saved tokens would
// be written once and then read, and the compaction costs nothing.
//
//	gain = (Write + (horizon−1) × Read) × saved
//	cost = 0
//
// If the cache goes cold within the horizon, waiting writes the saved tokens again, which costs no less than reading
// them: the gain is at least this much. So a compaction that is worth it never costs more than waiting, if horizon
// requests come.
func Worth(saved, rewritten int64, warm bool, horizon int, prices Cache) (worth bool, gain, cost float64) {
	if saved <= 0 || horizon <= 0 {
		return false, 0, 0
	}
	requests := float64(horizon)
	if warm {
		gain = requests * prices.Read * float64(saved)
		cost = max(0, prices.Write-prices.Read) * float64(rewritten)
	} else {
		gain = (prices.Write + (requests-1)*prices.Read) * float64(saved)
	}
	return gain >= cost, gain, cost
}
