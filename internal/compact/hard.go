package compact

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// hardOver lets protection yield only if the view is above its hard limit before the compaction.
func hardOver(s *runState) float64 {
	size := int64(s.in.OverheadTokens)
	for m := range s.messages {
		size += int64(s.messages[m].now)
	}
	if float64(size) <= s.hardLimit() {
		return math.Inf(1)
	}
	return -1
}

// hardLimit returns the hard limit in tokens.
func (s *runState) hardLimit() float64 { return s.policy.Hard * s.window }

// overHard reports whether the view is above its hard limit.
func (s *runState) overHard() bool { return float64(s.size()) > s.hardLimit() }

// yieldAtHard makes what the policy protects yield if the view would be above its hard limit without all that may
// leave it. Each step is taken only if those before it are not enough: results in protected units are cut, the newest
// least, then become lines, as do large arguments; then those that no request has had yet, no further than the window
// forces; very large texts are cut; the units themselves may leave, but for
// the newest; the newest message of the user is cut; the newest unit may leave. Leading system messages never change.
func yieldAtHard(s *runState) {
	y := &yielding{runState: s, covered: s.through()}
	y.measure()
	for _, step := range []func(){
		y.cutResults, y.dropResults, y.cutUnseen, y.dropUnseen, y.cutTexts, y.cutHugeWords, y.releaseUnits, y.cutWords,
		y.releaseAll,
	} {
		if float64(y.smallest()) <= y.hardLimit() {
			return
		}
		step()
	}
}

// yielding is the working state of the stage hard, which lowers what the policy protects.
type yielding struct {
	*runState
	covered int  // the messages that the checkpoint will cover
	forced  bool // what no request has had yet is cut now
}

// smallest returns the tokens of the view without all that may leave it.
func (y *yielding) smallest() int64 {
	size := y.size()
	for m := range y.messages[:y.based] {
		if at := &y.messages[m]; at.coversOthers() {
			size -= int64(at.tokens - at.now) // a notice counts more than it has
		}
	}
	if y.policy.Summarise.Enabled || y.policy.Truncate.Enabled {
		size = min(size, y.without(y.mayLeave()))
	}
	return size
}

// mayLeave returns the end of the messages that may leave the view. Only a summary replaces the newest unit, too.
func (y *yielding) mayLeave() int {
	end := y.summarisable(0, 0)
	if !y.policy.Summarise.Enabled && !y.allMayLeave {
		end = min(end, y.newestUnit())
	}
	return end
}

// without returns the tokens of the view if a summary, or a notice where there can be none, replaces the messages
// before end.
func (y *yielding) without(end int) int64 {
	return y.sizeWithout(end) + int64(max(y.noticeTokens()-y.summaryRoom(), 0))
}

// goal returns the tokens that are worked towards: half-way between the target and the hard limit, so that a few more
// messages fit, and as much as can be stays of what the policy protects; the hard limit itself where that cuts what no
// request has had yet.
func (y *yielding) goal() int64 {
	if y.forced {
		return int64(y.hardLimit())
	}
	return int64((y.target + y.hardLimit()) / 2)
}

// staying returns the parts that are wanted of the messages that may not leave, oldest first.
func (y *yielding) staying(wanted func(i int, p *part) bool) (list []int) {
	end := y.mayLeave()
	for m := max(y.leading, y.compaction+1); m < y.covered; m++ {
		if y.pinned <= m && m < end && !y.isKept(m) {
			continue
		}
		for i := y.messages[m].first; i < y.messages[m].last; i++ {
			if p := &y.parts[i]; p.valueBytes() > 0 && p.action < Stub && !y.held[i] && y.mayCut(p) && wanted(i, p) {
				list = append(list, i)
			}
		}
	}
	return list
}

// mayCut reports whether it is part p's turn: results that no request has had yet come last.
func (y *yielding) mayCut(p *part) bool { return y.forced || p.kind == prose || !y.unseen(p.message) }

// cutResults cuts the results that stay to head and tail.
func (y *yielding) cutResults() {
	y.cut(y.staying(func(i int, p *part) bool { return p.kind == result && y.free[i] }))
}

