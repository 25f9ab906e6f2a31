package wire_test

import (
	"slices"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// TestAViewOfAnyMessageIsNotEmpty renders what leaves nothing (finding C-13): no provider takes an empty list.
func TestAViewOfAnyMessageIsNotEmpty(t *testing.T) {
	t.Parallel()
	empty := map[session.Format]string{
		session.OpenAIChat:      `{"role":"assistant","content":[]}`,
		session.OpenAIResponses: `{"type":"message","role":"assistant","content":[]}`,
		session.Anthropic:       `{"role":"user","content":" "}`,
		session.Gemini:          `{"role":"model","parts":[]}`,
		session.AISDK:           `{"id":"1","role":"user","parts":[]}`,
	}
	views := map[string][]wire.Stored{
		"a system message of Anthropic": stored(session.Anthropic, [][]byte{[]byte(`{"role":"system","content":"be good"}`)}),
	}
	views["openai-chat, an open call beside an empty refusal"] = stored(session.OpenAIChat, [][]byte{
		[]byte(`{"role":"user","content":"go"}`),
		[]byte(`{"role":"assistant","content":[{"type":"refusal","refusal":""}],"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`),
	})
	for name, x := range toolTalks {
		views[name+", an open call"] = x.view("a")
	}
	for f, body := range empty {
		views[string(f)+", an empty message"] = stored(f, [][]byte{[]byte(body)})
	}
	for name, view := range views {
		for _, target := range session.Formats() {
			for _, model := range models {
				o := wire.Options{Pending: wire.DropPending, Model: model}
				made := wiretest.Render(target, view, o)
				n := len(made.Bodies)
				if target == session.Anthropic || target == session.Gemini {
					n -= made.System
				}
				if n == 0 {
					t.Errorf("%s in %s for %q: the list is empty, repairs %v", name, target, model, made.Repairs)
				}
				for _, v := range wiretest.Validate(target, made.Bodies, o) {
					t.Errorf("%s in %s for %q: %+v", name, target, model, v)
				}
				valid := validated(view[0].Format, view, 0).ValidFor(wire.Options{Model: model})
				if o.Pending = wire.KeepPending; valid && len(wiretest.Render(view[0].Format, view, o).Repairs) > 0 {
					t.Errorf("%s for %q is called valid", name, model)
				}
			}
		}
	}
	for _, target := range session.Formats() {
		if made := wiretest.Render(target, nil, wire.Options{}); len(made.Bodies) > 0 || len(made.Repairs) > 0 {
			t.Errorf("%s: a view of no messages has %q, repairs %v", target, made.Bodies, made.Repairs)
		}
	}
	if kinds := repairKinds(wiretest.Render(session.OpenAIChat, views["openai-chat, an open call"], wire.Options{Pending: wire.DropPending}).Repairs); !slices.Equal(kinds, []string{"call_dropped", "first_user"}) {
		t.Errorf("repairs %v", kinds)
	}
}
