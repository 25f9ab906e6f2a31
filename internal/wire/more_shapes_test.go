package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// shown renders a log in its own format, which must then be valid, and returns its messages, a line each.
func shown(t *testing.T, f session.Format, o wire.Options, log ...string) string {
	t.Helper()
	view := storedOf(f, log)
	for i := range view {
		view[i].Seq = int64(i + 1)
	}
	made := wiretest.Render(f, view, o)
	for _, broken := range wiretest.Validate(f, made.Bodies, o) {
		t.Errorf("%+v", broken)
	}
	var lines []string
	for _, body := range made.Bodies {
		lines = append(lines, string(body))
	}
	return strings.Join(lines, "\n")
}

// TestASettingOfTheEffortStaysWhereItIs has a message of the system that only sets the effort in all places
// (platform.claude.com/docs/en/build-with-claude/effort-per-message).
func TestASettingOfTheEffortStaysWhereItIs(t *testing.T) {
	t.Parallel()
	const user, said = `{"role":"user","content":"u"}`, `{"role":"assistant","content":"a"}`
	const effort, brief = `{"role":"system","content":[],"output_config":{"effort":"low"}}`, `{"role":"system","content":"s"}`
	const both, more = `{"role":"system","content":"s","output_config":{"effort":"low"}}`, `{"role":"user","content":"Continue."}`
	const called, answered = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}`
	const searches = `{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}}]}`
	for name, test := range map[string]struct {
		model string
		log   []string
		want  []string
	}{
		"before the user":               {"claude-fable-5-1", []string{user, said, effort, user}, []string{user, said, effort, user}},
		"behind the user":               {"claude-opus-5", []string{user, effort, said, user}, []string{user, effort, said, user}},
		"without a content":             {"claude-opus-5-5", []string{user, said, `{"role":"system","output_config":{"effort":"max"}}`, user}, []string{user, said, `{"role":"system","output_config":{"effort":"max"}}`, user}},
		"at the end":                    {"claude-fable-5-1", []string{user, effort}, []string{user, effort}},
		"at the end, behind an answer":  {"claude-fable-5-1", []string{user, said, effort}, []string{user, said, effort, more}},
		"between a call and its result": {"claude-fable-5-1", []string{user, called, effort, answered}, []string{user, called, answered, effort}},
		"beside a text, behind it":      {"claude-fable-5-1", []string{user, brief, effort, said, user}, []string{user, both, said, user}},
		"beside a text, before it":      {"claude-fable-5-1", []string{user, effort, brief, said, user}, []string{user, both, said, user}},
		"a later one counts":            {"claude-fable-5-1", []string{user, both, `{"role":"system","output_config":{"effort":"max"}}`, said, user}, []string{user, `{"role":"system","content":"s","output_config":{"effort":"max"}}`, said, user}},
		"with a text that is no place":  {"claude-fable-5-1", []string{user, said, both, user}, []string{user, said, effort, `{"role":"user","content":"[System] s"}`, user}},
		"for a model without":           {"claude-sonnet-4-5", []string{user, said, effort, user}, []string{user, said, user}},
		"at Bedrock":                    {"us.anthropic.claude-opus-5-5", []string{user, said, effort, user}, []string{user, said, user}},
		"one that sets nothing":         {"claude-fable-5-1", []string{user, said, `{"role":"system","content":[],"output_config":{}}`, user}, []string{user, said, user}},
		"a text behind the API's tool":  {"claude-opus-5-5", []string{user, searches, brief}, []string{user, searches, brief}},
	} {
		if got := shown(t, session.Anthropic, wire.Options{Model: test.model}, test.log...); got != strings.Join(test.want, "\n") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// TestThinkingInAContentGoesWhereTheServerReadsIt has what Mistral answers at other servers.
func TestThinkingInAContentGoesWhereTheServerReadsIt(t *testing.T) {
	t.Parallel()
	const user, text = `{"role":"user","content":"u"}`, `{"type":"text","text":"hi"}`
	const thinking, blank = `{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}`, `{"type":"thinking","thinking":[]}`
	said := func(blocks ...string) string {
		return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`
	}
	for name, test := range map[string]struct {
		dialect    provider.Dialect
		said, want string
	}{
		"Mistral's own":                 {provider.Mistral, said(thinking, text), said(thinking, text)},
		"nobody knows the server":       {"", said(thinking, text), said(thinking, text)},
		"OpenAI ignores it":             {provider.OpenAI, said(thinking, text), `{"role":"assistant","content":[` + text + `],"reasoning_content":"hm"}`},
		"a text":                        {provider.OpenAI, said(`{"type":"thinking","thinking":"hm"}`, text), `{"role":"assistant","content":[` + text + `],"reasoning_content":"hm"}`},
		"DeepSeek requires it":          {provider.DeepSeek, said(thinking, text), `{"role":"assistant","content":"hi","reasoning_content":"hm"}`},
		"Groq reads another member":     {provider.Groq, said(thinking, text), `{"role":"assistant","content":"hi","reasoning":"hm"}`},
		"vLLM, from two places":         {provider.VLLM, strings.Replace(said(thinking, text), `{`, `{"reasoning":"so",`, 1), `{"role":"assistant","content":[` + text + `],"reasoning":"so\nhm"}`},
		"Cerebras takes none":           {provider.Cerebras, said(thinking, text), said(`{"type":"text","text":"[Reasoning] hm"}`, text)},
		"one that is empty for Mistral": {provider.Mistral, said(blank, text), said(blank, text)},
		"one that is empty":             {provider.Cerebras, said(blank, text), said(text)},
	} {
		if got := shown(t, session.OpenAIChat, wire.Options{Dialect: test.dialect}, user, test.said, user); got != user+"\n"+test.want+"\n"+user {
			t.Errorf("%s:\n%s", name, got)
		}
	}
	for target, want := range map[session.Format]string{
		session.Anthropic: `"[Reasoning] hm"`, session.Gemini: `{"text":"hm","thought":true}`, session.AISDK: `{"type":"reasoning","text":"hm"}`, session.OpenAIResponses: `"[Reasoning] hm"`,
	} {
		made := wiretest.Render(target, storedOf(session.OpenAIChat, []string{user, said(thinking, text), user}), wire.Options{})
		if got := string(made.Bodies[1]); !strings.Contains(got, want) {
			t.Errorf("%s: %s", target, got)
		}
	}
}

