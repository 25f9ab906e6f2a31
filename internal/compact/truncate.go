package compact

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/policy"
)

// noticeTokens returns about the size of the notice that replaces dropped messages. It must not depend on them: what is
// dropped would change while they become more.
func (s *runState) noticeTokens() int {
	if s.count.estimates() {
		return 110
	}
	const numbers = 8 // digits
	return s.count.text(bytes.Repeat([]byte{'0'}, s.words.truncated.Constant()+numbers))
}

// dropOldest drops the oldest units if there is no summary of them: the last resort. It drops what had to be dropped at
// any message of the history for the view to stay within its target, so that what was dropped once stays dropped.
func dropOldest(s *runState) {
	if s.policy.Summarise.Enabled && s.unwritten == nil || !s.policy.Truncate.Enabled && !s.dropsUnwritten() {
		return
	}
	if s.policy.Summarise.Enabled { // without summaries what leaves goes by what was foreseen at each message
		s.measure()
	}
	t := s.truncation()
	for m := range s.messages {
		t.arrive(m)
	}
	d := s.newEviction(t.first, t.to, Drop)
	if d == nil {
		return
	}
	d.unwritten = s.dropsUnwritten()
	s.pinTo(d)
	if err := d.compose(s.in.Format, s.count, &s.words.truncated, replacementText{}); err != nil {
		s.failed[s.stage] = err
		return
	}
	d.tokens = s.noticeTokens()
	s.eviction = d
}

// mayTruncate reports whether a policy ever drops units.
func mayTruncate(p *policy.Policy) bool {
	return p.Truncate.Enabled || p.Summarise.Enabled && p.Summarise.Fallback == policy.DropInstead
}

// dropsUnwritten reports whether units leave because their model has failed to summarise them.
func (s *runState) dropsUnwritten() bool {
	return s.waitsForModel() && s.policy.Summarise.Fallback == policy.DropInstead && s.unwritten != nil &&
		!errors.Is(s.unwritten, summary.ErrDue)
}

// dropOver returns how many tokens the view has at most when the oldest units are dropped. While a model's summary of
// them is waited for they stay, unless the view would be above its hard limit.
func (s *runState) dropOver() float64 {
	if s.policy.Summarise.Enabled && s.waitsForModel() && !s.dropsUnwritten() {
		return max(s.hardLimit(), truncateOver(s))
	}
	return truncateOver(s)
}

// truncateOver returns the highest limit of the stages before: a message goes through all before it is dropped.
func truncateOver(s *runState) float64 {
	if s.policy.Trim.Enabled {
		return trimOver(s)
	}
	return s.target
}

// truncation drops units while the messages of a session arrive.
type truncation struct {
	*runState
	starts    []int   // of the units, up to each of which messages may be dropped
	events    []event // what the proposals save, by when
	current   []int   // by message: its present tokens
	size      int64   // of the view
	over      float64 // it must not have more
	first, to int     // messages[first:to] are dropped
	held      int     // the newest message of the user, if it is before to; -1 for none
}

// event records that a message has fewer tokens from message at on.
type event struct{ at, message, saved int }

func (s *runState) truncation() *truncation {
	t := &truncation{
		runState: s,
		starts:   s.starts(s.through()),
		current:  make([]int, len(s.messages)),
		size:     int64(s.in.OverheadTokens),
		over:     s.dropOver(),
		first:    s.pinned,
		to:       s.pinned,
		held:     -1,
	}
	if covered := s.through(); covered < len(s.messages) {
		t.starts = append(t.starts, covered) // the unit whose calls are in flight
	} else if s.allMayLeave {
		t.starts = append(t.starts, covered)
	}
	t.resume()
	for i := range s.parts {
		for at, saved := range s.savings(i) {
			t.events = append(t.events, event{at, s.parts[i].message, saved})
		}
	}
	slices.SortStableFunc(t.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return t
}

// resume continues where the base's notice ends. A summary stays where it is; the notice after it covers more.
func (t *truncation) resume() {
	for m := t.pinned; m < t.based; m++ {
		at := &t.messages[m]
		switch {
		case at.inner.end > 0:
			t.first, t.to = m+1, m+1
		case at.coversOthers():
			for t.to = m + 1; t.to < t.based && t.remains(t.to, at.to); t.to++ {
			}
		}
	}
}

// remains reports whether message m after a notice is the one that was kept of what the notice covers, up to message
// last: the newest message of the user, which is among them, or ended one of their units. Steps of message last that
// are left are none of it.
func (t *truncation) remains(m int, last int64) bool {
	at := &t.messages[m]
	return t.spared[m] && at.seq <= last || at.role == user && (at.seq <= last || !at.begins)
}

// arrive adds message m and drops units until the view is within its target.
func (t *truncation) arrive(m int) {
	t.current[m] = t.messages[m].tokens
	t.size += int64(t.current[m])
	for ; len(t.events) > 0 && t.events[0].at == m; t.events = t.events[1:] {
		e := t.events[0]
		t.current[e.message] -= e.saved
		if e.message < t.first || e.message >= t.to || e.message == t.held || t.spared[e.message] {
			t.size -= int64(e.saved)
		}
	}
	if t.messages[m].role == user && t.held >= 0 {
		t.size -= int64(t.current[t.held])
		t.held = -1
	}
	if t.messages[m].role == user && t.first <= m && m < t.to && t.policy.Protect.NewestUser {
		t.held = m
	}
	for m >= t.since && float64(t.size) > t.over {
		if !t.drop(m) {
			return
		}
	}
}

// drop drops the oldest unit if that is allowed once message m has come, and reports whether it did.
func (t *truncation) drop(m int) bool {
	next := t.next()
	if atEnd := next == len(t.messages) && m == next-1; next < 0 || next > m && !atEnd {
		return false
	}
	for k := t.to; k < next; k++ {
		if t.release[k] > m {
			return false
		}
	}
	if t.to == t.first {
		t.size += int64(t.noticeTokens())
	}
	for k := t.to; k < next; k++ {
		if t.spared[k] {
			continue
		}
		if t.policy.Protect.NewestUser && t.messages[k].role == user && !t.userSpokeAgain(k, m) {
			t.held = k
			continue
		}
		t.size -= int64(t.current[k])
	}
	t.to = next
	return true
}

// next returns the beginning of the unit after the oldest one, -1 after the last.
func (t *truncation) next() int {
	i, _ := slices.BinarySearch(t.starts, t.to+1)
	if i == len(t.starts) {
		return -1
	}
	return t.starts[i]
}

// userSpokeAgain reports whether the user spoke after message k, up to and including message m.
func (t *truncation) userSpokeAgain(k, m int) bool {
	for k++; k <= m; k++ {
		if t.messages[k].role == user {
			return true
		}
	}
	return false
}
