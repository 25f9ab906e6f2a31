package wire_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// TestACallThatSaysNothingIsNone has what libraries leave of calls when they put a stream together, and what comes of it
// in each format: no call, no result that was lost, and nothing of it in a text.
func TestACallThatSaysNothingIsNone(t *testing.T) {
	t.Parallel()
	const real = `{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`
	for name, test := range map[string]struct {
		members string
		calls   int
	}{
		"function_call without members":          {`"function_call":{}`, 0},
		"function_call with empty members":       {`"function_call":{"name":"","arguments":""}`, 0},
		"function_call with null members":        {`"function_call":{"name":null,"arguments":null}`, 0},
		"tool_calls with an empty object":        {`"tool_calls":[{}]`, 0},
		"tool_calls with an empty function":      {`"tool_calls":[{"id":"","type":"function","function":{"name":"","arguments":""}}]`, 0},
		"tool_calls with null":                   {`"tool_calls":[null]`, 0},
		"tool_calls with a number":               {`"tool_calls":[7]`, 0},
		"an empty call beside a real one":        {`"tool_calls":[{},` + real + `]`, 1},
		"an empty function_call beside a call":   {`"function_call":{},"tool_calls":[` + real + `]`, 1},
		"empty calls beside a function_call":     {`"function_call":{"name":"f","arguments":"{}"},"tool_calls":[{}]`, 1},
		"a call with an id alone is still one":   {`"tool_calls":[{"id":"a","type":"function","function":{"name":"","arguments":""}}]`, 1},
		"so is one with arguments alone":         {`"function_call":{"name":"","arguments":"{\"x\":1}"}`, 1},
		"a function_call of a name alone":        {`"function_call":{"name":"f","arguments":""}`, 1},
		"a custom call that says nothing at all": {`"tool_calls":[{"type":"custom","custom":{"name":"","input":""}}]`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := []string{`{"role":"user","content":"u"}`, `{"role":"assistant","content":"hello there",` + test.members + `}`, `{"role":"user","content":"v"}`}
			facts, err := wire.Inspect(session.OpenAIChat, []byte(log[1]))
			if err != nil {
				t.Fatal(err)
			}
			calls := 0
			for _, p := range facts.Parts {
				if p.Kind == wire.Call {
					calls++
				}
			}
			if calls != test.calls {
				t.Errorf("%d calls, want %d", calls, test.calls)
			}
			for _, f := range session.Formats() {
				made := wiretest.Render(f, storedOf(session.OpenAIChat, log), wire.Options{})
				view := string(bytes.Join(made.Bodies, []byte("\n")))
				if lost := strings.Count(view, "The result of this tool call"); lost != test.calls || strings.Count(view, "hello there") != 1 || strings.Contains(view, "opaque") {
					t.Errorf("%s: %d results are lost, want %d:\n%s", f, lost, test.calls, view)
				}
				if found := wiretest.Validate(f, made.Bodies, wire.Options{}); len(found) > 0 {
					t.Errorf("%s: %+v\n%s", f, found, view)
				}
			}
		})
	}
}
