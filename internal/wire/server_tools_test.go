package wire

import (
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

func hostedCall(id string) string {
	return `{"type":"server_tool_use","id":"` + id + `","name":"web_search","input":{}}`
}

func hostedResult(id string) string {
	return `{"type":"web_search_tool_result","tool_use_id":"` + id + `","content":[]}`
}

// serverToolFixtures are lists with tools that Anthropic itself runs.
var serverToolFixtures = []fixture{
	{"V-A15", "a call and its result", Options{}, []string{someUser, says("assistant", block, hostedCall("s"), hostedResult("s"), block), someUser}, nil},
	{"V-A15", "two calls, then their results", Options{}, []string{someUser, says("assistant", hostedCall("s"), hostedCall("t"), hostedResult("t"), hostedResult("s")), someUser}, nil},
	{"V-A15", "a result in the message with which the API went on", Options{},
		[]string{someUser, says("assistant", hostedCall("s")), says("assistant", hostedResult("s"), block), someUser}, nil},
	{"V-A15", "a result behind that of a tool that the call ran", Options{},
		[]string{someUser, says("assistant", hostedCall("s"), use), toolResults("a"), says("assistant", hostedResult("s"), block), someUser}, nil},
	{"V-A15", "the API paused", refuses, []string{someUser, says("assistant", block, hostedCall("s"))}, nil},
	{"V-A15", "a call of an MCP server", Options{}, []string{someUser,
		says("assistant", `{"type":"mcp_tool_use","id":"m","name":"f","server_name":"x","input":{}}`, `{"type":"mcp_tool_result","tool_use_id":"m","content":[]}`), someUser}, nil},
	{"V-A15", "a call without a result", Options{}, []string{someUser, says("assistant", hostedCall("s"), block), someUser}, []string{"V-A15 1"}},
	{"V-A15", "a call of an MCP server without a result", Options{}, []string{someUser,
		says("assistant", `{"type":"mcp_tool_use","id":"m","name":"f","server_name":"x","input":{}}`), someUser}, []string{"V-A15 1"}},
	{"V-A15", "a result without a call", Options{}, []string{someUser, says("assistant", hostedResult("s"), block), someUser}, []string{"V-A15 1"}},
	{"V-A15", "a result before its call", Options{}, []string{someUser, says("assistant", hostedResult("s"), hostedCall("s")), someUser}, []string{"V-A15 1", "V-A15 1"}},
	{"V-A15", "a result of another call", Options{}, []string{someUser, says("assistant", hostedCall("s"), hostedResult("t")), someUser}, []string{"V-A15 1", "V-A15 1"}},
	{"V-A15", "a call whose result comes when the user has spoken", Options{},
		[]string{someUser, says("assistant", hostedCall("s")), someUser, says("assistant", hostedResult("s"), block), someUser}, []string{"V-A15 1", "V-A15 3"}},
	{"V-A15", "a call and words at the end, for a model that goes on from neither", refuses, []string{someUser, says("assistant", hostedCall("s"), block)}, []string{"V-A6 1"}},
}

// TestACallOfTheAPIsToolWithoutAResultIsANote renders what finding C-13 had.
func TestACallOfTheAPIsToolWithoutAResultIsANote(t *testing.T) {
	t.Parallel()
	view := storedAs(session.Anthropic, []string{someUser, says("assistant", block, hostedCall("srv_1")), someUser})
	made := rendered(session.Anthropic, view, Options{})
	if len(made.Repairs) != 1 || made.Repairs[0].Kind != "server_tool_as_note" || made.Repairs[0].Rule != "V-A15" {
		t.Errorf("repairs %v", made.Repairs)
	}
	if text := string(made.Bodies[1]); !strings.Contains(text, "srv_1") || !strings.Contains(text, `"type":"text"`) {
		t.Errorf("the call is shown as %s", text)
	}
}
