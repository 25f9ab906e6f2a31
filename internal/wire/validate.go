package wire

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// Violation is one way in which a list of messages breaks its provider's rules.
type Violation struct {
	Rule    string // the Code of one of Rules, or "inspect"
	Message int    // index into the list
	Detail  string
}

// Validate reports how a list of messages breaks its provider's rules, in the order of the messages. Leading system
// messages are allowed in every format. So are calls of the last unit whose results are still to come, unless
// o.Pending settles them. A message that Inspect refuses is a violation of the rule "inspect", and the only one.
func Validate(f session.Format, bodies [][]byte, o Options) []Violation {
	messages := make([]Facts, len(bodies))
	for i, body := range bodies {
		var err error
		if messages[i], err = Inspect(f, body); err != nil {
			return []Violation{{Rule: "inspect", Message: i, Detail: err.Error()}}
		}
	}
	return judged(rules, converse(f, messages, bodies, o))
}

// ValidateMessages reports what is to be seen without the bodies: chiefly how calls and results meet. What callers
// appended is kept even if it breaks a rule; whoever changes a view must not add violations to those of the messages it
// started from.
func ValidateMessages(f session.Format, messages []Facts) []Violation {
	return judged(rules, converse(f, messages, nil, Options{}))
}

func judged(rules []Rule, c *conversation) []Violation {
	var found []Violation
	for i := range rules {
		if r := &rules[i]; slices.Contains(r.Formats, c.format) && (r.shape || c.bodies != nil) {
			k := checker{conversation: c, rule: r}
			r.check(&k)
			found = append(found, k.found...)
		}
	}
	slices.SortStableFunc(found, func(a, b Violation) int { return cmp.Compare(a.Message, b.Message) })
	return found
}

// conversation is a list of messages as rules look at it.
type conversation struct {
	Options
	format   session.Format
	messages []Facts
	bodies   [][]byte // nil if only what Inspect found is known
	head     int      // how many messages are the pinned head
	runs     []run    // of the others
	calls    []heldCall
	results  []heldResult
}

func converse(f session.Format, messages []Facts, bodies [][]byte, o Options) *conversation {
	c := &conversation{Options: o, format: f, messages: messages, bodies: bodies, head: PinnedHead(messages)}
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

// turn is a run of messages that the provider takes as one.
type run struct {
	start, end int
	results    bool // it has results
	others     bool // it has something else
}

// goesOn reports whether b belongs to the turn of a. Anthropic joins messages of one role; the items of a Responses
// list are parts of what one side says; the tool messages of Chat Completions belong together.
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

// last is the index of the last message, or -1 if there is nothing but the head.
func (c *conversation) last() int {
	if len(c.messages) == c.head {
		return -1
	}
	return len(c.messages) - 1
}

func (c *conversation) raw(message int, p *Part) []byte { return p.Raw.Of(c.bodies[message]) }

// body is a message without white space around it.
func (c *conversation) body(message int) []byte {
	body := c.bodies[message]
	return rawjson.Value(body).Of(body)
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

// parts calls f with every part behind the head that is of one of the kinds.
func (c *checker) parts(f func(message int, p *Part), kinds ...Kind) {
	for i := c.head; i < len(c.messages); i++ {
		for j := range c.messages[i].Parts {
			if p := &c.messages[i].Parts[j]; slices.Contains(kinds, p.Kind) {
				f(i, p)
			}
		}
	}
}
