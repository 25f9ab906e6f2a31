package compact

import (
	"math"

	"github.com/varve-dev/varve/internal/policy"
)

// How a part's score depends on what it is: a factor above 1 makes it leave sooner, below 1 later. They were chosen on
// one half of the recorded sessions, see docs/performance.md.
const (
	supersededFactor = 8.0 // a newer result says the same, or the file has changed since
	ephemeralFactor  = 4.0
	scarceFactor     = 0.7 // what cannot be had again by the same call
	failedFactor     = 1.5 // its line tells why it failed
	argumentFactor   = 0.3 // the agent's own words
	readBackFactor   = 8.0 // what it was read from is stored, and can be read again
	earlierTurn      = 1.5 // it was asked for before the user spoke last
)

// partSteps returns the steps down of every part that may change.
func (r *ranking) partSteps() (steps []demotion) {
	replaced, used := r.replacedBy(), r.lastUses()
	for i := range r.parts {
		p := &r.parts[i]
		if p.kind == arguments && r.policy.Rank.ArgumentBytes == 0 {
			continue
		}
		if !r.free[i] || r.protected(p.message) || p.action >= Stub || r.now(i) < r.policy.Rank.MinTokens {
			continue
		}
		to := proposal{action: Placeholder, distance: r.distance(p.message)}
		age := float64(to.distance)
		factor := r.factor(i)
		by, isReplaced := replaced[i]
		switch {
		case p.kind == arguments:
			to.action = Omit
		case isReplaced:
			to.action, to.newer = by.action, by.newer
			factor *= supersededFactor
		case r.policy.Trim.Categories[p.tool] == policy.Ephemeral || p.readBack:
			to.action = Blank
		case r.recent(to.distance) && p.action < Bookend:
			steps = append(steps, r.bookendStep(i, age*factor)...)
		}
		if at, ok := used[i]; ok && !isReplaced {
			age = float64(r.distance(at))
		}
		steps = append(steps, demotion{part: i, to: to, score: age * factor * r.weight(r.left(i, steps))})
	}
	return steps
}

// left returns how many tokens part i has before it becomes a line: those of its bookends if the last of steps makes
// them, else those that it has now.
func (r *ranking) left(i int, steps []demotion) int {
	if n := len(steps); n > 0 && steps[n-1].part == i {
		return 2*r.policy.Rank.BookendChars/charsPerToken + markerTokens
	}
	return r.now(i)
}

// bookendStep returns the step to head and tail of result i, if it is large enough.
func (r *ranking) bookendStep(i int, score float64) []demotion {
	const large = 3 // times what would stay
	chars := r.policy.Rank.BookendChars
	if chars == 0 || r.now(i) < large*(2*chars/charsPerToken+markerTokens) {
		return nil
	}
	to := proposal{action: Bookend, head: chars, tail: chars, bookend: chars, distance: r.distance(r.parts[i].message)}
	return []demotion{{part: i, to: to, score: score * r.weight(r.now(i))}}
}

// recent reports whether a distance is so small that a large result keeps head and tail first.
func (r *ranking) recent(distance int64) bool { return float64(distance) < r.target }

// weight returns what a number of tokens counts.
func (r *ranking) weight(tokens int) float64 {
	if r.policy.Rank.SizeWeight == 1 {
		return float64(tokens)
	}
	return math.Pow(float64(tokens), r.policy.Rank.SizeWeight)
}

// factor returns how much sooner part i leaves because of what it is.
func (r *ranking) factor(i int) float64 {
	p, factor := &r.parts[i], 1.0
	switch {
	case p.kind == arguments:
		factor = argumentFactor
	case !p.usable:
		factor = failedFactor
	}
	switch r.policy.Trim.Categories[p.tool] {
	case policy.Ephemeral:
		factor *= ephemeralFactor
	case policy.NonReproducible:
		factor *= scarceFactor
	}
	if p.readBack {
		factor *= readBackFactor
	}
	if p.message < r.newestUser() {
		factor *= earlierTurn
	}
	return factor
}

// replacedBy returns the results that a newer result or a write has made superfluous, with the line that says so.
func (r *ranking) replacedBy() map[int]proposal {
	replaced := map[int]proposal{}
	found, superseding := r.supersedingOccurrences()
	for k, newer := range superseding {
		i := found[k].part
		if newer < 0 || i < 0 || r.parts[i].identity == (identity{}) || !r.dedupable(i) {
			continue
		}
		replaced[i] = proposal{action: Stub, newer: r.messages[found[newer].message].seq}
	}
	for i, by := range r.outOfDate() {
		if _, superseded := replaced[i]; !superseded {
			replaced[i] = proposal{action: Stale, newer: r.messages[by].seq}
		}
	}
	return replaced
}

// lastUses returns, for each result with a file that a later call names, the message of the newest such use. The age of
// a result counts from there, because the agent still works with the file.
func (r *ranking) lastUses() map[int]int {
	newest, uses := map[string]int{}, map[int]int{}
	for i := len(r.parts) - 1; i >= 0; i-- {
		p := &r.parts[i]
		for _, name := range p.paths {
			if at, ok := newest[name]; ok {
				uses[i] = max(uses[i], at)
			} else {
				newest[name] = p.message
			}
		}
	}
	return uses
}

// unitSteps returns the leaving of each of the oldest units that a summary may replace. Without its results a unit is
// worth a part of one.
func (r *ranking) unitSteps() (steps []demotion) {
	limits := &r.policy.Summarise
	end := r.summarisable(limits.KeepTurns, limits.KeepMessages)
	starts := r.startsOf(end)
	for begin := r.pinned; begin < end; {
		next, results := begin, 0
		tokens := 0
		for first := true; next < end && (first || !starts[next]); next++ {
			first = false
			results += r.messages[next].last - r.messages[next].first
			tokens += r.skeleton(next)
		}
		score := math.Inf(1)
		if w := r.policy.Rank.UnitWeight; w > 0 {
			score = float64(r.distance(next-1)) * float64(tokens) / float64(max(results, 1)) / w
		}
		steps = append(steps, demotion{part: -1, end: next, score: score})
		begin = next
	}
	return inOrder(steps)
}

// inOrder lowers scores so that no unit leaves before an older one.
func inOrder(units []demotion) []demotion {
	for k := 1; k < len(units); k++ {
		units[k].score = min(units[k].score, units[k-1].score)
	}
	return units
}

// skeleton returns about how many tokens message m has once lines stand for all its large parts.
func (r *ranking) skeleton(m int) int {
	at := &r.messages[m]
	tokens := at.tokens
	line := stubTokens + r.policy.Rank.NamesChars/charsPerToken
	for i := at.first; i < at.last; i++ {
		tokens -= max(r.parts[i].tokens-min(r.now(i), line), 0)
	}
	return tokens
}
