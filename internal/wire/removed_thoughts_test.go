package wire_test

import (
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// TestItemsBehindARemovedThoughtHaveNoIDs removes items of a turn that thought before its calls. "-" is a removed one.
func TestItemsBehindARemovedThoughtHaveNoIDs(t *testing.T) {
	t.Parallel()
	const user, output, other = `{"role":"user","content":"u"}`, `{"type":"function_call_output","call_id":"a","output":"r"}`, `{"type":"function_call_output","call_id":"b","output":"r"}`
	const thought, next = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}`, `{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"e"}`
	call := func(id string) string {
		return `{"type":"function_call","id":"fc_` + id + `","call_id":"` + id + `","name":"f","arguments":"{}"}`
	}
	search := `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}`
	said := `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"x","annotations":[]}]}`
	const click = `{"type":"computer_call","id":"cu_1","call_id":"a","status":"completed","pending_safety_checks":[],"action":{"type":"click","x":1,"y":2,"button":"left"}}`
	const shot = `{"type":"computer_call_output","call_id":"a","output":{"type":"computer_screenshot","file_id":"file_1"}}`
	const tools = `{"type":"mcp_list_tools","id":"mcpl_1","server_label":"s","tools":[{"name":"f","input_schema":{}}]}`
	const asks = `{"type":"mcp_approval_request","id":"mcpr_1","name":"f","arguments":"{}","server_label":"s"}`
	const plain = `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`
	for name, test := range map[string]struct {
		log  []string
		gone string // ids that the view lacks
	}{
		"nothing was removed":        {[]string{user, thought, call("a"), call("b"), output, other, user}, ""},
		"the thought was removed":    {[]string{user, "-", call("a"), call("b"), output, other, next, said, user}, "fc_a fc_b"},
		"a thought between calls":    {[]string{user, "-", call("a"), next, call("b"), output, other, user}, "fc_a"},
		"a message behind it":        {[]string{user, "-", said, user}, "msg_1"},
		"what the API ran is a text": {[]string{user, "-", search, said, user}, "msg_1 ws_1"},
		"a computer's call":          {[]string{user, "-", click, shot, next, said, user}, "cu_1"},
		"its own thought is there":   {[]string{user, next, click, shot, said, user}, ""},
		"a list of tools":            {[]string{"-", tools, next, call("a"), output, user}, ""},
		"a request of approval":      {[]string{user, "-", asks, `{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}`, user}, "mcpr_1"},
		"a thought known by its id":  {[]string{user, `{"type":"reasoning","id":"rs_1","summary":[]}`, plain, call("b"), output, other, user}, "rs_1 fc_b"},
		"the user's was removed":     {[]string{user, "-", thought, call("a"), output, user}, ""},
		"an output was removed":      {[]string{user, thought, call("a"), "-", user}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var view []wire.Stored
			var o wire.Options
			for i, body := range test.log {
				if body == "-" {
					o.Removed = append(o.Removed, int64(i+2))
					continue
				}
				view = append(view, wire.Stored{Format: session.OpenAIResponses, Body: []byte(body), Seq: int64(i + 1)})
			}
			made := wiretest.Render(session.OpenAIResponses, view, o)
			all := ""
			for _, body := range made.Bodies {
				all += string(body) + "\n"
			}
			for _, id := range []string{"fc_a", "fc_b", "msg_1", "ws_1", "rs_1", "rs_2", "cu_1", "mcpl_1"} {
				was := strings.Contains(strings.Join(test.log, ""), `"`+id+`"`)
				if gone := strings.Contains(test.gone, id); was && strings.Contains(all, `"id":"`+id+`"`) == gone {
					t.Errorf("%s is gone: %t, want %t\n%s", id, !gone, gone, all)
				}
			}
			if found := wiretest.Validate(session.OpenAIResponses, made.Bodies, o); len(found) > 0 {
				t.Errorf("%+v\n%s", found, all)
			}
		})
	}
}

// TestNoTurnEndsInThinking has turns of Claude that were cut off, or whose calls have left.
func TestNoTurnEndsInThinking(t *testing.T) {
	t.Parallel()
	const user, thought, text = `{"role":"user","content":"u"}`, `{"type":"thinking","thinking":"hm","signature":"s"}`, `{"type":"text","text":"so"}`
	const use, result = `{"type":"tool_use","id":"a","name":"f","input":{}}`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}`
	says := func(blocks ...string) string {
		return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`
	}
	for name, test := range map[string]struct {
		log     []string
		pending wire.Pending
		want    []string
	}{
		"thinking alone":              {[]string{user, says(thought), user}, "", []string{user, user}},
		"thinking behind a text":      {[]string{user, says(thought, text, thought), user}, "", []string{user, says(thought, text), user}},
		"thinking, then a message":    {[]string{user, says(text), says(thought), user}, "", []string{user, says(text), user}},
		"thinking before a call":      {[]string{user, says(thought), says(use), result, user}, "", []string{user, says(thought), says(use), result, user}},
		"thinking behind a call":      {[]string{user, says(use, thought), result, user}, "", []string{user, says(use, thought), result, user}},
		"a call that is left out":     {[]string{user, says(thought, use)}, wire.DropPending, []string{user, `{"role":"user","content":"Continue."}`}},
		"interleaved, left as it was": {[]string{user, says(thought, use, thought, text), result, user}, "", []string{user, says(thought, use, thought, text), result, user}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := wire.Options{Model: "claude-opus-4-6", Pending: test.pending}
			made := wiretest.Render(session.Anthropic, storedOf(session.Anthropic, test.log), o)
			var got []string
			for _, body := range made.Bodies {
				got = append(got, string(body))
			}
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			if found := wiretest.Validate(session.Anthropic, made.Bodies, o); len(found) > 0 {
				t.Errorf("%+v", found)
			}
		})
	}
}

// TestNoTurnOfClaudeBehindTheAISDKEndsInThinking has UIMessages of which Anthropic's package sends a thought last.
func TestNoTurnOfClaudeBehindTheAISDKEndsInThinking(t *testing.T) {
	t.Parallel()
	const thought, text, source = `{"type":"reasoning","text":"hm","providerMetadata":{"anthropic":{"signature":"s"}}}`, `{"type":"text","text":"so"}`, `{"type":"source-url","sourceId":"1","url":"https://a.b"}`
	const done, unsigned = `{"type":"tool-f","toolCallId":"a","state":"output-available","input":{},"output":"r"}`, `{"type":"reasoning","text":"hm"}`
	const stepStart = `{"type":"step-start"}`
	ui := func(id, role string, parts ...string) string {
		return `{"id":"` + id + `","role":"` + role + `","parts":[` + strings.Join(parts, ",") + `]}`
	}
	says := func(parts ...string) string { return ui("a", "assistant", parts...) }
	first, then := ui("1", "user", text), ui("2", "user", text)
	for name, test := range map[string]struct {
		log, want []string
		model     string
	}{
		"a text behind it":           {[]string{first, says(thought, text), then}, []string{first, says(thought, text), then}, "claude-opus-5-5"},
		"a thought alone":            {[]string{first, says(thought), then}, []string{first, then}, "claude-opus-5-5"},
		"behind a text":              {[]string{first, says(text, thought), then}, []string{first, says(stepStart, text), then}, "claude-opus-5-5"},
		"before what nobody sends":   {[]string{first, says(text, thought, source, unsigned), then}, []string{first, says(stepStart, text, source, unsigned), then}, "claude-opus-5-5"},
		"with what nobody sends":     {[]string{first, says(thought, source), then}, []string{first, then}, "claude-opus-5-5"},
		"behind results, in a step":  {[]string{first, says(done, stepStart, thought), then}, []string{first, says(stepStart, done), then}, "claude-opus-5-5"},
		"behind a call in its step":  {[]string{first, says(done, thought), then}, []string{first, says(done, thought), then}, "claude-opus-5-5"},
		"the last message":           {[]string{first, says(text, thought, source)}, []string{first, says(stepStart, text, source)}, "claude-opus-4-5"},
		"the last, behind a call":    {[]string{first, says(done, thought)}, []string{first, says(done, thought)}, "claude-opus-4-5"},
		"another provider behind it": {[]string{first, says(thought), then}, []string{first, says(thought), then}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := wire.Options{Model: test.model}
			view := storedOf(session.AISDK, test.log)
			made := wiretest.Render(session.AISDK, view, o)
			var got []string
			for _, body := range made.Bodies {
				got = append(got, string(body))
			}
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			if found := wiretest.Validate(session.AISDK, made.Bodies, o); len(found) > 0 {
				t.Errorf("%+v", found)
			}
			if isSame := strings.Join(got, "") == strings.Join(test.log, ""); validated(session.AISDK, view, 0).ValidFor(o) && !isSame {
				t.Error("the fast validator takes it as it is")
			}
		})
	}
}