// TestWhatIsNoCallIsMended has calls as clients and servers write them wrong.
func TestWhatIsNoCallIsMended(t *testing.T) {
	t.Parallel()
	const user, function = `{"role":"user","content":"u"}`, `"function":{"name":"f","arguments":"{}"}`
	calls := func(list string) string { return `{"role":"assistant","content":null,"tool_calls":` + list + `}` }
	answers := `{"role":"tool","tool_call_id":"a","content":"r"}`
	good := calls(`[{"id":"a","type":"function",` + function + `}]`)
	for _, broken := range []string{
		`[{"id":"a","type":"tool_use",` + function + `}]`, `[{"id":"a","type":"custom",` + function + `}]`, `[{"id":"a","type":1,` + function + `}]`, `[null,"x",{"id":"a","type":"function",` + function + `}]`,
	} {
		got := shown(t, session.OpenAIChat, wire.Options{Model: "gpt-5.6"}, user, calls(broken), answers)
		if !strings.Contains(got, `"type":"function"`) || strings.Contains(got, "null,") && strings.Contains(got, "[null") || strings.Contains(got, `custom`) {
			t.Errorf("%s:\n%s", broken, got)
		}
	}
	for _, kept := range []string{good, calls(`[{"id":"a","type":"builtin_function",` + function + `}]`), calls(`[{"id":"a","type":"custom","custom":{"name":"f","input":"x"}}]`)} {
		if got := shown(t, session.OpenAIChat, wire.Options{}, user, kept, answers); got != user+"\n"+kept+"\n"+answers {
			t.Errorf("%s became\n%s", kept, got)
		}
	}
	if got := shown(t, session.OpenAIChat, wire.Options{}, user, `{"role":"assistant","content":"x","tool_calls":{"id":"a"}}`, user); !strings.Contains(got, `{"role":"assistant","content":"x"}`) {
		t.Errorf("tool_calls that are no list: %s", got)
	}
	for arguments, want := range map[string]string{`""`: `{}`, `" \n"`: `{}`, `"null"`: `{}`, `"{\"a\":1}"`: `{"a":1}`, `"ls"`: `{"input":"ls"}`, `[1]`: `{"input":[1]}`} {
		got := shown(t, session.Anthropic, wire.Options{}, user, `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":`+arguments+`}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}`)
		if !strings.Contains(got, `"input":`+want+`}`) {
			t.Errorf("%s: %s", arguments, got)
		}
	}
}