// cutUnseen cuts the results that no request has had yet, and those that stay besides.
func (y *yielding) cutUnseen() {
	y.forced = true
	y.cutResults()
}

// dropUnseen replaces them by lines.
func (y *yielding) dropUnseen() {
	y.dropResults()
	y.forced = false
}

// dropResults replaces results by lines and omits large arguments, the oldest first, those of listed tools last.
func (y *yielding) dropResults() {
	listed := func(i int) int {
		if y.free[i] {
			return 0
		}
		return 1
	}
	parts := y.staying(func(_ int, p *part) bool { return p.paired })
	slices.SortStableFunc(parts, func(a, b int) int { return cmp.Compare(listed(a), listed(b)) })
	over := y.smallest() - y.goal()
	for _, i := range parts {
		if over <= 0 {
			return
		}
		to := proposal{action: Placeholder, distance: y.distance(y.parts[i].message)}
		if y.parts[i].kind == arguments {
			to.action = Omit
		}
		over -= int64(y.lowerTo(i, to))
	}
}

// cutTexts cuts the very large texts that stay, but for those of the newest message of the user.
func (y *yielding) cutTexts() {
	y.cut(y.staying(func(_ int, p *part) bool { return p.kind == prose && p.message != y.newestUserKept }))
}

// cutHugeWords cuts the newest message of the user if the view is too large even without all other units but the
// newest.
func (y *yielding) cutHugeWords() {
	if left := y.without(y.newestUnit()); float64(left) > y.hardLimit() {
		y.cutWords()
	}
}

// cutWords cuts the newest message of the user.
func (y *yielding) cutWords() {
	y.cut(y.staying(func(_ int, p *part) bool { return p.kind == prose && p.message == y.newestUserKept }))
}

// newestUnit returns the first message of the newest unit that the checkpoint will cover.
func (y *yielding) newestUnit() int { return y.lastUnitBefore(y.covered) }

// releaseUnits lets as many of the oldest protected units leave as needed, but for the newest.
func (y *yielding) releaseUnits() {
	newest := y.newestUnit()
	ends := append(y.starts(newest), newest)
	first := sort.Search(len(ends)-1, func(k int) bool { return y.without(ends[k]) <= y.goal() })
	y.releaseBefore(ends[first])
}

// releaseAll lets every unit leave.
func (y *yielding) releaseAll() {
	y.allMayLeave = true
	y.releaseBefore(y.covered)
}

// releaseBefore ends the protection of the messages before end with the newest message.
func (y *yielding) releaseBefore(end int) {
	for m := y.pinned; m < end; m++ {
		y.release[m] = min(y.release[m], len(y.messages)-1)
	}
}

// cut shortens parts to head and tail until the view without all that may leave is within the goal: those of one unit
// to the same number of tokens, those of older units to less.
func (y *yielding) cut(list []int) {
	const less = 0.9
	for room := y.roomFor(list); len(list) > 0 && y.smallest() > y.goal(); room = int(less * float64(room)) {
		level := y.levelFor(list, room)
		for _, i := range list {
			y.cutTo(i, max(level/y.older(i), markerTokens))
		}
		if level <= markerTokens {
			return
		}
	}
}

// levelFor returns how many tokens a part of the newest unit may have, and those of older units accordingly fewer, for
// all to be within room.
func (y *yielding) levelFor(list []int, room int) int {
	highest := 0
	for _, i := range list {
		highest = max(highest, y.now(i)*y.older(i))
	}
	return sort.Search(highest, func(level int) bool {
		sum := 0
		for _, i := range list {
			sum += min(y.now(i), (level+1)/y.older(i))
		}
		return sum > room
	})
}

// older returns 1 for a part of the newest unit, 2 for one of the unit before, and so on.
func (y *yielding) older(i int) int { return y.units.Unit() - y.unitOfPart(i) + 1 }

// roomFor returns how many tokens the goal leaves for parts.
func (y *yielding) roomFor(list []int) int {
	room := y.goal() - y.smallest()
	for _, i := range list {
		room += int64(y.now(i))
	}
	return int(max(room, 0))
}
