package wire_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// called has a call and its result a format, with C and R in the place of their ids.
var called = map[session.Format][3]string{
	session.OpenAIChat: {`{"role":"user","content":"u"}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"C","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"R","content":"the result"}`},
	session.OpenAIResponses: {`{"role":"user","content":"u"}`,
		`{"type":"function_call","call_id":"C","name":"f","arguments":"{}"}`,
		`{"type":"function_call_output","call_id":"R","output":"the result"}`},
	session.Anthropic: {`{"role":"user","content":"u"}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"C","name":"f","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"R","content":"the result"}]}`},
	session.Gemini: {`{"role":"user","parts":[{"text":"u"}]}`,
		`{"role":"model","parts":[{"functionCall":{"id":"C","name":"f","args":{}}}]}`,
		`{"role":"user","parts":[{"functionResponse":{"id":"R","name":"f","response":{"output":"the result"}}}]}`},
}

// ids are what providers and gateways return: LiteLLM's of Gemini, Kimi's, one as long as a session takes.
var ids = []string{
	"call_1__thought__" + strings.Repeat("Ab0/", 100), "functions.read:0", "a b", strings.Repeat("x", 64), strings.Repeat("é", 40),
	strings.Repeat("y", session.MaxCallIDBytes),
}

// TestAResultUnderTheIDOfAViewFindsItsCall appends a call, reads the view in each format and for each server, and
// appends the result under the id that the call has there.
func TestAResultUnderTheIDOfAViewFindsItsCall(t *testing.T) {
	t.Parallel()
	for from, bodies := range called {
		for _, target := range session.Formats() {
			for _, d := range append(provider.DialectsOf(target), "") {
				for _, id := range ids {
					checkID(t, from, target, wire.Options{Dialect: d}, bodies, id)
				}
			}
		}
	}
}

func checkID(t *testing.T, from, target session.Format, o wire.Options, bodies [3]string, id string) {
	t.Helper()
	name := fmt.Sprintf("%s in %s for %q, id %.40s", from, target, o.Dialect, id)
	call := strings.Replace(bodies[1], `"C"`, `"`+id+`"`, 1)
	made := wiretest.Render(target, storedOf(from, []string{bodies[0], call}), o)
	shown := callIDs(t, target, made.Bodies)
	if len(shown) != 1 {
		t.Fatalf("%s: the view has the calls %q", name, shown)
	}
	result := strings.Replace(bodies[2], `"R"`, `"`+shown[0]+`"`, 1)
	whole := storedOf(from, []string{bodies[0], call, result})
	for _, again := range session.Formats() {
		view := wiretest.Render(again, whole, wire.Options{})
		text := bytes.Join(view.Bodies, nil)
		if bytes.Contains(text, []byte("no longer")) || bytes.Contains(text, []byte("lost")) || len(callIDs(t, again, view.Bodies)) != 1 {
			t.Errorf("%s: as %s its result is not that of the call\n%.600s", name, again, text)
		}
		for _, v := range wiretest.Validate(again, view.Bodies, wire.Options{}) {
			t.Errorf("%s: %v", name, v)
		}
		for _, r := range view.Repairs {
			if len(r.Detail) > 500 {
				t.Errorf("%s: a repair has %d bytes", name, len(r.Detail))
			}
		}
	}
}

func callIDs(t *testing.T, f session.Format, bodies [][]byte) (ids []string) {
	t.Helper()
	for _, body := range bodies {
		m, err := wire.Inspect(f, body)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range m.Parts {
			if p.Kind == wire.Call {
				ids = append(ids, p.CallID)
			}
		}
	}
	return ids
}

// TestTheSignatureOfAGeminiCallGoesWhereItIsRead has the two places that Chat Completions has for it.
func TestTheSignatureOfAGeminiCallGoesWhereItIsRead(t *testing.T) {
	t.Parallel()
	user := `{"role":"user","content":"u"}`
	for _, call := range []string{
		`{"id":"c","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"SIG"}}}`,
		`{"id":"c","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"vertex":{"thought_signature":"SIG"}}}`,
		`{"id":"c__thought__SIG","type":"function","function":{"name":"f","arguments":"{}"}}`,
	} {
		view := storedOf(session.OpenAIChat, []string{user, `{"role":"assistant","content":null,"tool_calls":[` + call + `]}`})
		for target, member := range map[session.Format]string{
			session.Gemini: `"thoughtSignature":"SIG"`, session.AISDK: `"google":{"thoughtSignature":"SIG"}`, session.OpenAIChat: call,
		} {
			made := wiretest.Render(target, view, wire.Options{Model: "gemini-3-pro"})
			if text := string(bytes.Join(made.Bodies, nil)); !strings.Contains(text, member) {
				t.Errorf("%s lacks %s: %s", target, member, text)
			}
		}
	}
	signed := storedOf(session.Gemini, []string{`{"role":"user","parts":[{"text":"u"}]}`,
		`{"role":"model","parts":[{"functionCall":{"id":"c","name":"f","args":{}},"thoughtSignature":"SIG"}]}`})
	for model, want := range map[string]bool{"gemini-3-pro": true, "gpt-5": false} {
		made := wiretest.Render(session.OpenAIChat, signed, wire.Options{Model: model})
		got := strings.Contains(string(bytes.Join(made.Bodies, nil)), `"extra_content":{"google":{"thought_signature":"SIG"}}`)
		if got != want {
			t.Errorf("%s: the signature goes out: %t", model, got)
		}
	}
}
