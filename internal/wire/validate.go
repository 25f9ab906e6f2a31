package wire

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/units"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// Violation is one way in which a list of messages breaks its provider's rules.
type Violation struct {
	Rule    string // the Code of one of Rules, or "inspect"
	Message int    // index into the list
	Detail  string
}

// judged holds a conversation to rules until ctx ends: it looks before each rule.
func judged(ctx context.Context, rules []Rule, c *conversation) ([]Violation, error) {
	var found []Violation
	for i := range rules {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if r := &rules[i]; slices.Contains(r.Formats, c.format) && (r.shape || c.bodies != nil) {
			k := checker{conversation: c, rule: r}
			r.check(&k)
			found = append(found, k.found...)
		}
	}
	slices.SortStableFunc(found, func(a, b Violation) int { return cmp.Compare(a.Message, b.Message) })
	return found, nil
}

// conversation is a list of messages as rules look at it.
type conversation struct {
	Options
	format   session.Format
	server   *provider.Facts // of the dialect
	messages []Facts
	bodies   [][]byte // nil if only what Inspect found is known
	head     int      // how many messages are the pinned head
	runs     []run    // of the others
	calls    []heldCall
	results  []heldResult
	media    []mediaFault // see faults
	looked   bool
}

func converse(f session.Format, messages []Facts, bodies [][]byte, o Options) *conversation {
	c := &conversation{Options: o, format: f, server: o.server(f), messages: messages, bodies: bodies}
	c.head = PinnedHead(messages)
	c.read()
	return c
}

func (c *conversation) read() {
	for i := c.head; i < len(c.messages); i++ {
		if i == c.head || !c.continues(&c.messages[i-1], &c.messages[i]) {
			c.runs = append(c.runs, run{start: i})
		}
		c.runs[len(c.runs)-1].add(i, &c.messages[i])
	}
	c.hold()
}

// run is a sequence of messages that the provider takes as one turn.
type run struct {
	start, end int
	results    bool // it has results
	others     bool // it has something else
}

// continues reports whether b belongs to the turn of a. Anthropic joins messages of one role; the items of a Responses
// list are parts of one side's turn; the tool messages of Chat Completions belong together.
func (c *conversation) continues(a, b *Facts) bool {
	switch c.format {
	case session.Anthropic, session.OpenAIResponses:
		return a.Role == b.Role
	case session.OpenAIChat:
		return forResult(a.Role) && forResult(b.Role)
	}
	return false
}

func forResult(role string) bool { return role == "tool" || role == "function" }

func (t *run) add(i int, m *Facts) {
	t.end = i + 1
	for j := range m.Parts {
		result := m.Parts[j].Kind == Result
		t.results = t.results || result
		t.others = t.others || !result
	}
}

// settled reports whether calls without a result are wrong also at the very end.
func (c *conversation) settled() bool { return c.Pending != "" && c.Pending != KeepPending }

// last returns the index of the last message, or -1 if there is nothing but the head.
func (c *conversation) last() int {
	if len(c.messages) == c.head {
		return -1
	}
	return len(c.messages) - 1
}

func (c *conversation) raw(message int, p *Part) []byte { return p.Raw.Of(c.bodies[message]) }

// partsOf yields the parts of a turn, each with the index of its message.
func (c *conversation) partsOf(t run) iter.Seq2[int, *Part] {
	return func(yield func(message int, p *Part) bool) {
		for i := t.start; i < t.end; i++ {
			for j := range c.messages[i].Parts {
				if !yield(i, &c.messages[i].Parts[j]) {
					return
				}
			}
		}
	}
}

// parts yields the parts after the head that are of one of the kinds.
func (c *conversation) parts(kinds ...Kind) iter.Seq2[int, *Part] {
	return func(yield func(message int, p *Part) bool) {
		for i, p := range c.partsOf(run{start: c.head, end: len(c.messages)}) {
			if slices.Contains(kinds, p.Kind) && !yield(i, p) {
				return
			}
		}
	}
}

// checker holds a conversation to one rule.
type checker struct {
	*conversation
	rule  *Rule
	found []Violation
}

func (c *checker) report(message int, format string, args ...any) {
	c.found = append(c.found, Violation{Rule: c.rule.Code, Message: message, Detail: fmt.Sprintf(format, args...)})
}

