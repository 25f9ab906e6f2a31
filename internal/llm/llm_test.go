package llm_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/llm/llmtest"
)

func request() summary.Request {
	text := strings.Repeat("The replica listens on port 5433. Never change it. ", 20)
	return summary.Request{
		First: 1, Last: 1, MaxTokens: 500, Retain: true,
		Messages: []summary.Message{{Seq: 1, Role: "user", Parts: []summary.Part{{Kind: summary.Text, Text: text}}}},
	}
}

func TestScriptedGivesItsRepliesInOrder(t *testing.T) {
	t.Parallel()
	broken := errors.New("no answer")
	w := llmtest.New(llmtest.Reply{Text: "<retain>port 5433</retain><summary>s</summary>"}, llmtest.Reply{Err: broken}, llmtest.Reply{Text: " "})
	a, err := w.Write(t.Context(), request())
	want := summary.Answer{Retain: "port 5433", Summary: "s", Claims: summary.Claims{Stated: 1}}
	if diff := cmp.Diff(want, a); diff != "" || err != nil {
		t.Errorf("first: %v (-want +got):\n%s", err, diff)
	}
	for i, want := range []error{broken, summary.ErrEmpty} {
		if _, err := w.Write(t.Context(), request()); !errors.Is(err, want) {
			t.Errorf("reply %d: %v, want %v", i+2, err, want)
		}
	}
	if _, err := w.Write(t.Context(), request()); err == nil {
		t.Error("a fourth reply came")
	}
	if n := len(w.Requests()); n != 4 {
		t.Errorf("%d requests, want 4", n)
	}
}
