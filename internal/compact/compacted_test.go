package compact_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/view"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// TestAProvidersOwnCompactionStays compacts again and again, under every profile, a session in which a provider has
// compacted, with large results on both sides: the newest compaction stays as it came, what is before it leaves without
// a summary, and what is behind it is compacted as ever.
func TestAProvidersOwnCompactionStays(t *testing.T) {
	t.Parallel()
	for _, f := range []session.Format{session.Anthropic, session.OpenAIResponses} {
		for _, profile := range policy.Profiles() {
			t.Run(string(f)+" "+profile, func(t *testing.T) {
				t.Parallel()
				log := newCompactedLog(t, f, profile)
				log.turns(4)
				for round := range 4 {
					newest := log.compaction(round)
					for range 3 {
						log.turns(2)
						plan, made := log.compact(t)
						checkCompacted(t, f, plan, made, newest, round)
					}
				}
			})
		}
	}
}

func checkCompacted(t *testing.T, f session.Format, plan *compact.Plan, made *compact.Checkpoint, newest string, round int) {
	t.Helper()
	if !strings.Contains(string(made.Body), newest) {
		t.Fatalf("round %d: the compaction has left: %s", round, made.Body)
	}
	if before, _, _ := strings.Cut(string(made.Body), newest); strings.Contains(before, "result of") || len(plan.Segments) > 0 && strings.Contains(before, "Summary") {
		t.Fatalf("round %d: before the compaction is %s", round, before)
	}
	if rendered := checkView(t, f, made); f == session.Anthropic && !strings.Contains(string(rendered.Bodies[0]), newest) {
		t.Fatalf("round %d: the view begins with %s", round, rendered.Bodies[0])
	}
}

// checkView returns the view of a checkpoint, which must be valid.
func checkView(t *testing.T, f session.Format, made *compact.Checkpoint) *wire.Rendition {
	t.Helper()
	bodies, err := view.Split(made.Body)
	if err != nil {
		t.Fatal(err)
	}
	var stored []wire.Stored
	for _, body := range bodies {
		stored = append(stored, wire.Stored{Format: f, Body: body})
	}
	rendered := wiretest.Render(f, stored, wire.Options{})
	for _, v := range wiretest.Validate(f, rendered.Bodies, wire.Options{}) {
		t.Fatalf("%+v in %s", v, made.Body)
	}
	for _, r := range rendered.Repairs {
		if r.Kind != "compacted" && r.Kind != "first_user" {
			t.Fatalf("%+v in %s", r, made.Body)
		}
	}
	return rendered
}

// compactedLog makes a log with turns of a call and its result, and compacts it under a profile again and again.
type compactedLog struct {
	format  session.Format
	entries []compact.Entry
	in      compact.Input
}

func newCompactedLog(t *testing.T, f session.Format, profile string) *compactedLog {
	t.Helper()
	p, err := policy.Profile(profile)
	if err != nil {
		t.Fatal(err)
	}
	return &compactedLog{format: f, in: compact.Input{Format: f, Policy: p, WindowTokens: 8000}}
}

// compact compacts the log from its last checkpoint on.
func (l *compactedLog) compact(t *testing.T) (*compact.Plan, *compact.Checkpoint) {
	t.Helper()
	l.in.Tail = l.entries
	if l.in.Base != nil {
		l.in.Tail = l.entries[l.in.Base.Through:]
	}
	plan, made, err := compact.Run(t.Context(), l.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	l.in.Base = made
	return plan, made
}

func (l *compactedLog) add(body string) {
	m, err := wire.Inspect(l.format, []byte(body))
	if err != nil {
		panic(err)
	}
	l.entries = append(l.entries, compact.Entry{Seq: int64(len(l.entries) + 1), Tokens: m.Tokens, Body: []byte(body)})
}

func (l *compactedLog) turns(n int) {
	for range n {
		id := len(l.entries)
		text := strings.Repeat(fmt.Sprintf("result of %d\\n", id), 300)
		l.add(fmt.Sprintf(`{"role":"user","content":"go on with %d"}`, id))
		if l.format == session.Anthropic {
			l.add(fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"f","input":{}}]}`, id))
			l.add(fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":"%s"}]}`, id, text))
			l.add(`{"role":"assistant","content":"done"}`)
			continue
		}
		if l.format == session.OpenAIChat {
			l.add(fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"f","arguments":"{}"}}]}`, id))
			l.add(fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":"%s"}`, id, text))
			l.add(`{"role":"assistant","content":"done"}`)
			continue
		}
		l.add(fmt.Sprintf(`{"type":"function_call","call_id":"c%d","name":"f","arguments":"{}"}`, id))
		l.add(fmt.Sprintf(`{"type":"function_call_output","call_id":"c%d","output":"%s"}`, id, text))
		l.add(`{"role":"assistant","content":"done"}`)
	}
}

// compaction adds one with what it was an answer to, and returns what must stay of it.
func (l *compactedLog) compaction(round int) string {
	l.add(`{"role":"user","content":"compact"}`)
	if l.format == session.Anthropic {
		block := fmt.Sprintf(`{"type":"compaction","content":"the provider's summary %d","encrypted_content":"e"}`, round)
		l.add(`{"role":"assistant","content":[` + block + `,{"type":"text","text":"so"}]}`)
		return block
	}
	item := fmt.Sprintf(`{"type":"compaction","id":"cmp_%d","encrypted_content":"%d"}`, round, round)
	l.add(item)
	l.add(`{"role":"assistant","content":"so"}`)
	return item
}
