package wire

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

// mutant is the validator with one thing wrong in it: a rule, or how every rule reads a conversation.
type mutant struct {
	name    string
	code    string // the rule that is wrong
	rules   []Rule
	misread func(*conversation)
}

// TestEveryMutantOfARuleIsCaught breaks the rules one by one: one that never reports, a number that is off by one, a
// word that is not known, a fact misread. Some fixture, named in the log, has to tell each of them from the
// validator.
func TestEveryMutantOfARuleIsCaught(t *testing.T) {
	t.Parallel()
	for _, m := range slices.Concat(mutants(), misreadings) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			var by []string
			for f, list := range fixtures {
				for _, x := range list {
					if m.code == "" && len(x.bodies) > longList {
						continue // it is about the number, and a short one tells as well
					}
					if (m.code == "" || m.code == x.rule) && m.differsOn(f, &x) {
						by = append(by, fmt.Sprint(f, "/", x.rule, ": ", x.name))
					}
				}
			}
			if len(by) == 0 {
				t.Error("no fixture catches it")
			}
			slices.Sort(by)
			t.Logf("caught by %q", by)
		})
	}
}

// differsOn reports whether a mutant finds something else in a fixture than the validator does.
func (m *mutant) differsOn(f session.Format, x *fixture) bool {
	bodies := bytesOf(x.bodies)
	messages := make([]Facts, len(bodies))
	for i := range bodies {
		messages[i], _ = Inspect(f, bodies[i])
	}
	c := converse(f, messages, bodies, x.o)
	if m.misread != nil {
		m.misread(c)
	}
	found, _ := judged(context.Background(), m.rules, c)
	return !slices.Equal(named(found), x.want)
}

func mutants() (list []mutant) {
	for i, r := range rules {
		change := func(what string, change func(*Rule)) {
			changed := slices.Clone(rules)
			change(&changed[i])
			list = append(list, mutant{name: r.Code + " " + what, code: r.Code, rules: changed})
		}
		change("never reports", func(r *Rule) { r.check = func(*checker) {} })
		for limit, n := range r.limits {
			for _, wrong := range []int{n - 1, n + 1} {
				change(fmt.Sprintf("takes the limit of %s for %d", limit, wrong), func(r *Rule) {
					r.limits = maps.Clone(r.limits)
					r.limits[limit] = wrong
				})
			}
		}
		for f, words := range r.words {
			for _, word := range words {
				change(fmt.Sprintf("does not know %q of %s", word, f), func(r *Rule) {
					r.words = maps.Clone(r.words)
					r.words[f] = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == word })
				})
			}
		}
	}
	return list
}

var misreadings = []mutant{
	{name: "the pinned head is taken for a part of the conversation", rules: rules, misread: func(c *conversation) {
		c.head = 0
		c.runs, c.calls, c.results = nil, nil, nil
		c.read()
	}},
	{name: "every message is taken for a turn of its own", rules: rules, misread: func(c *conversation) {
		c.runs, c.calls, c.results = nil, nil, nil
		for i := c.head; i < len(c.messages); i++ {
			c.runs = append(c.runs, run{start: i})
			c.runs[len(c.runs)-1].add(i, &c.messages[i])
		}
		c.hold()
	}},
	{name: "no call may be in flight", rules: rules, misread: func(c *conversation) {
		for i := range c.calls {
			c.calls[i].passed = true
		}
	}},
	{name: "every call may be in flight", rules: rules, misread: func(c *conversation) {
		for i := range c.calls {
			c.calls[i].passed = false
		}
	}},
	{name: "words behind a call of Responses are not seen", rules: rules, misread: func(c *conversation) {
		for i := range c.calls {
			inNewest := c.calls[i].message >= c.runs[len(c.runs)-1].start
			c.calls[i].passed = c.calls[i].passed && !(inNewest && c.format == session.OpenAIResponses)
		}
	}},
	{name: "every result is taken for an answer", rules: rules, misread: func(c *conversation) {
		for i := range c.results {
			c.results[i].answers = true
		}
	}},
	{name: "a second result is taken for a result of no call", rules: rules, misread: func(c *conversation) {
		for i := range c.results {
			c.results[i].again = false
		}
	}},
	{name: "what is done with pending calls is forgotten", rules: rules, misread: func(c *conversation) { c.Pending = KeepPending }},
}
