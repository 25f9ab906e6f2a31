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
	for name, test := range map[string]struct {
		log  []string
		gone string // ids that the view lacks
	}{
		"nothing was removed":           {[]string{user, thought, call("a"), call("b"), output, other, user}, ""},
		"the thought was removed":       {[]string{user, "-", call("a"), call("b"), output, other, next, said, user}, "fc_a fc_b"},
		"a thought between calls":       {[]string{user, "-", call("a"), next, call("b"), output, other, user}, "fc_a"},
		"a message behind it":           {[]string{user, "-", said, user}, "msg_1"},
		"what the API ran keeps its id": {[]string{user, "-", search, said, user}, "msg_1"},
		"the user's was removed":        {[]string{user, "-", thought, call("a"), output, user}, ""},
		"an output was removed":         {[]string{user, thought, call("a"), "-", user}, ""},
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
			for _, id := range []string{"fc_a", "fc_b", "msg_1", "ws_1", "rs_1", "rs_2"} {
				was := strings.Contains(strings.Join(test.log, ""), `"`+id+`"`)
				if gone := strings.Contains(test.gone, id); was && strings.Contains(all, `"`+id+`"`) == gone {
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
