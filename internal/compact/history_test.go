package compact

import (
	"context"
	"testing"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
)

func TestAResultThatNamesItsToolAnswersACallOfThatTool(t *testing.T) {
	t.Parallel()
	in := Input{Format: session.Gemini, Policy: policy.Default(), WindowTokens: 1000, Tail: []Entry{
		{Seq: 1, Tokens: 5, Body: []byte(`{"role":"user","parts":[{"text":"go"}]}`)},
		{Seq: 2, Tokens: 20, Body: []byte(`{"role":"model","parts":[{"functionCall":{"id":"1","name":"Read","args":{"path":"a"}}},{"functionCall":{"id":"1","name":"Grep","args":{"path":"b"}}}]}`)},
		{Seq: 3, Tokens: 20, Body: []byte(`{"role":"user","parts":[{"functionResponse":{"id":"1","name":"Read","response":{"output":"one"}}},{"functionResponse":{"id":"1","name":"Grep","response":{"output":"two"}}}]}`)},
	}}
	h, err := readHistory(context.Background(), in, len(stages))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		tool string
		call int // the part of message 2 that it answers
	}{{"Read", 0}, {"Grep", 1}} {
		if r := &h.parts[i]; r.tool != want.tool || r.askedAt != want.call {
			t.Errorf("result %d answers call %d of %s, want call %d of %s", i, r.askedAt, r.tool, want.call, want.tool)
		}
	}
}
