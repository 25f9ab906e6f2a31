package wire_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// compactionWords are messages of programs and of providers' answers, by one letter each. A number is their place.
var compactionWords = map[session.Format]map[string]string{
	session.Anthropic: {
		"s": `{"role":"system","content":"s#"}`,
		"u": `{"role":"user","content":"u#"}`,
		"a": `{"role":"assistant","content":"a#"}`,
		"t": `{"role":"assistant","content":[{"type":"thinking","thinking":"t#","signature":"s"},{"type":"text","text":"x"}]}`,
		"C": `{"role":"assistant","content":[{"type":"compaction","content":"C#"}]}`,
		"T": `{"role":"assistant","content":[{"type":"compaction","content":"T#","encrypted_content":"e"},{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"x"}]}`,
		"S": `{"role":"assistant","content":[{"type":"compaction","content":"S#","signature":"sig"}]}`,
		"F": `{"role":"assistant","content":[{"type":"compaction","content":null},{"type":"text","text":"F#"}]}`,
		"c": `{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"c#","input":{}}]}`,
		"r": `{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"r#"}]}`,
	},
	session.OpenAIResponses: {
		"s": `{"role":"developer","content":"s#"}`,
		"u": `{"role":"user","content":"u#"}`,
		"a": `{"role":"assistant","content":"a#"}`,
		"t": `{"type":"reasoning","id":"rs_#","summary":[],"encrypted_content":"t#"}`,
		"C": `{"type":"compaction","id":"cmp_#","encrypted_content":"C#"}`,
		"c": `{"type":"function_call","call_id":"x","name":"c#","arguments":"{}"}`,
		"r": `{"type":"function_call_output","call_id":"x","output":"r#"}`,
		"q": `{"type":"mcp_approval_request","id":"mcpr_1","name":"q#","arguments":"{}","server_label":"s"}`,
		"y": `{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true,"reason":"y#"}`,
		"n": `{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":false,"reason":"n#"}`,
		"m": `{"type":"mcp_call","id":"mcp_#","name":"q","arguments":"{}","server_label":"s","approval_request_id":"mcpr_1","output":"m#"}`,
	},
	session.AISDK: {
		"u": `{"id":"#","role":"user","parts":[{"type":"text","text":"u#"}]}`,
		"a": `{"id":"#","role":"assistant","parts":[{"type":"text","text":"a#"}]}`,
		"C": `{"id":"#","role":"assistant","parts":[{"type":"text","text":"C#","providerMetadata":{"anthropic":{"type":"compaction"}}},{"type":"text","text":"x"}]}`,
		"E": `{"id":"#","role":"assistant","parts":[{"type":"text","text":"","providerMetadata":{"anthropic":{"type":"compaction"}}},{"type":"text","text":"E#"}]}`,
		"O": `{"id":"#","role":"assistant","parts":[{"type":"custom","kind":"openai.compaction","providerMetadata":{"openai":{"type":"compaction","itemId":"cmp_#","encryptedContent":"O#"}}},{"type":"text","text":"x"}]}`,
	},
}

func compactionLog(f session.Format, words string) (log []wire.Stored) {
	for i, word := range strings.Fields(words) {
		body := strings.ReplaceAll(compactionWords[f][word], "#", fmt.Sprint(i+1))
		log = append(log, wire.Stored{Format: f, Body: []byte(body), Seq: int64(i + 1)})
	}
	return log
}

