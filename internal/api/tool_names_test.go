package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// calls returns a conversation that calls tools in a format, one after another.
func calls(f session.Format, tools ...string) (bodies []string) {
	said := map[session.Format][3]string{
		session.OpenAIChat: {`{"role":"user","content":"go"}`, `{"role":"assistant","content":null,"tool_calls":[{"id":"ID","type":"function","function":{"name":"NAME","arguments":"{}"}}]}`,
			`{"role":"tool","tool_call_id":"ID","content":"r"}`},
		session.OpenAIResponses: {`{"role":"user","content":"go"}`, `{"type":"function_call","call_id":"ID","name":"NAME","arguments":"{}"}`, `{"type":"function_call_output","call_id":"ID","output":"r"}`},
		session.Anthropic: {`{"role":"user","content":"go"}`, `{"role":"assistant","content":[{"type":"tool_use","id":"ID","name":"NAME","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"ID","content":"r"}]}`},
		session.Gemini: {`{"role":"user","parts":[{"text":"go"}]}`, `{"role":"model","parts":[{"functionCall":{"name":"NAME","args":{}},"thoughtSignature":"c2ln"}]}`,
			`{"role":"user","parts":[{"functionResponse":{"name":"NAME","response":{"output":"r"}}}]}`},
	}[f]
	for i, tool := range tools {
		for _, body := range said {
			bodies = append(bodies, strings.NewReplacer("ID", fmt.Sprint("c", i), "NAME", tool).Replace(body))
		}
	}
	return append(bodies, last(f))
}

// TestC01AViewHasNamesOfToolsThatItsProviderTakes reads sessions with tools of any name in every format, and in every
// way that a view is made.
func TestC01AViewHasNamesOfToolsThatItsProviderTakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("n", 90)
	for from, tools := range map[session.Format][]string{
		session.Gemini:          {"fs.read:file", "grep"},
		session.OpenAIChat:      {"my tool", "mcp__server/tool", "日本語", long, "", "9lives", "ok"},
		session.OpenAIResponses: {"my tool", "", strings.Repeat("n", 129)},
		session.Anthropic:       {"a.b", long, ""},
	} {
		path := "/v1/sessions/" + string(from)
		w.must(http.StatusCreated, "PUT", path, "")
		w.must(http.StatusCreated, "POST", path+"/messages", batch(string(from), calls(from, tools...)...))
		for _, f := range session.Formats() {
			for _, way := range []string{"", "&max_tokens=100000", "&fit=window", "&view=full"} {
				v := w.read(path, f, "format="+string(f)+way)
				checkToolNames(t, fmt.Sprint(from, " as ", f, way), f, tools, v)
			}
		}
	}
}

// checkToolNames wants the names of a view to be those that POST /v1/tools/names has for the tools.
func checkToolNames(t *testing.T, name string, f session.Format, tools []string, v renderedView) {
	t.Helper()
	want := map[string]string{}
	for _, tool := range tools {
		if to := wire.ToolName(f, tool, wire.Options{}); to != tool {
			want[tool] = to
		}
	}
	if len(want) == 0 {
		want = nil
	}
	if diff := cmp.Diff(want, v.ToolNames); diff != "" {
		t.Errorf("%s: tool_names (-want +got):\n%s", name, diff)
	}
	told := slices.ContainsFunc(v.Repairs, func(r wire.Repair) bool { return r.Kind == "tool_renamed" })
	if told != (want != nil) {
		t.Errorf("%s: repairs %v", name, v.Repairs)
	}
}

// TestACallByTheOtherNameIsAppended sends back what a model does that knows a tool by its other name.
func TestACallByTheOtherNameIsAppended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path, tool = "/v1/sessions/s", "fs.read:file"
	w.must(http.StatusCreated, "PUT", path, "")
	w.must(http.StatusCreated, "POST", path+"/messages", batch("gemini", calls(session.Gemini, tool)...))
	before := w.read(path, session.Anthropic, "format=anthropic")
	other := before.ToolNames[tool]
	w.must(http.StatusCreated, "POST", path+"/messages", batch("anthropic", calls(session.Anthropic, other)[1:3]...))
	after := w.read(path, session.Anthropic, "format=anthropic")
	if n := len(before.Messages); strings.Join(strs(after.bodies()[:n]), "\n") != strings.Join(strs(before.bodies()), "\n") || after.ToolNames[tool] != other {
		t.Errorf("the view was\n%s\nand is\n%s", before.Messages, after.Messages)
	}
}

// TestCompactedMessagesNameTheirTools compacts messages that are not stored.
func TestCompactedMessagesNameTheirTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := `{"format":"anthropic","window_tokens":100000,"messages":[` + strings.Join(calls(session.Anthropic, "my tool", "grep"), ",") + `]}`
	got := decoded[renderedView](w.must(http.StatusOK, "POST", "/v1/compact", body))
	if diff := cmp.Diff(map[string]string{"my tool": wire.PlainToolName("my tool")}, got.ToolNames); diff != "" {
		t.Errorf("tool_names (-want +got):\n%s", diff)
	}
}

// TestNamesOfToolsThatWereNotCalled asks for them by format, model and dialect.
func TestNamesOfToolsThatWereNotCalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("n", 100)
	names := `"names":["fs.read:file","` + long + `","grep",""]`
	dotted, cut, none := wire.PlainToolName("fs.read:file"), wire.PlainToolName(long), wire.PlainToolName("")
	for request, want := range map[string]map[string]string{
		`"format":"gemini"`:                        {long: cut, "": none},
		`"format":"anthropic"`:                     {"fs.read:file": dotted, "": none},
		`"format":"ai-sdk"`:                        {"": none},
		`"format":"openai-chat"`:                   {"fs.read:file": dotted, long: cut, "": none},
		`"format":"anthropic","dialect":"bedrock"`: {"fs.read:file": dotted, long: cut, "": none},
		`"format":"anthropic","model":"us.anthropic.claude-sonnet-4-5-v1:0"`: {"fs.read:file": dotted, long: cut, "": none},
		`"format":"ai-sdk","model":"claude-sonnet-4-5"`:                      {"fs.read:file": dotted, "": none},
	} {
		got := decoded[protocol.ToolNames](w.must(http.StatusOK, "POST", "/v1/tools/names", "{"+request+","+names+"}"))
		if diff := cmp.Diff(want, got.ToolNames); diff != "" {
			t.Errorf("%s (-want +got):\n%s", request, diff)
		}
	}
	for body, want := range map[string]string{
		`{"names":[]}`: "format is missing",
		`{"format":"gemini","dialect":"bedrock","names":[]}`:    "gemini has no dialect",
		`{"format":"anthropic","dialect":"mistral","names":[]}`: "it has anthropic, bedrock, deepseek, ",
		`{"format":"gemini"}`:                                                   "names is missing",
		`{"format":"gemini","names":[7]}`:                                       "/names/0",
		`{"format":"gemini","names":"grep"}`:                                    "/names",
		`{"format":"gemini","names":[` + strings.Repeat(`"a",`, 1000) + `"a"]}`: "the limit is 1000",
	} {
		if got := w.must(http.StatusUnprocessableEntity, "POST", "/v1/tools/names", body).Body.String(); !strings.Contains(got, want) {
			t.Errorf("%.80s: %s", body, got)
		}
	}
}
