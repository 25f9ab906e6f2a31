package replay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// TestALogHasAllContent: in a view that is the whole log, nothing that is measured is missing.
func TestALogHasAllContent(t *testing.T) {
	t.Parallel()
	var sum [contents]Ratio
	for _, s := range sampled() {
		o := measured(t, s, yardstickNamed(t, "never"), sampleWindow)
		for c := range contents {
			r := o.content(c, func(o *Outcome) *Sums { return &o.All })
			if r.Kept != r.All {
				t.Errorf("%s: the whole log has %v of %s", s.Name, r, c)
			}
			sum[c].add(r)
		}
		o = measured(t, s, yardstickNamed(t, "sliding-half"), sampleWindow)
		for c := range contents {
			sum[c].add(o.content(c, func(o *Outcome) *Sums { return &o.All }))
		}
	}
	for c := range contents {
		if sum[c].All == 0 && c != EditFar && c != Answered && c != AnsweredByRef {
			t.Errorf("the samples have nothing for %s", c)
		}
		if c == LineFar && sum[c].Kept == sum[c].All {
			t.Errorf("a half of the log has all of %s", c)
		}
	}
}

// TestAFarEditNeedsAllItsLines: an edit of what was read long ago needs every line that it replaces.
func TestAFarEditNeedsAllItsLines(t *testing.T) {
	t.Parallel()
	old := "func add(a, b int) int {\n\tsum := a + b\n\treturn sum\n}"
	call := func(id, tool, arguments string) string {
		return fmt.Sprintf(`{"role":"assistant","tool_calls":[{"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}]}`, id, tool, arguments)
	}
	answer := func(id, text string) string {
		return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%q}`, id, text)
	}
	bodies := []string{`{"role":"user","content":"fix add"}`, call("r", "Read", `{"path":"add.go"}`), answer("r", "package add\n\n"+old)}
	for i := range 20 {
		id := fmt.Sprintf("b%d", i)
		bodies = append(bodies, call(id, "Bash", fmt.Sprintf(`{"command":"ls %d"}`, i)), answer(id, strings.Repeat("another line of output\n", 120)))
	}
	bodies = append(bodies, call("e", "Edit", fmt.Sprintf(`{"path":"add.go","old_string":%q,"new_string":"x"}`, old)))
	s := &Session{Name: "edit", Format: session.OpenAIChat}
	for i, body := range bodies {
		found, err := wire.Inspect(s.Format, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		s.Messages = append(s.Messages, Message{Seq: int64(i + 1), Body: []byte(body), Tokens: found.Tokens})
	}
	for name, want := range map[string]float64{"never": 1, "sliding-half": 0} {
		o := measured(t, s, yardstickNamed(t, name), 8000)
		if got := o.All.Content[EditFar]; got.All != 1 || got.Kept != want {
			t.Errorf("%s has %v of the far edits", name, got)
		}
	}
}

// TestQuestionsAreAskedAtTheEnd: of the last view, which has an answer, or a line with a ref of its source that a word
// of the question leads to.
func TestQuestionsAreAskedAtTheEnd(t *testing.T) {
	t.Parallel()
	s := &Session{Name: "asked", Format: session.OpenAIChat}
	say := func(role, text string) {
		body := fmt.Appendf(nil, `{"role":%q,"content":%q}`, role, text)
		s.Messages = append(s.Messages, Message{Seq: int64(len(s.Messages) + 1), Body: body, Tokens: len(body) / 4})
	}
	say("user", "How many retries?")
	say("assistant", "The limit of retries\n is 17.")
	for i := range 40 {
		say("user", fmt.Sprintf("go on %d", i))
		say("assistant", strings.Repeat("another sentence without end, ", 40))
	}
	questions, err := ReadQuestions([]byte(`[
		{"session":"asked","question":"How large is the limit?","answer":"(?i)retries is \\d+"},
		{"session":"else","question":"?","answer":"x"}]`))
	if others := Ask([]*Session{s}, questions); err != nil || len(others) != 1 || others[0].Session != "else" {
		t.Fatalf("%v is for other sessions, %v", others, err)
	}
	for name, want := range map[string]float64{"never": 1, "sliding-half": 0} {
		o := measured(t, s, yardstickNamed(t, name), 8000)
		if got := o.Content[Answered]; got.All != 1 || got.Kept != want {
			t.Errorf("%s has %v of the answers", name, got)
		}
	}
	m := &meter{life: newLife(s, Contender{}, 8000)}
	for text, want := range map[string]bool{
		`[m2] the limit`: true, `[r2.0-1f] limits`: true, `limit\n[m1-3]`: true, `limit\n\n[m2]`: false,
		`[m2] the size`: false, `[m3] the limit`: false, `[m1-60] the limit`: false,
	} {
		m.base = &compact.Checkpoint{Body: []byte(`{"content":"` + text + `"}`)}
		if got := m.namesSource(&m.notes.asked[0]); got != want {
			t.Errorf("%s leads to the answer: %t", text, got)
		}
	}
	for document, want := range map[string]string{
		`[{"session":"a","question":"q","answer":"("}]`: "answer: error parsing regexp", `[{"session":"a"}]`: "question 0 must name",
		`[{"sesion":"a"}]`: "unknown field",
	} {
		if _, err := ReadQuestions([]byte(document)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", document, err)
		}
	}
	none := &Session{Name: "none", Format: s.Format, Messages: s.Messages, questions: []Question{{"none", "Why?", "nowhere"}}}
	if err := none.prepare(); err == nil || !strings.Contains(err.Error(), `"Why?"`) {
		t.Errorf("a question without an answer in the log: %v", err)
	}
}