// TestItemsHaveTheFormOfToday has items of Responses as programs wrote them.
func TestItemsHaveTheFormOfToday(t *testing.T) {
	t.Parallel()
	const user = `{"role":"user","content":"u"}`
	for item, want := range map[string]string{
		`{"type":"compaction_summary","encrypted_content":"gAAA"}`:                                                         `{"type":"compaction","encrypted_content":"gAAA"}`,
		`{"type":"mcp_call","id":"mcp_1","server_label":"s","name":"f","output":"x","arguments":{"a":1}}`:                  `{"type":"mcp_call","id":"mcp_1","server_label":"s","name":"f","output":"x","arguments":"{\"a\":1}"}`,
		`{"type":"mcp_call","id":"mcp_1","server_label":"s","name":"f"}`:                                                   `{"type":"mcp_call","id":"mcp_1","server_label":"s","name":"f","arguments":"{}"}`,
		`{"type":"mcp_approval_request","id":"mcpr_1","server_label":"s","name":"f","arguments":{}}`:                       `{"type":"mcp_approval_request","id":"mcpr_1","server_label":"s","name":"f","arguments":"{}"}`,
		`{"type":"mcp_call","id":"mcp_1","server_label":"s","name":"f","arguments":"not JSON","approval_request_id":null}`: `{"type":"mcp_call","id":"mcp_1","server_label":"s","name":"f","arguments":"not JSON","approval_request_id":null}`,
	} {
		if got := shown(t, session.OpenAIResponses, wire.Options{}, user, item); !strings.Contains(got, want) {
			t.Errorf("%s became\n%s", item, got)
		}
	}
	if !wire.Compacts(session.OpenAIResponses, []byte(`{"type":"compaction_summary","encrypted_content":"gAAA"}`)) {
		t.Error("a compaction by its older name is none")
	}
}

// TestThinkingLeavesWhatIsBehindAnImageThatNewerOnesReplace has a screenshot a step: the oldest becomes a text when there
// are too many, which thinking behind it is not bound to.
func TestThinkingLeavesWhatIsBehindAnImageThatNewerOnesReplace(t *testing.T) {
	t.Parallel()
	for shots, keep := range map[int]int{600: 600, 601: 1, 602: 1} {
		log := []string{`{"role":"user","content":"look"}`}
		for i := range shots {
			log = append(log, strings.ReplaceAll(thinks(fmt.Sprint("a", i)), `"s"`, fmt.Sprintf(`"s%d."`, i)),
				fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a%d","content":[{"type":"image","source":{"type":"url","url":"https://a.b/%d.png"}}]}]}`, i, i))
		}
		got := shown(t, session.Anthropic, wire.Options{Model: "claude-opus-5-5"}, log...)
		if kept := strings.Count(got, `"signature"`); kept != keep {
			t.Errorf("%d images: %d thoughts stay, not %d", shots, kept, keep)
		}
	}
}
