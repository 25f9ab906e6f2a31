package replay

import (
	"fmt"
	"strings"
	"testing"

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
		if sum[c].All == 0 && c != EditFar {
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
