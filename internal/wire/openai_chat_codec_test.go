package wire

import (
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

func TestDecodeOpenAIChat(t *testing.T) {
	t.Parallel()
	testDecode(t, session.OpenAIChat, []decodeCase{
		{"a content string, a name, and what nobody knows", `{"role":"user","content":"a\ud800","name":"ann","audio":{"id":1}, "x" : [1]}`, `
user "ann" "audio":{"id":1},"x":[1]
  text "a\ud800"
`},
		{"blocks", `{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"data:image\/png;base64,AAAA","detail":"low"}},{"type":"image_url","image_url":{"url":"https://a.b"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,BBBB"}},{"type":"file","file":{"file_id":"file_1"}},{"type":"input_audio","input_audio":{"data":"CCCC","format":"mp3"}},{"type":"novel"},7]}`, `
user
  text "x"
  image type="image/png" data="AAAA" detail="low"
  image url="https://a.b"
  file type="application/pdf" data="BBBB" name="a.pdf"
  file id="file_1"
  file type="audio/mpeg" data="CCCC"
  opaque {"type":"novel"}
  opaque 7
`},
		{"what the assistant thinks, says, refuses and calls", `{"role":"assistant","content":"c","refusal":"no","reasoning_content":"hm","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":" {\"x\":\"\\u00e9\"} "}},{"id":"b","type":"custom","custom":{"name":"g","input":"{}"}},7]}`, `
assistant
  reasoning "hm"
  text "c"
  text "no"
  call a "f" {"x":"\u00e9"}
  call b "g" "{}" custom
  opaque 7
`},
		{"arguments that are no object stay as they are written, and nothing is no arguments", `{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":""}},{"id":"b","function":{"name":"f","arguments":"[{}]"}},{"id":"c","function":{"name":"f","arguments":"{\"x\":"}},{"id":"d","function":{"name":"f","arguments":"null"}},{"id":"e","function":{"name":"f","arguments":{"x":1}}},{"id":"f","function":{"name":"f"}},{"id":"g","function":{"arguments":"{\"x\":\"\ud800\"}"}}]}`, `
assistant
  call a "f" {}
  call b "f" "[{}]"
  call c "f" "{\"x\":"
  call d "f" "null"
  call e "f" {"x":1}
  call f "f" {}
  call g "{\"x\":\"\ud800\"}"
`},
		{"a legacy call and its result go by their name", `{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`, `
assistant
  call function:f "f" {}
`},
		{"a legacy result", `{"role":"function","name":"f","content":"r"}`, `
tool
  result function:f "f"
    text "r"
`},
		{"a result is a text, or blocks, or whatever there is", `{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":"https://a.b"}],"extra":{}}`, `
tool "extra":{}
  result a
    text "x"
    image url="https://a.b"
`},
		{"a result that is an object", `{"role":"tool","content":{"x":1}}`, `
tool
  result
    opaque {"x":1}
`},
		{"another role", `{"role":"exit","content":""}`, `
other "exit"
`},
		{"a developer is the system", ` {"role":"developer","content":null} `, `
system
`},
	})
}

func TestEncodeOpenAIChat(t *testing.T) {
	t.Parallel()
	testEncode(t, session.OpenAIChat, []encodeCase{
		{"what the assistant thinks, says and calls is one message", []Message{{Role: Assistant, Blocks: []Block{
			{Kind: Reasoning, Text: []byte(`"hm"`), Signature: []byte(`"s"`)}, {Kind: Reasoning, Signature: []byte(`"data"`)},
			plainText("I look."), callOf("c1", "f", `{"a":"\n"}`), callOf("c2", "g", `"free"`),
			{Kind: Call, CallID: "c3", Name: []byte(`"h"`), Value: []byte(`"in"`), Custom: true}, {Kind: Call, CallID: "c4"},
		}}}, `
{"role":"assistant","content":"I look.","reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":\"\\n\"}"}},{"id":"c2","type":"function","function":{"name":"g","arguments":"free"}},{"id":"c3","type":"custom","custom":{"name":"h","input":"in"}},{"id":"c4","type":"function","function":{"name":"unknown_9d0fd45228","arguments":"{}"}}]}
`},
		{"the assistant has content, calls or a refusal", []Message{
			{Role: Assistant}, {Role: Assistant, Blocks: []Block{callOf("c", "f", `{}`)}},
			{Role: Assistant, Blocks: []Block{{Kind: Text, Text: []byte(`"no"`), Refusal: true}}},
			{Role: Assistant, Blocks: []Block{photo}},
		}, `
{"role":"assistant","content":""}
{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}
{"role":"assistant","content":null,"refusal":"no"}
{"role":"assistant","content":[{"type":"text","text":"[image a.png image/png: 4 bytes in base64]"}]}
`},
		{"images of results stand behind all results of the turn, and what the user says behind them", []Message{
			{Role: User, Blocks: []Block{resultOf("c1", "f", plainText("see"), photo), failureOf("c2", "g", plainText("boom")), plainText("go"), plainText("on")}},
		}, `
{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"see"},{"type":"text","text":"[image: it stands behind the results]"}]}
{"role":"tool","tool_call_id":"c2","content":"[Error] boom"}
{"role":"user","content":[{"type":"text","text":"[image of the result of call c1]"},{"type":"text","text":"[image a.png]"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}
{"role":"user","content":[{"type":"text","text":"go"},{"type":"text","text":"on"}]}
`},
		{"images wait for the results of messages that nobody touched", append(
			[]Message{{Role: Tool, Blocks: []Block{resultOf("c1", "f", photo)}}},
			Decode(session.OpenAIChat, []byte(`{"role":"tool","tool_call_id":"c2","content":"x", "y":1}`))...,
		), `
{"role":"tool","tool_call_id":"c1","content":"[image: it stands behind the results]"}
{"role":"tool","tool_call_id":"c2","content":"x", "y":1}
{"role":"user","content":[{"type":"text","text":"[image of the result of call c1]"},{"type":"text","text":"[image a.png]"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}
`},
		{"an empty result, and one that failed without a word", []Message{{Role: Tool, Blocks: []Block{resultOf("c1", "f"), failureOf("c2", "g")}}}, `
{"role":"tool","tool_call_id":"c1","content":""}
{"role":"tool","tool_call_id":"c2","content":"[Error]"}
`},
		{"images and files are blocks, or a note", []Message{{Role: User, Name: []byte(`"ann"`), Blocks: []Block{
			{Kind: Image, Media: Media{URL: []byte(`"https://a.b"`), Detail: []byte(`"high"`)}},
			{Kind: Image, Media: Media{ID: []byte(`"file_1"`)}},
			{Kind: File, Media: Media{Type: []byte(`"application/pdf"`), Data: []byte(`"AAAA"`)}},
			{Kind: File, Format: session.OpenAIResponses, Media: Media{ID: []byte(`"file_1"`), Name: []byte(`"a.pdf"`)}},
			{Kind: File, Format: session.Anthropic, Media: Media{ID: []byte(`"file_1"`)}},
			{Kind: File, Media: Media{Type: []byte(`"audio/wav"`), Data: []byte(`"AAAA"`)}},
			{Kind: File, Media: Media{Type: []byte(`"audio/ogg"`), Data: []byte(`"AAAA"`)}},
			{Kind: File, Media: Media{Text: []byte(`"words"`), Name: []byte(`"a.txt"`)}},
			{Kind: Opaque, Raw: []byte(`{"type":"x"}`)},
		}}}, `
{"role":"user","name":"ann","content":[{"type":"image_url","image_url":{"url":"https://a.b","detail":"high"}},{"type":"text","text":"[image] file_1"},{"type":"file","file":{"filename":"file","file_data":"data:application/pdf;base64,AAAA"}},{"type":"file","file":{"filename":"a.pdf","file_id":"file_1"}},{"type":"text","text":"[file] file_1"},{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}},{"type":"text","text":"[file audio/ogg: 4 bytes in base64]"},{"type":"text","text":"[file a.txt]\nwords"},{"type":"text","text":"[opaque: {\"type\":\"x\"}]"}]}
`},
		{"the system says nothing but texts", []Message{{Role: System, Blocks: []Block{plainText("be"), photo}}}, `
{"role":"system","content":[{"type":"text","text":"be"},{"type":"text","text":"[image a.png image/png: 4 bytes in base64]"}]}
`},
	})
}

func TestChatMessagesThatARepairEditedKeepTheirBlocksAndMembers(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"x":1,"role":"developer","name":"n","content":[{"type":"text","text":"a","y":2}]}`:                       `{"role":"developer","name":"n","content":[{"type":"text","text":"a","y":2}],"x":1}`,
		`{"role":"assistant","refusal":"no","content":[{"type":"refusal","refusal":"r"},{"type":"novel"}]}`:        `{"role":"assistant","content":[{"type":"refusal","refusal":"r"},{"type":"novel"}],"refusal":"no"}`,
		`{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"index":0,"id":"a"}]}`:         `{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"index":0,"id":"a"}]}`,
		`{"role":"assistant","content":"c","function_call":{"name":"f","arguments":"{ }"}}`:                        `{"role":"assistant","content":"c","function_call":{"name":"f","arguments":"{ }"}}`,
		`{"role":"function","name":"f","content":"r","x":1}`:                                                       `{"role":"function","name":"f","content":"r","x":1}`,
		`{"role":"tool","tool_call_id":"a","name":"f","content":[{"type":"text","text":"r","y":2}],"x":1}`:         `{"role":"tool","tool_call_id":"a","name":"f","content":[{"type":"text","text":"r","y":2}],"x":1}`,
		`{"content":"r","role":"function"}`:                                                                        `{"role":"function","name":"","content":"r"}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"function:f","custom":{"name":"f","input":"x"}}]}`: `{"role":"assistant","content":null,"tool_calls":[{"id":"function:f","custom":{"name":"f","input":"x"}}]}`,
		`{"role":"exit","content":"bye"}`:                                                                          `{"role":"exit","content":"bye"}`,
	} {
		list := Decode(session.OpenAIChat, []byte(body))
		list[0].Edited = true
		if got := encoded(t, session.OpenAIChat, list); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestACallWithAnotherIdKeepsItsMembers(t *testing.T) {
	t.Parallel()
	list := Decode(session.OpenAIChat, []byte(`{"role":"assistant","content":null,"tool_calls":[{"id":"a","extra_content":{"google":{"thought_signature":"s"}},"type":"function","function":{"name":"f","arguments":"{}"}}]}`))
	list[0].Blocks[0].CallID, list[0].Blocks[0].Edited, list[0].Edited = "b", true, true
	want := `{"role":"assistant","content":null,"tool_calls":[{"id":"b","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"s"}}}]}`
	if got := encoded(t, session.OpenAIChat, list); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
