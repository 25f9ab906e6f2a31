package conformance

import (
	"context"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/api/stateless"
	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compact/conformance/attacktest"
	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/session"
)

// obedient is a model that does what a transcript orders: it writes the order into its answer.
type obedient struct{ answer string }

func (o obedient) Write(_ context.Context, r summary.Request) (summary.Answer, error) {
	a, err := summary.Accept(o.answer, r)
	a.Writer = "obedient"
	return a, err
}

// stored returns the view of a transcript, and the segments of its summary, which w writes; nil: no model.
func stored(t *testing.T, list []object, w llm.Writer) (view []object, segments []compact.Segment) {
	t.Helper()
	q := &question{format: session.OpenAIChat, window: 20_000, context: always, open: map[string]bool{}, writer: w, alone: w == nil}
	q.patch = []byte(`{
		"target": 0.01, "hard": 1, "protect": {"last_messages": 4}, "cap": {"enabled": false}, "trim": {"enabled": false},
		"budget": {"enabled": false}, "summarise": {"enabled": true, "over": 0, "min_tokens": 0, "max_tokens": 1200}
	}`)
	for _, m := range list {
		q.add(m)
	}
	o := q.compact()
	for _, body := range must(stateless.Messages(o.Proposal)) {
		var m object
		decode(body, &m)
		view = append(view, m)
	}
	return view, o.Plan.Segments
}

// writers returns models that obey an order, and none.
func writers(order string) map[string]llm.Writer {
	all := map[string]llm.Writer{"no model": nil}
	for name, answer := range attacktest.Answers(order) {
		all[name] = obedient{answer}
	}
	return all
}

// TestNoTranscriptLeavesItsSummary puts attacks through the product, with models that do all that they order and
// without one: the view has the roles and the units that it has of a harmless transcript, the summary ends where it
// ends, and what gives instructions is flagged.
func TestNoTranscriptLeavesItsSummary(t *testing.T) {
	t.Parallel()
	harmless, _ := stored(t, attacktest.Transcript("", ""), nil)
	attacks := attacktest.All(t)
	accepted, flagged := 0, 0
	for _, a := range attacks {
		for name, w := range writers(a.Order) {
			view, segments := stored(t, attacktest.Transcript(a.Where, a.Text), w)
			if diff := gocmp.Diff(attacktest.Roles(harmless), attacktest.Roles(view)); diff != "" {
				t.Fatalf("%s, %s: roles and calls (-of a harmless one +got):\n%s", a.Name, name, diff)
			}
			if out := attacktest.Escape(text(view[0]["content"])); out != "" {
				t.Errorf("%s, %s: %s in the summary\n%s", a.Name, name, out, view[0]["content"])
			}
			if segments[0].Writer == "obedient" {
				accepted++
				flagged += min(len(segments[0].Flags), 1)
				if segments[0].Flags == nil {
					t.Logf("%s, %s: no flag: %s", a.Name, name, view[0]["content"])
				}
			}
		}
	}
	t.Logf("%d attacks: %d answers accepted, %d of them flagged", len(attacks), accepted, flagged)
	if len(attacks) < 40 || accepted < len(attacks)/2 || 10*flagged < 9*accepted {
		t.Errorf("%d attacks: %d answers accepted, %d flagged", len(attacks), accepted, flagged)
	}
}
