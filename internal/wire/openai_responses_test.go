package wire

import (
	"errors"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

func TestInspectOpenAIResponses(t *testing.T) {
	t.Parallel()
	testInspect(t, session.OpenAIResponses, []inspectCase{
		{"a message need not say that it is one", `{"role":"user","content":"12345"}`, "user 6\n0 text 2 \"12345\""},
		{"content is blocks of either side", `{"type":"message","role":"assistant","id":"msg_1","content":[{"type":"output_text","text":"ab","annotations":[]},{"type":"refusal","refusal":"no"},{"type":"novel"}]}`, `assistant 11
0 text 1 "ab" in {"type":"output_text","text":"ab","annotations":[]}
1 text 1 "no" in {"type":"refusal","refusal":"no"}
2 opaque 5  in {"type":"novel"}`},
		{"images and files", `{"role":"user","content":[{"type":"input_image","image_url":"https://a.b","detail":"low"},{"type":"input_image","file_id":"file_1"},{"type":"input_file","file_id":"file_2"},{"type":"input_audio","input_audio":{}}]}`, `user 4589 image
0 image 85  in {"type":"input_image","image_url":"https://a.b","detail":"low"}
1 image 1500  in {"type":"input_image","file_id":"file_1"}
2 file 1500  in {"type":"input_file","file_id":"file_2"}
3 file 1500  in {"type":"input_audio","input_audio":{}}`},
		{"system and developer are pinned", `{"role":"developer","content":"be!!"}`, "developer 5 pinned\n0 text 1 \"be!!\""},
		{"an empty string is content, but no part", `{"role":"user","content":""}`, "user 4"},
		{"a call is the assistant's", `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"read","arguments":"{\"a\":1}"}`, `assistant 8
0 call 4 call_1 read "{\"a\":1}" in {"type":"function_call","id":"fc_1","call_id":"call_1","name":"read","arguments":"{\"a\":1}"}`},
		{"a custom tool takes free text", `{"type":"custom_tool_call","call_id":"c","name":"patch","input":"*** Begin"}`, `assistant 7
0 call 3 c patch "*** Begin" in {"type":"custom_tool_call","call_id":"c","name":"patch","input":"*** Begin"}`},
		{"a call of a built-in tool has its name from its type", `{"type":"shell_call","call_id":"c","action":{"commands":["ls"]}}`, `assistant 10
0 call 6 c shell {"commands":["ls"]} in {"type":"shell_call","call_id":"c","action":{"commands":["ls"]}}`},
		{"a computer may be asked several things", `{"type":"computer_call","call_id":"c","actions":[{"type":"screenshot"}]}`, `assistant 11
0 call 7 c computer [{"type":"screenshot"}] in {"type":"computer_call","call_id":"c","actions":[{"type":"screenshot"}]}`},
		{"an output answers a call and goes on with its unit", `{"type":"function_call_output","call_id":"c","output":"done"}`, `tool 5 continues
0 result 1 c "done" in {"type":"function_call_output","call_id":"c","output":"done"}`},
		{"an output of blocks", `{"type":"custom_tool_call_output","call_id":"c","output":[{"type":"input_text","text":"ab"},{"type":"input_image","image_url":"x","detail":"low"}]}`, `tool 90 continues image result-not-text
0 result 86 c [{"type":"input_text","text":"ab"},{"type":"input_image","image_url":"x","detail":"low"}] in {"type":"custom_tool_call_output","call_id":"c","output":[{"type":"input_text","text":"ab"},{"type":"input_image","image_url":"x","detail":"low"}]}`},
		{"of a shell's output the text can be replaced", `{"type":"shell_call_output","call_id":"c","output":[{"stdout":"a\n","stderr":"","outcome":{"type":"exit","exit_code":0}}]}`, `tool 25 continues result-not-text
0 result 21 c shell "a\n" in {"type":"shell_call_output","call_id":"c","output":[{"stdout":"a\n","stderr":"","outcome":{"type":"exit","exit_code":0}}]}`},
		{"of several commands nothing can", `{"type":"shell_call_output","call_id":"c","output":[{"stdout":"a"},{"stdout":"b"}]}`, `tool 15 continues result-not-text
0 result 11 c shell  in {"type":"shell_call_output","call_id":"c","output":[{"stdout":"a"},{"stdout":"b"}]}`},
		{"nor of a screenshot", `{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","file_id":"f"}}`, `tool 1504 continues image result-not-text
0 result 1500 c computer  in {"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","file_id":"f"}}`},
		{"a patch may fail", `{"type":"apply_patch_call_output","call_id":"c","status":"failed","output":"no"}`, `tool 5 continues
0 result 1 c apply_patch error "no" in {"type":"apply_patch_call_output","call_id":"c","status":"failed","output":"no"}`},
		{"a local shell's output has the id of its call in id", `{"type":"local_shell_call_output","id":"c","output":"x"}`, `tool 5 continues
0 result 1 c local_shell "x" in {"type":"local_shell_call_output","id":"c","output":"x"}`},
		{"reasoning counts as what is encrypted", `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"0123456789abcdef"}`, `assistant 7 reasoning
0 reasoning 3 "hm" in {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"0123456789abcdef"}`},
		{"or as its texts", `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"content":[{"type":"reasoning_text","text":"so"}]}`, `assistant 6 reasoning
0 reasoning 2 [{"type":"reasoning_text","text":"so"}] in {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"content":[{"type":"reasoning_text","text":"so"}]}`},
		{"tools that the provider runs are opaque", `{"type":"mcp_call","id":"m","name":"f","arguments":"{}"}`, `assistant 22
0 opaque 18  in {"type":"mcp_call","id":"m","name":"f","arguments":"{}"}`},
		{"a compaction counts as what is encrypted", `{"type":"compaction","id":"cmp_1","encrypted_content":"0123456789abcdef"}`, `assistant 7
0 opaque 3  in {"type":"compaction","id":"cmp_1","encrypted_content":"0123456789abcdef"}`},
		{"a reference has no type", `{"id":"msg_1"}`, `assistant 9
0 opaque 5  in {"id":"msg_1"}`},
		{"an approval is the user's, and goes on with the unit", `{"type":"mcp_approval_response","approve":true}`, `user 15 continues
0 opaque 11  in {"type":"mcp_approval_response","approve":true}`},
		{"an item may name its role", `{"type":"additional_tools","role":"developer","tools":[]}`, `developer 19 pinned
0 opaque 15  in {"type":"additional_tools","role":"developer","tools":[]}`},
	})
}

func TestInspectRefusesResponsesItemsThatCannotBePaired(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64<<10+1)
	for body, pointer := range map[string]string{
		`{"type":"message","content":"x"}`:                         "/role",
		`{"type":"additional_tools","role":"` + long + `"}`:        "/role",
		`{"type":"function_call","call_id":7}`:                     "/call_id",
		`{"type":"function_call_output","call_id":"` + long + `"}`: "/call_id",
		`{"type":"local_shell_call_output","id":{},"output":"x"}`:  "/id",
	} {
		_, err := Inspect(session.OpenAIResponses, []byte(body))
		var got *session.InvalidError
		if !errors.As(err, &got) || got.Problems[0].Pointer != pointer {
			t.Errorf("Inspect(%s) = %v", body, err)
		}
	}
}

func TestTheTextOfAResponsesOutputIsThatOfItsBlocks(t *testing.T) {
	t.Parallel()
	body := []byte(`{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"one"},{"type":"input_text","text":"two"}]}`)
	got := ResultText(session.OpenAIResponses, body, inspect(t, session.OpenAIResponses, string(body)).Parts[0])
	if string(got.Text) != "onetwo" || !got.OnlyText {
		t.Errorf("%q, only text: %t", got.Text, got.OnlyText)
	}
}

func TestOnlyTheArgumentsOfBuiltInToolsAreFixed(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		`{"type":"shell_call","call_id":"c","action":{}}`:                    true,
		`{"type":"apply_patch_call","call_id":"c","operation":{}}`:           true,
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`: false,
		`{"type":"custom_tool_call","call_id":"c","name":"f","input":"x"}`:   false,
	} {
		if got := inspect(t, session.OpenAIResponses, body).Parts[0].Fixed; got != want {
			t.Errorf("%s: fixed is %t", body, got)
		}
	}
}
