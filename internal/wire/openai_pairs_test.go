package wire

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
)

// viewOf returns a view of messages that are all of one format.
func viewOf(f session.Format, bodies ...string) (view []Stored) {
	for i, body := range bodies {
		view = append(view, Stored{Format: f, Body: []byte(body), Seq: int64(i + 1)})
	}
	return view
}

// A function_call has no id in its message: the one that pairs it is made of the function's name, however long that is.
func TestALegacyCallKeepsItsFormHoweverLongItsName(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("long_", 12)
	view := viewOf(session.OpenAIChat,
		`{"role":"user","content":"go on"}`,
		`{"role":"assistant","content":null,"function_call":{"name":"`+name+`","arguments":"{}"}}`,
		`{"role":"function","name":"`+name+`","content":"y"}`)
	got := rendered(session.OpenAIChat, view, Options{})
	for i, body := range got.Bodies {
		if !bytes.Equal(body, view[i].Body) {
			t.Errorf("message %d is %s, want %s", i, body, view[i].Body)
		}
	}
	if len(got.Bodies) != len(view) || len(got.Repairs) > 0 {
		t.Errorf("%d messages with the repairs %v, want %d without any", len(got.Bodies), got.Repairs, len(view))
	}
}

func TestEveryCallOfOpenAIHasAResultOfItsForm(t *testing.T) {
	t.Parallel()
	const (
		chat, responses = session.OpenAIChat, session.OpenAIResponses
		goOn            = `{"role":"user","content":"go on"}`
		custom          = `{"type":"custom_tool_call","id":"ctc_1","call_id":"c","name":"patch","input":"x"}`
		shell           = `{"type":"shell_call","id":"sh_1","call_id":"c","action":{"commands":["ls"]}}`
		legacy          = `{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`
		lost            = `[Error] [The result of this tool call is lost: the call was interrupted, or its result is not stored.]`
	)
	for _, c := range []struct {
		name   string
		target session.Format
		view   []Stored
		want   string
	}{
		{"a custom tool's call that was never answered", responses, viewOf(responses, custom, goOn),
			custom + `
{"type":"custom_tool_call_output","call_id":"c","output":"` + lost + `"}
` + goOn},
		{"a shell's call that was never answered is one of a function", responses, viewOf(responses, shell, goOn),
			`{"type":"function_call","call_id":"c","name":"shell","arguments":"{\"commands\":[\"ls\"]}"}
{"type":"function_call_output","call_id":"c","output":"` + lost + `"}
` + goOn},
		{"a shell's call and its output stay", responses, viewOf(responses, shell, `{"type":"shell_call_output","call_id":"c","output":[]}`),
			shell + `
{"type":"shell_call_output","call_id":"c","output":[]}`},
		{"the output of a function for a custom tool's call", responses, viewOf(responses, custom, `{"type":"function_call_output","id":"fco_1","call_id":"c","output":"y"}`),
			custom + `
{"type":"custom_tool_call_output","call_id":"c","output":"y"}`},
		{"the output of a shell for a function's call", responses, viewOf(responses, `{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`, `{"type":"local_shell_call_output","id":"c","output":"y"}`),
			`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}
{"type":"function_call_output","call_id":"c","output":"y"}`},
		{"a custom tool's call in chat", responses, viewOf(chat, `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"custom","custom":{"name":"patch","input":"x"}}]}`, `{"role":"tool","tool_call_id":"c","content":"y"}`),
			`{"type":"custom_tool_call","call_id":"c","name":"patch","input":"x"}
{"type":"custom_tool_call_output","call_id":"c","output":"y"}`},
		{"a legacy call and its result stay", chat, viewOf(chat, legacy, `{"role":"function","name":"f","content":"y"}`),
			legacy + `
{"role":"function","name":"f","content":"y"}`},
		{"a legacy call that was never answered is an ordinary one", chat, viewOf(chat, legacy, goOn),
			`{"role":"assistant","content":null,"tool_calls":[{"id":"function:f","type":"function","function":{"name":"f","arguments":"{}"}}]}
{"role":"tool","tool_call_id":"function:f","content":"` + lost + `"}
` + goOn},
		{"a legacy result of an ordinary call is an ordinary one", chat,
			viewOf(chat, `{"role":"assistant","content":null,"tool_calls":[{"id":"function:f","type":"function","function":{"name":"f","arguments":"{}"}}]}`, `{"role":"function","name":"f","content":"y"}`),
			`{"role":"assistant","content":null,"tool_calls":[{"id":"function:f","type":"function","function":{"name":"f","arguments":"{}"}}]}
{"role":"tool","tool_call_id":"function:f","name":"f","content":"y"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			made := rendered(c.target, c.view, Options{})
			for _, body := range made.Bodies {
				got = append(got, string(body))
			}
			if diff := cmp.Diff(c.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again := rendered(c.target, viewOf(c.target, got...), Options{}); len(again.Repairs) > 0 {
				t.Errorf("what was rendered is repaired again: %+v", again.Repairs)
			}
		})
	}
}

// pools are messages of every form, with ids that repeat.
var pools = map[session.Format][]string{
	session.OpenAIChat: {
		`{"role":"developer","content":"be"}`,
		`{"role":"user","name":"ann","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"https://a.b"}},{"type":"novel"}]}`,
		`{"role":"assistant","content":"","refusal":"no","reasoning_content":"hm"}`,
		`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`,
		`{"role":"function","name":"f","content":"y"}`,
		`{"role":"assistant","content":"c","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"b","type":"custom","custom":{"name":"g","input":"z"}}]}`,
		`{"role":"tool","tool_call_id":"a","content":"y"}`,
		`{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"y"},{"type":"image_url","image_url":{"url":"https://a.b"}}]}`,
		`{"role":"exit","content":"bye"}`,
	},
	session.OpenAIResponses: {
		`{"role":"developer","content":"be"}`,
		`{"role":"user","content":[{"type":"input_text","text":"see"},{"type":"input_image","file_id":"f"},{"type":"novel"}]}`,
		`{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"so","annotations":[]},{"type":"refusal","refusal":"no"}]}`,
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}`,
		`{"type":"reasoning","id":"rs_2","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"e"}`,
		`{"type":"function_call","id":"fc_1","call_id":"a","name":"f","arguments":"{\"x\":1}"}`,
		`{"type":"function_call_output","call_id":"a","output":"y"}`,
		`{"type":"custom_tool_call","call_id":"b","name":"g","input":"z"}`,
		`{"type":"custom_tool_call_output","call_id":"b","output":[{"type":"input_text","text":"y"},{"type":"input_image","image_url":"https://a.b"}]}`,
		`{"type":"shell_call","id":"sh_1","call_id":"c","action":{"commands":["ls"]}}`,
		`{"type":"shell_call_output","call_id":"c","output":[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}]}`,
		`{"type":"local_shell_call_output","id":"c","output":"y"}`,
		`{"type":"computer_call","call_id":"d","action":{"type":"screenshot"}}`,
		`{"type":"computer_call_output","call_id":"d","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,iVBORw0KGgo="}}`,
		`{"type":"apply_patch_call","call_id":"a","operation":{"type":"delete_file","path":"x"},"status":"completed"}`,
		`{"type":"apply_patch_call_output","call_id":"a","status":"failed","output":"no"}`,
		`{"type":"web_search_call","id":"ws_1","status":"completed"}`,
		`{"type":"mcp_approval_request","id":"mcpr_1","name":"f","arguments":"{}"}`,
		`{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}`,
		`{"type":"compaction","id":"cmp_1","encrypted_content":"e"}`,
	},
}

// TestEveryOrderOfOpenAIMessagesIsRenderedValid takes messages of every form in any order.
func TestEveryOrderOfOpenAIMessagesIsRenderedValid(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var view []Stored
		for range 1 + rng.IntN(14) {
			f := []session.Format{session.OpenAIChat, session.OpenAIResponses, session.OpenAIResponses}[rng.IntN(3)]
			view = append(view, Stored{Format: f, Body: []byte(pools[f][rng.IntN(len(pools[f]))]), Seq: int64(len(view) + 1)})
		}
		o := Options{Pending: []Pending{KeepPending, SynthesizePending, DropPending}[rng.IntN(3)]}
		for _, target := range session.Formats() {
			made := rendered(target, view, o)
			found := validated(target, made.Bodies, o)
			var again []Stored
			for i, body := range made.Bodies {
				again = append(again, Stored{Format: target, Body: body, Seq: int64(i + 1)})
			}
			repairs := rendered(target, again, o).Repairs
			if _, ok := CompactionIn(target, again, o); ok { // in a view of a view more may be before it that is not needed
				repairs = nil
			}
			if len(found)+len(repairs) > 0 || !formsMatch(target, made.Bodies) {
				t.Fatalf("seed %d, %s: %v, repaired again: %v\n%s", seed, target, found, repairs, bytes.Join(made.Bodies, []byte("\n")))
			}
		}
	}
}

// formsMatch reports whether all results of a list are of the form of their calls.
func formsMatch(f session.Format, bodies [][]byte) bool {
	forms := map[string]string{}
	r := &repairer{target: f}
	for _, body := range bodies {
		for _, n := range Decode(f, body) {
			for i := range n.Blocks {
				switch p := &n.Blocks[i]; {
				case !fromOpenAI(f):
				case p.Kind == Call:
					forms[p.CallID] = r.formOf(&n, p)
				case p.Kind == Result && forms[p.CallID] != r.formOf(&n, p):
					return false
				}
			}
		}
	}
	return true
}