// TestAProvidersOwnCompactionStandsForWhatIsBeforeIt names the messages of each log that a view has as they came: of
// logs with compactions, and with approvals, which may wait for one.
func TestAProvidersOwnCompactionStandsForWhatIsBeforeIt(t *testing.T) {
	t.Parallel()
	binds := wire.Options{Model: "claude-fable-5-1"}
	for name, c := range map[string]struct {
		format  session.Format
		log     string
		o       wire.Options
		keep    string
		repairs string
	}{
		"a compaction and an answer":           {session.Anthropic, "s u a u T u", wire.Options{}, "1 5 6", "compacted"},
		"the newest of two":                    {session.Anthropic, "u C u T u", wire.Options{}, "4 5", "compacted"},
		"one that failed stands for nothing":   {session.Anthropic, "u a u F u", wire.Options{}, "1 2 3 4 5", ""},
		"one that failed behind one":           {session.Anthropic, "u a u C u F u", wire.Options{}, "4 5 6 7", "compacted"},
		"the provider pauses behind it":        {session.Anthropic, "u a u C", wire.Options{Model: "claude-opus-4-8"}, "4", "compacted"},
		"one that was asked for, at its place": {session.Anthropic, "S u a u", wire.Options{}, "1 2 3 4", ""},
		"one that was asked for leads":         {session.Anthropic, "u a S u a u", wire.Options{}, "3 4 5 6", "compacted"},
		"a result whose call was compacted":    {session.Anthropic, "u c C u", wire.Options{}, "3 4", "compacted"},
		"a change before it binds nothing":     {session.Anthropic, "u t u T u t u", wire.Options{Model: binds.Model, Unbound: []wire.Seqs{{Through: 3}}}, "4 5 6 7", "compacted"},
		"a change behind it does":              {session.Anthropic, "u t u T u t u", wire.Options{Model: binds.Model, Unbound: []wire.Seqs{{Through: 4}}}, "5 6 7", "compacted reasoning_dropped"},
		"an item":                              {session.OpenAIResponses, "s u a u C a u", wire.Options{}, "1 5 6 7", "compacted"},
		"the newest of two items":              {session.OpenAIResponses, "u a C a C a u", wire.Options{}, "5 6 7", "compacted"},
		"what /responses/compact returns":      {session.OpenAIResponses, "u u C u", wire.Options{}, "1 2 3 4", ""},
		"a call that is answered behind it":    {session.OpenAIResponses, "u a u t c C r a u", wire.Options{}, "3 4 5 6 7 8 9", "compacted"},
		"a call that waits":                    {session.OpenAIResponses, "u a u t c C", wire.Options{}, "3 4 5 6", "compacted"},
		"the item of another provider":         {session.OpenAIResponses, "u a C a u", wire.Options{Model: "grok-4", Author: "gpt-5"}, "1 2 4 5", "compaction_dropped"},
		"Anthropic's, by its package":          {session.AISDK, "u a u C u", wire.Options{Model: "claude-opus-4-8"}, "4 5", "compacted"},
		"one that failed, by its package":      {session.AISDK, "u a u E u", wire.Options{Model: "claude-opus-4-8"}, "1 2 3 5", "empty_text"},
		"OpenAI's, by its package":             {session.AISDK, "u a u O u", wire.Options{Model: "gpt-5.6"}, "4 5", "compacted"},
		"Anthropic's, for OpenAI":              {session.AISDK, "u a u C u", wire.Options{Model: "gpt-5.6"}, "1 2 3 4 5", ""},
		"Anthropic's, for nobody we know":      {session.AISDK, "u a u C u", wire.Options{}, "1 2 3 4 5", ""},
		"Anthropic's leads for no other":       {session.AISDK, "C u", wire.Options{Model: "gemini-3-pro"}, "1 2", "first_user"},
		"an approval that is waited for":       {session.OpenAIResponses, "u q", wire.Options{}, "1 2", ""},
		"nobody has answered it":               {session.OpenAIResponses, "u q u a", wire.Options{}, "1 2 3 4", ""},
		"it is approved":                       {session.OpenAIResponses, "u q y m a", wire.Options{}, "1 2 3 4 5", ""},
		"it is denied":                         {session.OpenAIResponses, "u q n a", wire.Options{}, "1 2 3 4", ""},
		"it is answered twice":                 {session.OpenAIResponses, "u q y n m a", wire.Options{}, "1 2 3 5 6", "approval_as_note"},
		"an answer to no request":              {session.OpenAIResponses, "u y a", wire.Options{}, "1 3", "approval_as_note"},
		"it waits while the provider compacts": {session.OpenAIResponses, "u a u q C y m a", wire.Options{}, "3 4 5 6 7 8", "compacted"},
		"it was settled before that":           {session.OpenAIResponses, "u q y m C a u", wire.Options{}, "5 6 7", "compacted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := compactionLog(c.format, c.log)
			made := wiretest.Render(c.format, log, c.o)
			var kept []string
			for i := range log {
				if slices.ContainsFunc(made.Bodies, func(b []byte) bool { return string(b) == string(log[i].Body) }) {
					kept = append(kept, fmt.Sprint(i+1))
				}
			}
			if got := strings.Join(kept, " "); got != c.keep {
				t.Errorf("keeps %s, want %s", got, c.keep)
			}
			if got := strings.Join(repairKinds(made.Repairs), " "); got != c.repairs {
				t.Errorf("repairs %s, want %s", got, c.repairs)
			}
			for _, v := range wiretest.Validate(c.format, made.Bodies, c.o) {
				t.Errorf("%+v", v)
			}
		})
	}
}

