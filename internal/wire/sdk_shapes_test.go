package wire_test

import (
	"slices"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// TestWhatLibrariesReturnMakesAViewThatTheirProviderTakes appends answers as the libraries of the providers hand them
// out, all members written.
func TestWhatLibrariesReturnMakesAViewThatTheirProviderTakes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		format session.Format
		log    []string
		want   []string // of the view
	}{
		{"anthropic.messages.create()", session.Anthropic, []string{`{"role":"user","content":"u"}`,
			`{"id":"msg_01","container":null,"content":[{"citations":null,"text":"a","type":"text"}],"model":"claude-sonnet-4-5","role":"assistant","stop_reason":"end_turn","stop_sequence":null,"type":"message","usage":{"input_tokens":9,"output_tokens":2}}`, `{"role":"user","content":"on"}`},
			[]string{`{"role":"user","content":"u"}`, `{"content":[{"citations":null,"text":"a","type":"text"}],"role":"assistant"}`, `{"role":"user","content":"on"}`}},
		{"ChatCompletionMessage", session.OpenAIChat, []string{`{"role":"user","content":"u"}`,
			`{"content":null,"refusal":null,"role":"assistant","annotations":[],"audio":null,"function_call":null,"tool_calls":[{"id":"call_1","function":{"arguments":"{}","name":"f"},"type":"function"}]}`, `{"role":"tool","tool_call_id":"call_1","content":"r"}`,
			`{"content":"done","role":"assistant","tool_calls":[],"provider_specific_fields":{"x":1}}`},
			[]string{`{"role":"user","content":"u"}`, `{"content":null,"refusal":null,"role":"assistant","audio":null,"function_call":null,"tool_calls":[{"id":"call_1","function":{"arguments":"{}","name":"f"},"type":"function"}]}`,
				`{"role":"tool","tool_call_id":"call_1","content":"r"}`, `{"content":"done","role":"assistant"}`}},
		{"items of a Response", session.OpenAIResponses, []string{`{"role":"user","content":"u"}`,
			`{"id":"rs_1","summary":[],"type":"reasoning","content":null,"encrypted_content":"e","status":null}`, `{"id":"fc_1","arguments":"{}","call_id":"call_1","name":"f","type":"function_call","status":"completed","parsed_arguments":null}`,
			`{"type":"function_call_output","call_id":"call_1","output":"r","metadata":{}}`, `{"id":"msg_1","content":[{"annotations":[],"text":"a","type":"output_text","logprobs":null,"parsed":null}],"role":"assistant","status":"completed","type":"message"}`},
			[]string{`{"role":"user","content":"u"}`, `{"id":"rs_1","summary":[],"type":"reasoning","encrypted_content":"e"}`, `{"id":"fc_1","arguments":"{}","call_id":"call_1","name":"f","type":"function_call","status":"completed"}`,
				`{"type":"function_call_output","call_id":"call_1","output":"r"}`, `{"id":"msg_1","content":[{"annotations":[],"text":"a","type":"output_text"}],"role":"assistant","status":"completed","type":"message"}`}},
		{"a candidate's content", session.Gemini, []string{`{"role":"user","parts":[{"text":"u"}]}`,
			`{"parts":[{"videoMetadata":null,"thought":null,"text":"a"}],"role":"model","finishReason":"STOP","avgLogprobs":-0.1}`, `{"role":"user","parts":[{"text":"on"}]}`},
			[]string{`{"role":"user","parts":[{"text":"u"}]}`, `{"parts":[{"videoMetadata":null,"thought":null,"text":"a"}],"role":"model"}`, `{"role":"user","parts":[{"text":"on"}]}`}},
	} {
		view := storedOf(test.format, test.log)
		made := wiretest.Render(test.format, view, wire.Options{})
		var got []string
		for _, body := range made.Bodies {
			got = append(got, string(body))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: the view is %q", test.name, got)
		}
		for _, v := range wiretest.Validate(test.format, made.Bodies, wire.Options{}) {
			t.Errorf("%s: message %d breaks %s: %s", test.name, v.Message, v.Rule, v.Detail)
		}
		for _, r := range made.Repairs {
			if r.Kind != "member_dropped" || r.Seq == 0 {
				t.Errorf("%s: repair %+v", test.name, r)
			}
		}
	}
}

// TestMembersAreCutWhereverTheyStand leaves the other bytes of a message, spaces among them.
func TestMembersAreCutWhereverTheyStand(t *testing.T) {
	t.Parallel()
	for log, want := range map[string]string{
		`{"x":1,"role":"user","content":"u"}`:                                               `{"role":"user","content":"u"}`,
		` { "x" : {"role":1} , "y":[ ] , "role" : "user" , "z":0, "content":"u" , "q":""} `: ` { "role" : "user", "content":"u"} `,
		`{"role":"user","content":"u","x":{"y":"}"},"\u0078":"\""}`:                         `{"role":"user","content":"u"}`,
		`{"\u0072ole":"user","content":[{"text":"u","type":"text","x":[1]}]}`:               `{"\u0072ole":"user","content":[{"text":"u","type":"text"}]}`,
	} {
		made := wiretest.Render(session.Anthropic, storedOf(session.Anthropic, []string{log}), wire.Options{})
		if len(made.Bodies) != 1 || string(made.Bodies[0]) != want {
			t.Errorf("%s becomes %s", log, made.Bodies)
		}
	}
}
