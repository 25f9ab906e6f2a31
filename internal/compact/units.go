package compact

import (
	"cmp"
	"slices"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/units"
	"github.com/varve-dev/varve/internal/wire"
)

// through returns how many messages a checkpoint covers: all, or those before the open unit. An answer of OpenAI's
// Responses may continue with another item until another role speaks, so its unit is open, too.
func (h *history) through() int {
	n := len(h.messages)
	mayContinue := h.units.Items && n > h.based && h.messages[n-1].role == assistant
	if !h.units.Open() && !mayContinue {
		return n
	}
	m := n - 1
	for m > 0 && h.messages[m].role != assistant {
		m--
	}
	for m > 0 && (h.messages[m-1].unit == h.messages[m].unit || h.messages[m].continues) {
		m--
	}
	return max(m, h.based)
}

// starts returns the messages among the first n with which units begin. A late answer joins the units from its call on,
// an early one those up to its call.
func (h *history) starts(n int) []int {
	starts := make([]int, 0, h.units.Unit())
	early := h.early(n)
	for m := range h.messages[:n] {
		at := &h.messages[m]
		if m < h.based && at.whole || m >= h.based && at.begins {
			starts = append(starts, m)
		}
		if result, ok := early[m]; ok {
			starts = units.Join(starts, result)
		}
		if m < h.based {
			continue
		}
		for i := at.first; i < at.last; i++ {
			if asked := h.parts[i].asked; asked >= 0 {
				starts = units.Join(starts, asked)
			}
		}
	}
	return starts
}

// early returns, of the calls among the first n messages that no result answers, the messages that may have their
// results before them, by the messages of the calls. No checkpoint keeps which ids had calls before: a second result
// of another call is among them, and only makes a unit longer.
func (h *history) early(n int) map[int]int {
	if h.open.Waiting() == 0 {
		return nil
	}
	calls := map[int][]string{}
	for c := range h.open.All() {
		calls[c.message] = append(calls[c.message], c.id)
	}
	var waiting units.Early[int]
	found := map[int]int{}
	for m := range h.messages[:n] {
		at := &h.messages[m]
		if at.role == user {
			waiting.Said()
		}
		for _, id := range calls[m] {
			if results := waiting.Call(id, m); len(results) > 0 {
				farthest := results[len(results)-1]
				if known, ok := found[m]; !ok || farthest < known {
					found[m] = farthest
				}
			}
		}
		for i := at.first; i < at.last; i++ {
			if p := &h.parts[i]; p.kind == result && p.asked < 0 && !p.paired {
				waiting.Result(p.callID, m, m)
			}
		}
	}
	return found
}

// unanswered returns the calls of the first n messages that none of these answers, in their order.
func (h *history) unanswered(n int) []call {
	var calls []call
	for c := range h.open.All() {
		if c.message < n {
			calls = append(calls, c)
		}
	}
	for i := len(h.parts) - 1; i >= 0 && h.parts[i].message >= n; i-- {
		if r := &h.parts[i]; r.asked >= 0 && r.asked < n {
			calls = append(calls, call{
				subject: r.subject, id: r.callID, message: r.asked, index: r.askedAt, part: r.call,
			})
		}
	}
	slices.SortFunc(calls, func(a, b call) int { return cmp.Or(a.message-b.message, a.index-b.index) })
	return calls
}

// systemMessages returns how many messages of the system or the developer lead the session and must not change.
func (h *history) systemMessages() int {
	n := 0
	if !h.in.Policy.Protect.System {
		return 0
	}
	for n < len(h.messages) && h.messages[n].role == system {
		n++
	}
	return n
}

// newestUser returns the newest message with words of the user, or -1.
func (h *history) newestUser() int {
	m := len(h.messages) - 1
	for m >= 0 && (h.messages[m].role != user || h.byHarness(m)) {
		m--
	}
	return m
}

// byHarness reports whether all that message m says was written by the user's program.
func (h *history) byHarness(m int) bool {
	body := h.body(m)
	found, err := wire.Inspect(h.in.Format, body)
	for i := range found.Parts {
		p := &found.Parts[i]
		if p.Kind != wire.Text || summary.Said(string(decoded(p.Value.Of(body)))) != "" {
			return false
		}
	}
	return err == nil && len(found.Parts) > 0
}