// knows reports whether a word is one of the rule's.
func (c *checker) knows(word string) bool { return slices.Contains(c.rule.words[c.format], word) }

// inFlight reports whether calls of the last turn have no result, and need none yet.
func (c *conversation) inFlight() bool {
	if len(c.calls) == 0 || len(c.runs) == 0 || c.settled() {
		return false
	}
	newest := &c.calls[len(c.calls)-1]
	return newest.message >= c.runs[len(c.runs)-1].start
}

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

// hold finds out which calls have results. Those of a turn are answered in the next one; only an output of the
// Responses API may come later. A last turn of nothing but results may still lack some.
func (c *conversation) hold() {
	h := holder{conversation: c, turn: map[string]bool{}}
	for i, t := range c.runs {
		clear(h.turn)
		for message, p := range c.partsOf(t) {
			if p.Kind == Result {
				h.answer(message, p)
			}
		}
		if inFlight := i == len(c.runs)-1 && t.results && !t.others; !inFlight {
			h.pass()
		}
		for message := t.start; message < t.end; message++ {
			h.said(message)
		}
	}
}

// said takes the calls of a message down. In Responses, words behind calls are an item of their own.
func (h *holder) said(message int) {
	parts := h.messages[message].Parts
	items := h.format == session.OpenAIResponses
	if items && len(parts) == 0 {
		h.pass()
	}
	for i := range parts {
		p := &parts[i]
		switch {
		case p.Kind == Call:
			h.open.Call(p.CallID, p.Name, len(h.calls))
			h.calls = append(h.calls, heldCall{message: message, id: p.CallID})
		case p.Kind == Text && items:
			h.pass()
		}
	}
}

func (h *holder) answer(message int, p *Part) {
	r := heldResult{message: message, id: p.CallID}
	call, ok := h.open.Answer(p.CallID, p.Name)
	if ok = ok && h.calls[call].id == p.CallID; ok {
		h.calls[call].answered = true
		r.answers = true
	} else {
		r.again = h.turn[p.CallID]
	}
	h.turn[p.CallID] = h.turn[p.CallID] || ok
	h.results = append(h.results, r)
}

// pass marks the calls so far as passed: the conversation has continued.
func (h *holder) pass() {
	for ; h.passed < len(h.calls); h.passed++ {
		h.calls[h.passed].passed = true
	}
	if h.format != session.OpenAIResponses {
		h.open.Clear()
	}
}

// callsAnswered checks V-C1, V-R2 and V-A1.
func (c *checker) callsAnswered() {
	for i := range c.calls {
		if call := &c.calls[i]; !call.answered && (call.passed || c.settled()) {
			c.report(call.message, "call %q has no result after it", call.id)
		}
	}
	if c.format == session.Anthropic {
		c.onlyIn("assistant", Call)
	}
}

// resultsAnswer checks V-C2, V-R1 and V-A2. Anthropic's rule for a second result is V-A4.
func (c *checker) resultsAnswer() {
	for i := range c.results {
		if r := &c.results[i]; !r.answers && !(r.again && c.format == session.Anthropic) {
			c.report(r.message, "result %q answers no open call before it", r.id)
		}
	}
	if c.format == session.Anthropic {
		c.onlyIn("user", Result)
	}
}

// onlyIn reports parts of a kind that are in a message of another role.
func (c *checker) onlyIn(role string, kind Kind) {
	for i, p := range c.parts(kind) {
		if got := c.messages[i].Role; got != role {
			c.report(i, "%s %q is in a message of role %q", kind, p.CallID, got)
		}
	}
}

// madeID reports whether Inspect made the id of a part from the tool's name, because its format has none.
func madeID(p *Part) bool { return p.Name != "" && p.CallID == "function:"+p.Name }

// Rule is something that a provider requires of a list of messages. docs/formats.md has its text.
type Rule struct {
	Code    string           // how violations and repairs name it: V-A1
	Formats []session.Format // whose lists it is about

	shape  bool                        // what Inspect finds is enough to check it: no body is looked at
	limits map[string]int              // the numbers in it
	words  map[session.Format][]string // the words in it, by the format that uses them
	check  func(*checker)
}
