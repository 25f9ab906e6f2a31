package wire_test

import (
	"slices"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

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
	} {
		if got := wire.LoadedTools(c.format, []byte(c.body)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.body, got, c.want)
		}
	}
}
