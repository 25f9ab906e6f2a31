package demo

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
)

func TestOriginalResultIsTheTextOrElseTheJSON(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		format session.Format
		body   string
		part   int
		want   string
	}{
		{"the text of a tool message", session.OpenAIChat, `{"role":"tool","content":"a\tb"}`, 0, "a\tb"},
		{"the JSON of a tool message in parts", session.OpenAIChat, `{"role":"tool","tool_call_id":"c","content":[ {"type":"text","text":"a"}]}`, 0, `[ {"type":"text","text":"a"}]`},
		{"the JSON of a text that UTF-8 cannot express", session.OpenAIChat, `{"role":"tool","content":"\ud800"}`, 0, `"\ud800"`},
		{"the text of the block with that number", session.Anthropic, `{"role":"user","content":[{"type":"tool_result","content":"a"},{"type":"tool_result","content":"b"}]}`, 1, "b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := originalResult(tt.format, []byte(tt.body), tt.part)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheBeginningOfAMessageIsCutToTheTerminal(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	d := Demo{Out: &out, Width: 12}
	d.beginning("-", "\n\n## tool\n\nof\ttwo words\n3\n4\n5\n6\n7\n8\n9\n")
	want := "  - ## tool\n  -\n  - of  two…\n  - 3\n  - 4\n  - 5\n  - 6\n  - 7\n  - … 2 more lines\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheTextOfASummaryBeginsAfterTheUsersWords(t *testing.T) {
	t.Parallel()
	const text = "## user\n\n[Summary of messages 2 to 9]\n## The user's words\n[m2] Add it.\n\nThe work is half done.\n[m4] is next.\n"
	if got := written(text); got != "The work is half done.\n[m4] is next.\n" {
		t.Errorf("%q", got)
	}
	if got := written("[Summary of messages 2 to 9]"); got != "[Summary of messages 2 to 9]" {
		t.Errorf("%q", got)
	}
}
