package compact

import (
	"cmp"
	"slices"

	"github.com/varve-dev/varve/internal/session"
)

// begins reports whether a message that comes now begins a unit: an assistant's does; any other does unless it only
// answers calls, or comes while calls of the newest assistant message wait for their results. What one message of another
// format became stays together, and so do the items of one answer of OpenAI's Responses.
func (h *history) begins(r role, startsUnit, goesOn bool) bool {
	switch n := len(h.messages); {
	case n == 0:
		return true
	case goesOn:
		return false
	case r == assistant:
		return h.in.Format != session.OpenAIResponses || h.messages[n-1].role != assistant
	}
	return startsUnit && h.waiting == 0
}

// push appends a message whose parts and calls are known already.
func (h *history) push(m message) {
	if m.begins {
		h.units++
	}
	m.unit = h.units
	switch {
	case m.role == assistant && (m.begins || h.asked < 0):
		h.asked, h.waiting = len(h.messages), m.calls
	case m.role == assistant:
		h.waiting += m.calls
	}
	h.messages = append(h.messages, m)
}

// through returns how many messages a checkpoint covers: all, or those before the unit whose calls are in flight. A
// call is in flight while no assistant message has come after it; afterwards it is abandoned. An answer of OpenAI's
// Responses may go on with another item as long as nobody else has said anything.
func (h *history) through() int {
	n := len(h.messages)
	goesOn := h.in.Format == session.OpenAIResponses && n > h.based && h.messages[n-1].role == assistant
	if h.waiting == 0 && !goesOn {
		return n
	}
	m := h.asked
	for m > 0 && h.messages[m-1].unit == h.messages[h.asked].unit {
		m--
	}
	return max(m, h.based)
}

// starts returns where the units of the first n messages begin. A late answer joins the units from its call to itself.
func (h *history) starts(n int) []int {
	starts := make([]int, 0, h.units)
	for m := range h.messages[:n] {
		at := &h.messages[m]
		if m < h.based && at.whole || m >= h.based && at.begins {
			starts = append(starts, m)
		}
		if m < h.based {
			continue
		}
		for i := at.first; i < at.last; i++ {
			if asked := h.parts[i].asked; asked >= 0 {
				starts = upTo(starts, asked)
			}
		}
	}
	return starts
}

// upTo leaves out the starts after message m.
func upTo(starts []int, m int) []int {
	for starts[len(starts)-1] > m {
		starts = starts[:len(starts)-1]
	}
	return starts
}

// unanswered returns the calls of the first n messages that none of them answers, in their order.
func (h *history) unanswered(n int) []call {
	var calls []call
	for _, waiting := range h.open {
		for _, c := range waiting {
			if c.message < n {
				calls = append(calls, c)
			}
		}
	}
	for i := len(h.parts) - 1; i >= 0 && h.parts[i].message >= n; i-- {
		if r := &h.parts[i]; r.asked >= 0 && r.asked < n {
			calls = append(calls, call{subject: r.subject, id: r.callID, message: r.asked, index: r.askedAt, part: r.call})
		}
	}
	slices.SortFunc(calls, func(a, b call) int { return cmp.Or(a.message-b.message, a.index-b.index) })
	return calls
}

// pinned returns how many messages lead the session with the system's or the developer's words.
func (h *history) pinned() int {
	n := 0
	for n < len(h.messages) && h.messages[n].role == system {
		n++
	}
	return n
}

// newestUser returns the newest message that the user said, -1 for none.
func (h *history) newestUser() int {
	m := len(h.messages) - 1
	for m >= 0 && h.messages[m].role != user {
		m--
	}
	return m
}
