package wire_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// TestParallelCallsOfOneIDGetTheirOwnResults has turns whose calls share an id, or have none: each format tells which
// result is of which call.
func TestParallelCallsOfOneIDGetTheirOwnResults(t *testing.T) {
	t.Parallel()
	const someUser, geminiUser = `{"role":"user","content":"u"}`, `{"role":"user","parts":[{"text":"u"}]}`
	says := func(role string, blocks ...string) string {
		return `{"role":"` + role + `","content":[` + strings.Join(blocks, ",") + `]}`
	}
	geminiOf := func(role string, parts ...string) string {
		return `{"role":"` + role + `","parts":[` + strings.Join(parts, ",") + `]}`
	}
	call := func(id, x string) string {
		return `{"id":"` + id + `","type":"function","function":{"name":"f","arguments":"{\"x\":` + x + `}"}}`
	}
	chatSays := func(id, text string) string {
		return `{"role":"tool","tool_call_id":"` + id + `","content":"` + text + `"}`
	}
	item := func(x string) string {
		return `{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\":` + x + `}"}`
	}
	output := func(text string) string {
		return `{"type":"function_call_output","call_id":"a","output":"` + text + `"}`
	}
	use := func(x string) string { return `{"type":"tool_use","id":"a","name":"f","input":{"x":` + x + `}}` }
	result := func(text string) string { return `{"type":"tool_result","tool_use_id":"a","content":"` + text + `"}` }
	part := func(x, text string) string {
		return `{"type":"tool-f","toolCallId":"a","state":"output-available","input":{"x":` + x + `},"output":"` + text + `"}`
	}
	asked := func(x string) string { return `{"functionCall":{"name":"f","args":{"x":` + x + `}}}` }
	answer := func(text string) string {
		return `{"functionResponse":{"name":"f","response":{"output":"` + text + `"}}}`
	}
	for name, test := range map[string]struct {
		format session.Format
		log    []string
	}{
		"Chat":                               {session.OpenAIChat, []string{someUser, `{"role":"assistant","content":null,"tool_calls":[` + call("a", "1") + `,` + call("a", "2") + `,` + call("a", "3") + `]}`, chatSays("a", "one"), chatSays("a", "two"), chatSays("a", "three"), someUser}},
		"Chat without ids":                   {session.OpenAIChat, []string{someUser, `{"role":"assistant","content":null,"tool_calls":[` + call("", "1") + `,` + call("", "2") + `,` + call("", "3") + `]}`, chatSays("", "one"), chatSays("", "two"), chatSays("", "three"), someUser}},
		"Anthropic":                          {session.Anthropic, []string{someUser, says("assistant", use("1"), use("2"), use("3")), says("user", result("one"), result("two"), result("three"))}},
		"Anthropic, results one by one":      {session.Anthropic, []string{someUser, says("assistant", use("1"), use("2"), use("3")), says("user", result("one")), says("user", result("two")), says("user", result("three"))}},
		"Responses":                          {session.OpenAIResponses, []string{someUser, item("1"), item("2"), item("3"), output("one"), output("two"), output("three"), someUser}},
		"Responses, taken in turns":          {session.OpenAIResponses, []string{someUser, item("1"), item("2"), output("one"), output("two"), item("3"), output("three"), someUser}},
		"Gemini":                             {session.Gemini, []string{geminiUser, geminiOf("model", asked("1"), asked("2"), asked("3")), geminiOf("user", answer("one"), answer("two"), answer("three"))}},
		"AI SDK":                             {session.AISDK, []string{`{"id":"m1","role":"user","parts":[{"type":"text","text":"u"}]}`, `{"id":"m2","role":"assistant","parts":[` + part("1", "one") + `,` + part("2", "two") + `,` + part("3", "three") + `]}`, `{"id":"m3","role":"user","parts":[{"type":"text","text":"u"}]}`}},
		"an older call that nobody answered": {session.OpenAIChat, []string{someUser, `{"role":"assistant","content":null,"tool_calls":[` + call("a", "0") + `]}`, someUser, `{"role":"assistant","content":null,"tool_calls":[` + call("a", "1") + `,` + call("a", "2") + `,` + call("a", "3") + `]}`, chatSays("a", "one"), chatSays("a", "two"), chatSays("a", "three"), someUser}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, f := range session.Formats() {
				made := wiretest.Render(f, storedOf(test.format, test.log), wire.Options{Pending: wire.SynthesizePending})
				var pairs []string
				calls := map[string]string{} // what was asked, by the numbers that told gives calls
				for _, line := range told(f, made.Bodies) {
					if number, said, ok := strings.Cut(strings.TrimPrefix(line, "call "), ": f "); ok {
						calls[number] = strings.NewReplacer(`{"x":`, "", "}", "", " ", "").Replace(said)
					}
					if number, said, ok := strings.Cut(strings.TrimPrefix(line, "result of "), ": "); ok && calls[number] != "" {
						pairs = append(pairs, calls[number]+" "+said)
					}
				}
				want := []string{"1 one", "2 two", "3 three"}
				if slices.Sort(pairs); !slices.Equal(pairs, want) {
					t.Errorf("%s: %q, want %q:\n%s", f, pairs, want, made.Bodies)
				}
				if found := wiretest.Validate(f, made.Bodies, wire.Options{}); len(found) > 0 {
					t.Errorf("%s: %+v\n%s", f, found, made.Bodies)
				}
			}
		})
	}
}