// TestACompactionInAnotherFormat has what other providers get: Anthropic's summary can be read, OpenAI's item cannot.
func TestACompactionInAnotherFormat(t *testing.T) {
	t.Parallel()
	for _, target := range session.Formats() {
		for own, want := range map[session.Format]string{session.Anthropic: "Summary of the conversation so far] T3", session.OpenAIResponses: "cmp_3"} {
			log := compactionLog(own, map[session.Format]string{session.Anthropic: "u a T u", session.OpenAIResponses: "u a C u"}[own])
			made := wiretest.Render(target, log, wire.Options{})
			all := ""
			for _, body := range made.Bodies {
				all += string(body)
			}
			switch {
			case target == own:
			case !strings.Contains(all, "u1") || !strings.Contains(all, "a2"):
				t.Errorf("%s in %s lacks what was compacted: %s", own, target, all)
			case strings.Contains(all, want) != (own == session.Anthropic):
				t.Errorf("%s in %s: %s", own, target, all)
			}
		}
	}
}

// TestAListWithACompaction has lists that the API refuses, and one that it takes.
func TestAListWithACompaction(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]int{"C u": 0, "u C u": 0, "S u": 0, "s S u": 0, "u S u": 1, "F u": 1} {
		var bodies [][]byte
		for _, m := range compactionLog(session.Anthropic, words) {
			bodies = append(bodies, m.Body)
		}
		if got := wiretest.Validate(session.Anthropic, bodies, wire.Options{}); len(got) != want {
			t.Errorf("%s: %v, want %d", words, got, want)
		}
	}
}

// TestWhatLoadsOrCompactsIsFlagged, wherever in the message it stands: ends of logs are read by this flag.
func TestWhatLoadsOrCompactsIsFlagged(t *testing.T) {
	t.Parallel()
	for format, bodies := range map[session.Format][]string{
		session.Anthropic: {
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"tool_reference","tool_name":"f"}]}]}`,
			`{"role":"assistant","content":[{"type":"tool_search_tool_result","tool_use_id":"a","content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"f"}]}}]}`,
			`{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"compaction","content":"c"}]}`,
			`{"role":"assistant","content":[{"type":"compaction","content":null}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"tool_reference"}]}`,
			`{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"f","input_schema":{}}}}]}`,
			`{"role":"system","content":[{"type":"text","text":"a"},{"type":"tool_removal","tool":{"type":"mcp_toolset_reference","server_name":"s"}}]}`,
		},
		session.OpenAIResponses: {
			`{"type":"compaction","encrypted_content":"c"}`, `{"type":"mcp_list_tools","id":"m","server_label":"s","tools":[]}`,
			`{"type":"tool_search_output","tools":[{"type":"function","name":"f"}]}`, `{"type":"mcp_call","id":"m","name":"f","arguments":"{}"}`,
			`{"role":"user","content":"compaction"}`,
		},
		session.AISDK: {
			`{"id":"1","role":"assistant","parts":[{"type":"text","text":"c","providerMetadata":{"anthropic":{"type":"compaction"}}}]}`,
			`{"role":"assistant","content":[{"type":"text","text":"c","providerOptions":{"anthropic":{"type":"compaction"}}}]}`,
			`{"role":"assistant","content":[{"type":"custom","kind":"openai.compaction","providerOptions":{"openai":{"encryptedContent":"e"}}}]}`,
			`{"id":"1","role":"assistant","parts":[{"type":"text","text":"c","providerMetadata":{"anthropic":{}}}]}`,
			`{"id":"1","role":"assistant","parts":[{"type":"tool-find","toolCallId":"a","providerExecuted":true,"state":"output-available","input":{},"output":[{"type":"tool_reference","toolName":"f"}]}]}`,
			`{"id":"1","role":"assistant","parts":[{"type":"tool-find","toolCallId":"a","providerExecuted":true,"state":"output-available","input":{},"output":{"tools":[{"type":"function","name":"f"}]}}]}`,
			`{"id":"1","role":"assistant","parts":[{"type":"tool-find","toolCallId":"a","state":"output-available","input":{},"output":{"tools":[{"type":"function","name":"f"}]}}]}`,
			`{"role":"assistant","content":[{"type":"tool-result","toolCallId":"a","toolName":"f","output":{"type":"json","value":[{"type":"tool_reference","toolName":"f"}]}}]}`,
		},
	} {
		for _, body := range bodies {
			found, err := wire.Inspect(format, []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			want := wire.Compacts(format, []byte(body)) || len(wire.LoadedTools(format, []byte(body))) > 0
			if got := found.Flags&wire.FlagState == wire.FlagState; got != want {
				t.Errorf("%s is flagged: %t, want %t", body, got, want)
			}
		}
	}
}
