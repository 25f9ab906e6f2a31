package demo

import (
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

func TestALongLineIsWrappedAtWordsAndCutInItsLastRow(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, line string
		want       []string
	}{
		{"what fits stays", "one two", []string{"one two"}},
		{"rows end after a space", "one two three", []string{"one two ", "three"}},
		{"a word that is too long is broken", "abcdefghijklm", []string{"abcdefghi", "jklm"}},
		{"the last row is cut", "one two three four five six", []string{"one two ", "three fo…"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, wrapped(tt.line, 9, 2)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
