package wire_test

import (
	"slices"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// TestAnOpenCallWithWordsBehindItGetsAResultInResponses renders what finding C-16 had: the last turn is a call and the
// assistant's words, in one message or in two.
func TestAnOpenCallWithWordsBehindItGetsAResultInResponses(t *testing.T) {
	t.Parallel()
	const text = `{"type":"text","text":"I look."}`
	const call = `{"type":"tool_use","id":"a","name":"f","input":{}}`
	responses := toolTalks["openai-responses"]
	for name, c := range map[string]struct {
		view        []wire.Stored
		synthesized int
	}{
		"anthropic: [call, text]":       {stored(session.Anthropic, [][]byte{[]byte(`{"role":"user","content":"go"}`), []byte(`{"role":"assistant","content":[` + call + "," + text + `]}`)}), 1},
		"anthropic: [text, call]":       {stored(session.Anthropic, [][]byte{[]byte(`{"role":"user","content":"go"}`), []byte(`{"role":"assistant","content":[` + text + "," + call + `]}`)}), 0},
		"responses: call, words":        {responses.view("uaw"), 1},
		"responses: call, words, call":  {responses.view("uawb"), 1},
		"responses: call, call":         {responses.view("uab"), 0},
		"responses: call, words, reply": {responses.view("uawA"), 0},
	} {
		made := wiretest.Render(session.OpenAIResponses, c.view, wire.Options{})
		for _, v := range wiretest.Validate(session.OpenAIResponses, made.Bodies, wire.Options{}) {
			t.Errorf("%s: %+v", name, v)
		}
		kinds := repairKinds(made.Repairs)
		if n := len(slices.DeleteFunc(kinds, func(kind string) bool { return kind != "result_synthesized" })); n != c.synthesized {
			t.Errorf("%s: %d results are synthesized, want %d: %v", name, n, c.synthesized, made.Repairs)
		}
		for checkpoint := range len(c.view) + 1 {
			if f := c.view[0].Format; f == session.OpenAIResponses && validated(f, c.view, checkpoint).Valid("") && len(made.Repairs) > 0 {
				t.Errorf("%s, checkpoint at %d: called valid", name, checkpoint)
			}
		}
	}
	view := responses.view("uawA")
	if !validated(session.OpenAIResponses, view, 0).Valid("") {
		t.Error("a view whose call has its result behind the words is not called valid")
	}
}
