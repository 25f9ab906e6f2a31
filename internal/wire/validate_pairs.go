package wire

import (
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/units"
)

// heldCall is a call and what became of it.
type heldCall struct {
	message  int
	id       string
	answered bool
	passed   bool // the conversation went on: a result would come too late
}

// heldResult is a result and what it answers.
type heldResult struct {
	message int
	id      string
	answers bool
	again   bool // it does not, because another result of its turn did
}

// holder pairs a conversation's calls and results.
type holder struct {
	*conversation
	open   units.Pairer[int] // calls without a result, as indexes of calls
	passed int               // how many calls the conversation has gone on from
	turn   map[string]bool   // ids that this turn has answered
}

// hold finds out which calls have results. Those of a turn are answered in the next one; only an output of the Responses
// API may come later. A last turn of nothing but results may still lack some.
func (c *conversation) hold() {
	h := holder{conversation: c, turn: map[string]bool{}}
	for i, t := range c.runs {
		clear(h.turn)
		c.each(t, Result, h.answer)
		if inFlight := i == len(c.runs)-1 && t.results && !t.others; !inFlight {
			h.pass()
		}
		c.each(t, Call, h.call)
	}
}

// each calls f with the parts of a kind in a turn.
func (c *conversation) each(t run, kind Kind, f func(message int, p *Part)) {
	for i := t.start; i < t.end; i++ {
		for j := range c.messages[i].Parts {
			if p := &c.messages[i].Parts[j]; p.Kind == kind {
				f(i, p)
			}
		}
	}
}

func (h *holder) call(message int, p *Part) {
	h.open.Call(p.CallID, p.Name, len(h.calls))
	h.calls = append(h.calls, heldCall{message: message, id: p.CallID})
}

func (h *holder) answer(message int, p *Part) {
	r := heldResult{message: message, id: p.CallID}
	call, ok := h.open.Answer(p.CallID, p.Name)
	if ok {
		h.calls[call].answered = true
		r.answers = true
	} else {
		r.again = h.turn[p.CallID]
	}
	h.turn[p.CallID] = h.turn[p.CallID] || ok
	h.results = append(h.results, r)
}

// pass goes on from the calls so far.
func (h *holder) pass() {
	for ; h.passed < len(h.calls); h.passed++ {
		h.calls[h.passed].passed = true
	}
	if h.format != session.OpenAIResponses {
		h.open.Clear()
	}
}

// callsAnswered is V-C1, V-R2 and V-A1.
func (c *checker) callsAnswered() {
	for i := range c.calls {
		if call := &c.calls[i]; !call.answered && (call.passed || c.settled()) {
			c.report(call.message, "call %q has no result behind it", call.id)
		}
	}
	if c.format == session.Anthropic {
		c.said("assistant", Call)
	}
}

// resultsAnswer is V-C2, V-R1 and V-A2. What Anthropic says of a second result is V-A4.
func (c *checker) resultsAnswer() {
	for i := range c.results {
		if r := &c.results[i]; !r.answers && !(r.again && c.format == session.Anthropic) {
			c.report(r.message, "result %q answers no open call before it", r.id)
		}
	}
	if c.format == session.Anthropic {
		c.said("user", Result)
	}
}

// said reports parts of a kind that another role than theirs says.
func (c *checker) said(role string, kind Kind) {
	c.parts(func(i int, p *Part) {
		if got := c.messages[i].Role; got != role {
			c.report(i, "%s %q stands in a message of role %q", kind, p.CallID, got)
		}
	}, kind)
}

// madeID reports whether Inspect made the id of a part out of the tool's name, because its format has none.
func madeID(p *Part) bool { return p.Name != "" && p.CallID == "function:"+p.Name }
