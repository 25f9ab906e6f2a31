package wire_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// found is what a client's search of the AI SDK has found for Claude.
const found = `{"type":"custom","providerOptions":{"anthropic":{"type":"tool-reference","toolName":"f"}}}`

// TestAToolThatIsFoundIsFoundInEachFormat has a search of the client's in the two formats that know such a result, and
// what it becomes in all of them.
func TestAToolThatIsFoundIsFoundInEachFormat(t *testing.T) {
	t.Parallel()
	const reference, named = `{"type":"tool_reference","tool_name":"f"}`, `[tool f]`
	anthropic := []string{`{"role":"user","content":"u"}`, `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"search","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[` + reference + `]}]}`}
	ui := []string{`{"id":"1","role":"user","parts":[{"type":"text","text":"u"}]}`,
		`{"id":"2","role":"assistant","parts":[{"type":"tool-search","toolCallId":"a","state":"output-available","input":{},"output":{"type":"content","value":[` + found + `]}}]}`}
	for _, test := range []struct {
		target session.Format
		model  string
		want   string
	}{
		{session.Anthropic, "", reference}, {session.Anthropic, "claude-opus-5-5", reference},
		{session.AISDK, "", found}, {session.AISDK, "claude-opus-5-5", found}, {session.AISDK, "gpt-5.6", named},
		{session.OpenAIChat, "", named}, {session.OpenAIResponses, "", named}, {session.Gemini, "", named},
	} {
		for f, log := range map[session.Format][]string{session.Anthropic: anthropic, session.AISDK: ui} {
			o := wire.Options{Model: test.model}
			made := wiretest.Render(test.target, storedOf(f, log), o)
			got := string(bytes.Join(made.Bodies, []byte("\n")))
			if isOwn := f == test.target && f == session.AISDK; !isOwn && !strings.Contains(got, test.want) || strings.Contains(got, "opaque") {
				t.Errorf("%s for %q of %s lacks %s:\n%s", test.target, test.model, f, test.want, got)
			}
			if broken := wiretest.Validate(test.target, made.Bodies, o); len(broken) > 0 {
				t.Errorf("%s of %s: %+v\n%s", test.target, f, broken, got)
			}
		}
	}
}

func TestWhatAMessageLoadsIsNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		format session.Format
		body   string
		want   []string
	}{
		{session.Anthropic, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"tool_reference","tool_name":"f"}]}]}`,
			[]string{"f"}},
		{session.Anthropic, `{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"f","input_schema":{}}}}]}`,
			[]string{"f"}},
		{session.Anthropic, `{"role":"system","content":[{"type":"tool_removal","tool":{"type":"custom","name":"f"}},{"type":"text","text":"g"}]}`,
			[]string{"f"}},
		{session.Anthropic, `{"role":"system","content":[{"type":"tool_addition","tool":{"type":"mcp_toolset","mcp_server_name":"s"}}]}`,
			[]string{"mcp s"}},
		{session.OpenAIResponses, `{"type":"tool_search_output","call_id":"a","tools":[{"type":"function","name":"f"}]}`, []string{"function f"}},
		{session.OpenAIResponses, `{"type":"mcp_list_tools","server_label":"s","tools":[{"name":"f"}]}`, []string{"mcp s"}},
		{session.OpenAIChat, `{"role":"system","tools":[{"type":"function","function":{"name":"f","parameters":{}}}]}`, []string{"function f"}},
		{session.OpenAIChat, `{"role":"user","content":"tools","tools":[{"type":"function","function":{"name":"f"}}]}`, nil},
		{session.AISDK, `{"role":"assistant","parts":[{"type":"tool-find","providerExecuted":true,"output":[{"type":"tool_reference","toolName":"f"}]}]}`,
			[]string{"f"}},
		{session.AISDK, `{"role":"assistant","parts":[{"type":"tool-find","providerExecuted":true,"output":{"tools":[{"type":"function","name":"f"}]}}]}`,
			[]string{"function f"}},
		{session.AISDK, `{"role":"assistant","parts":[{"type":"tool-find","output":{"tools":[{"name":"f"}]}}]}`, nil}, // a program's own
		{session.AISDK, `{"role":"assistant","parts":[{"type":"tool-find","output":{"type":"content","value":[{"type":"text","text":"x"},` + found + `]}}]}`, []string{"f"}},
		{session.AISDK, `{"role":"tool","content":[{"type":"tool-result","toolCallId":"a","output":{"type":"content","value":[` + found + `]}}]}`, []string{"f"}},
		{session.AISDK, `{"role":"tool","content":[{"type":"tool-result","toolCallId":"a","output":{"type":"json","value":[` + found + `,{"type":"tool_reference","toolName":"f"}]}}]}`, nil},
	} {
		if got := wire.LoadedTools(c.format, []byte(c.body)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.body, got, c.want)
		}
	}
}
