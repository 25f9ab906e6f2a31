package wire

import (
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

func TestDecodeOpenAIResponses(t *testing.T) {
	t.Parallel()
	testDecode(t, session.OpenAIResponses, []decodeCase{
		{"a message of texts and a refusal", `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"a","annotations":[]},{"type":"refusal","refusal":"no"},{"type":"novel"}],"phase":"commentary"}`, `
assistant "id":"msg_1","status":"completed","phase":"commentary"
  text "a"
  text "no"
  opaque {"type":"novel"}
`},
		{"images and files", ` {"role":"user","content":[{"type":"input_text","text":"x"},{"type":"input_image","image_url":"data:image/png;base64,AAAA","detail":"high"},{"type":"input_image","file_id":"f1"},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,BBBB"},{"type":"input_file","file_url":"https://a.b"},{"type":"input_audio","input_audio":{"data":"CCCC","format":"wav"}}]} `, `
user
  text "x"
  image type="image/png" data="AAAA" detail="high"
  image id="f1"
  file type="application/pdf" data="BBBB" name="a.pdf"
  file url="https://a.b"
  file type="audio/wav" data="CCCC"
`},
		{"a content string", `{"role":"developer","content":"be"}`, `
system
  text "be"
`},
		{"reasoning", `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"content":[{"type":"reasoning_text","text":"c"}],"encrypted_content":"e"}`, `
assistant
  reasoning "a\nb\nc" "e"
`},
		{"reasoning that only its provider has", `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":null}`, `
assistant
  reasoning
`},
		{"a call of a function", `{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{\"a\":1}","status":"completed","namespace":"n"}`, `
assistant "id":"fc_1","status":"completed","namespace":"n"
  call c "f" {"a":1}
`},
		{"a call of a custom tool", `{"type":"custom_tool_call","call_id":"c","name":"f","input":"{}"}`, `
assistant
  call c "f" "{}" custom
`},
		{"a call of a shell", `{"type":"shell_call","id":"sh_1","call_id":"c","action":{"commands":["ls"]},"status":"completed"}`, `
assistant
  call c "shell" {"commands":["ls"]}
`},
		{"an output is a text", `{"type":"function_call_output","id":"o","call_id":"c","output":"x"}`, `
tool "id":"o"
  result c
    text "x"
`},
		{"or blocks", `{"type":"custom_tool_call_output","call_id":"c","output":[{"type":"input_text","text":"x"},{"type":"input_image","image_url":"https://a.b"}]}`, `
tool
  result c custom
    text "x"
    image url="https://a.b"
`},
		{"what a shell printed is its JSON", `{"type":"shell_call_output","call_id":"c","output":[{"stdout":"a","outcome":{"type":"exit","exit_code":1}}]}`, `
tool
  result c
    text "[{\"stdout\":\"a\",\"outcome\":{\"type\":\"exit\",\"exit_code\":1}}]"
`},
		{"a screenshot", `{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,AAAA"}}`, `
tool
  result c
    image type="image/png" data="AAAA"
`},
		{"a patch that failed", `{"type":"apply_patch_call_output","call_id":"c","status":"failed","output":"no"}`, `
tool
  result c error
    text "no"
`},
		{"what the provider ran", `{"type":"web_search_call","id":"ws_1"}`, `
assistant
  opaque {"type":"web_search_call","id":"ws_1"}
`},
		{"an approval is the user's", `{"type":"mcp_approval_response","approval_request_id":"r","approve":true}`, `
user
  opaque {"type":"mcp_approval_response","approval_request_id":"r","approve":true}
`},
		{"a reference", `{"id":"msg_1"}`, `
assistant
  opaque {"id":"msg_1"}
`},
		{"another role", `{"role":"exit","content":[7]}`, `
other "exit"
  opaque 7
`},
	})
}

func TestEncodeOpenAIResponses(t *testing.T) {
	t.Parallel()
	testEncode(t, session.OpenAIResponses, []encodeCase{
		{"what the assistant says is a message, its calls are items of their own", []Message{{Role: Assistant, Blocks: []Block{
			{Kind: Reasoning, Text: []byte(`"hm"`), Signature: []byte(`"s"`)}, plainText("I look."), callOf("c1", "f", `{"a":"\n"}`), callOf("c2", "g", `"free"`),
			{Kind: Call, CallID: "c3", Name: []byte(`"h"`), Value: []byte(`"in"`), Custom: true}, plainText("so"), photo,
		}}}, `
{"type":"message","role":"assistant","content":[{"type":"output_text","text":"[Reasoning] hm"},{"type":"output_text","text":"I look."}]}
{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":\"\\n\"}"}
{"type":"function_call","call_id":"c2","name":"g","arguments":"free"}
{"type":"custom_tool_call","call_id":"c3","name":"h","input":"in"}
{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so"},{"type":"output_text","text":"[image a.png image/png: 4 bytes in base64]"}]}
`},
		{"results hold texts, images and files", []Message{{Role: User, Blocks: []Block{
			resultOf("c1", "f", plainText("see"), photo), failureOf("c2", "g", plainText("boom")), resultOf("c3", "h"),
			{Kind: Result, CallID: "c4", Custom: true, Content: []Block{plainText("x")}, IsError: true}, plainText("go"),
		}}}, `
{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"see"},{"type":"input_text","text":"[image a.png]"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}
{"type":"function_call_output","call_id":"c2","output":"[Error] boom"}
{"type":"function_call_output","call_id":"c3","output":""}
{"type":"custom_tool_call_output","call_id":"c4","output":"[Error] x"}
{"type":"message","role":"user","content":"go"}
`},
		{"a refusal is one, a name is a note, nothing is an empty message", []Message{
			{Role: Assistant, Blocks: []Block{{Kind: Text, Text: []byte(`"no"`), Refusal: true}}},
			{Role: User, Name: []byte(`"ann"`), Blocks: []Block{plainText("hi")}}, {Role: User},
			{Role: System, Format: session.OpenAIChat, Raw: []byte(` {"role":"developer"}`), Blocks: []Block{plainText("be")}},
		}, `
{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}
{"type":"message","role":"user","content":[{"type":"input_text","text":"[From ann]"},{"type":"input_text","text":"hi"}]}
{"type":"message","role":"user","content":""}
{"type":"message","role":"developer","content":"be"}
`},
		{"images and files are blocks, or a note", []Message{{Role: User, Blocks: []Block{
			{Kind: Image, Media: Media{URL: []byte(`"https://a.b"`), Detail: []byte(`"high"`)}},
			{Kind: Image, Format: session.OpenAIResponses, Media: Media{ID: []byte(`"file_1"`)}},
			{Kind: Image, Format: session.Anthropic, Media: Media{ID: []byte(`"file_1"`)}},
			{Kind: File, Media: Media{Type: []byte(`"application/pdf"`), Data: []byte(`"AAAA"`)}},
			{Kind: File, Media: Media{URL: []byte(`"https://a.b"`), Name: []byte(`"a.pdf"`)}},
			{Kind: File, Format: session.OpenAIChat, Media: Media{ID: []byte(`"file_1"`)}},
			{Kind: File, Media: Media{Type: []byte(`"audio/wav"`), Data: []byte(`"AAAA"`)}},
			{Kind: Opaque, Raw: []byte(`{"type":"x"}`)},
		}}}, `
{"type":"message","role":"user","content":[{"type":"input_image","image_url":"https://a.b","detail":"high"},{"type":"input_image","file_id":"file_1"},{"type":"input_text","text":"[image] file_1"},{"type":"input_file","file_data":"data:application/pdf;base64,AAAA","filename":"file"},{"type":"input_file","file_url":"https://a.b","filename":"a.pdf"},{"type":"input_file","file_id":"file_1"},{"type":"input_text","text":"[file audio/wav: 4 bytes in base64]"},{"type":"input_text","text":"[opaque: {\"type\":\"x\"}]"}]}
`},
	})
}

func TestItemsThatARepairEditedKeepTheirBlocksAndMembers(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[]}],"phase":"x"}`: `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[]}],"id":"msg_1","phase":"x"}`,
		`{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}"}`:                               `{"type":"function_call","call_id":"d","name":"f","arguments":"{}","id":"fc_1"}`,
		`{"type":"custom_tool_call","call_id":"c","name":"f","input":"x","status":"completed"}`:                        `{"type":"custom_tool_call","call_id":"d","name":"f","input":"x","status":"completed"}`,
		`{"type":"custom_tool_call_output","call_id":"c","output":[{"type":"input_text","text":"a","y":1}],"x":1}`:     `{"type":"custom_tool_call_output","call_id":"d","output":[{"type":"input_text","text":"a","y":1}],"x":1}`,
		`{"type":"shell_call","id":"sh_1","call_id":"c","action":{"commands":["ls"]}}`:                                 `{"type":"function_call","call_id":"d","name":"shell","arguments":"{\"commands\":[\"ls\"]}"}`,
		`{"type":"local_shell_call_output","id":"c","output":"x"}`:                                                     `{"type":"function_call_output","call_id":"d","output":"x"}`,
		`{"type":"reasoning","id":"rs_1","summary":[]}`:                                                                `{"type":"reasoning","id":"rs_1","summary":[]}`,
		`{"type":"web_search_call","id":"ws_1"}`:                                                                       `{"type":"web_search_call","id":"ws_1"}`,
	} {
		list := Decode(session.OpenAIResponses, []byte(body))
		list[0].Edited = true
		if p := &list[0].Blocks[0]; p.Kind == Call || p.Kind == Result {
			p.CallID, p.Edited = "d", true
		}
		if got := encoded(t, session.OpenAIResponses, list); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestAnItemWhoseBytesARepairHasMendedKeepsThem(t *testing.T) {
	t.Parallel()
	list := Decode(session.OpenAIResponses, []byte(`{"type":"shell_call","call_id":"c","action":{}}`))
	p := &list[0].Blocks[0]
	p.CallID, p.Raw, list[0].Edited = "d", []byte(`{"type":"shell_call","call_id":"d","action":{}}`), true
	if got := encoded(t, session.OpenAIResponses, list); got != string(p.Raw) {
		t.Errorf("got %s", got)
	}
}
