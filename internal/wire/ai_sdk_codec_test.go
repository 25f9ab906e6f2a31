package wire

import (
	"bytes"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

func TestDecodeAISDK(t *testing.T) {
	t.Parallel()
	testDecode(t, session.AISDK, []decodeCase{
		{"what the user says, with his files",
			`{"id":"m1","role":"user","metadata":{"a":1},"parts":[{"type":"text","text":"see","state":"done"},{"type":"file","mediaType":"image/png","url":"data:image/png;base64,AAAA","filename":"a.png","providerMetadata":{"openai":{"imageDetail":"low"}}},{"type":"file","mediaType":"image/*","url":"https://a.b/c"},{"type":"data-x","data":1}]}`, `
user "id":"m1","metadata":{"a":1}
  text "see"
  image type="image/png" data="AAAA" name="a.png" detail="low"
  image url="https://a.b/c"
  opaque {"type":"data-x","data":1}
`},
		{"each step is what is said, then the results of its tools",
			`{"id":"m2","role":"assistant","parts":[{"type":"step-start"},{"type":"reasoning","text":"hmm","providerMetadata":{"anthropic":{"signature":"s"}}},{"type":"tool-read-file","toolCallId":"c1","state":"output-available","input":{"a":1},"output":"four"},{"type":"dynamic-tool","toolName":"g h","toolCallId":"c2","state":"output-error","input":"ls","errorText":"boom"},{"type":"text","text":"beside"},{"type":"step-start"},{"type":"tool-f","toolCallId":"c3","state":"input-available","input":{},"callProviderMetadata":{"google":{"thoughtSignature":"sig"}}},{"type":"step-start"},{"type":"text","text":"done"}]}`, `
assistant "id":"m2"
  reasoning "hmm" {"anthropic":{"signature":"s"}}
  call c1 "read-file" {"a":1}
  call c2 "g h" "ls" custom
  text "beside"
tool
  result c1 "read-file"
    text "four"
  result c2 "g h" error
    text "boom"
assistant
  call c3 "f" {} "sig"
assistant
  text "done"
`},
		{"an output is a text, a list of pieces, or its JSON",
			`{"id":"m","role":"assistant","parts":[{"type":"tool-f","toolCallId":"a","state":"output-available","input":null,"output":{"type":"content","value":[{"type":"text","text":"x"},{"type":"media","mediaType":"image/png","data":"AAAA"},{"type":"file-url","url":"https://a"},{"type":"image-url","url":"https://b"},{"type":"y"}]}},{"type":"tool-f","toolCallId":"b","state":"output-available","input":{},"output":{"a":[1]}},{"type":"tool-f","toolCallId":"c","state":"output-available","input":{}},{"type":"tool-f","toolCallId":"d","state":"output-denied","input":{},"approval":{"id":"x","approved":false,"reason":"no"}},{"type":"tool-f","toolCallId":"e","state":"output-denied","input":{}}]}`, `
assistant "id":"m"
  call a "f" {}
  call b "f" {}
  call c "f" {}
  call d "f" {}
  call e "f" {}
tool
  result a "f"
    text "x"
    image type="image/png" data="AAAA"
    file url="https://a"
    image url="https://b"
    opaque {"type":"y"}
  result b "f"
    text "{\"a\":[1]}"
  result c "f"
  result d "f" error
    text "no"
  result e "f" error
    text "Tool execution denied."
`},
		{"a tool of the provider's is opaque, a system message is one",
			`{"id":"m","role":"assistant","parts":[{"type":"tool-s","toolCallId":"a","providerExecuted":true,"state":"output-available","output":"x"},{"type":"source-url","url":"u"}]}`, `
assistant "id":"m"
  opaque {"type":"tool-s","toolCallId":"a","providerExecuted":true,"state":"output-available","output":"x"}
  opaque {"type":"source-url","url":"u"}
`},
		{"a system message", `{"id":"m","role":"system","parts":[{"type":"text","text":"be"}]}`, `
system "id":"m"
  text "be"
`},
		{"a message of version 4", `{"id":"m","role":"assistant","content":"hi","toolInvocations":[{"state":"call"}],"createdAt":1}`, `
assistant "id":"m","createdAt":1
  text "hi"
  opaque {"state":"call"}
`},
		{"a message of version 4 with parts keeps its content", `{"id":"m","role":"data","content":"hi","parts":[]}`, `
other "data" "id":"m","content":"hi"
`},
	})
}

func TestEncodeAISDK(t *testing.T) {
	t.Parallel()
	signed := callOf("c1", "f", `{}`)
	signed.Signature = []byte(`"sig"`)
	testEncode(t, session.AISDK, []encodeCase{
		{"a turn of the assistant is one message, step by step",
			[]Message{
				{Role: User, Blocks: []Block{plainText("hi"), photo}},
				{Role: Assistant, Blocks: []Block{plainText("I look."), signed}},
				{Role: Assistant, Blocks: []Block{callOf("c2", "g h", `"free"`)}},
				{Role: Tool, Blocks: []Block{resultOf("c1", "f", plainText("one"))}},
				{Role: Tool, Blocks: []Block{failureOf("c2", "g h", plainText("boom"), photo)}},
				{Role: Assistant, Blocks: []Block{callOf("c3", "f", `{}`)}},
				{Role: Tool, Blocks: []Block{resultOf("c3", "f")}},
				{Role: Assistant, Blocks: []Block{plainText("done")}},
				{Role: User, Blocks: []Block{plainText("more")}},
				{Role: Assistant, Blocks: []Block{callOf("c4", "f", `{}`)}},
			}, `
{"id":"msg_5feceb66ffc86f38d952786c","role":"user","parts":[{"type":"text","text":"hi"},{"type":"file","mediaType":"image/png","url":"data:image/png;base64,AAAA","filename":"a.png"}]}
{"id":"msg_6b86b273ff34fce19d6b804e","role":"assistant","parts":[{"type":"step-start"},{"type":"text","text":"I look."},{"type":"tool-f","toolCallId":"c1","input":{},"state":"output-available","output":"one","callProviderMetadata":{"google":{"thoughtSignature":"sig"}}},{"type":"dynamic-tool","toolName":"g h","toolCallId":"c2","input":"free","state":"output-error","errorText":"boom\n[image a.png image/png: 4 bytes in base64]"},{"type":"step-start"},{"type":"tool-f","toolCallId":"c3","input":{},"state":"output-available","output":""},{"type":"step-start"},{"type":"text","text":"done"}]}
{"id":"msg_d4735e3a265e16eee03f5971","role":"user","parts":[{"type":"text","text":"more"}]}
{"id":"msg_4e07408562bedb8b60ce05c1","role":"assistant","parts":[{"type":"step-start"},{"type":"tool-f","toolCallId":"c4","input":{},"state":"input-available"}]}
`},
		{"a result of several pieces is a list",
			[]Message{{Role: Assistant, Blocks: []Block{callOf("a", "f", `{}`)}}, {Role: Tool, Blocks: []Block{resultOf("a", "f", plainText("one"), photo, Block{Kind: Image, Media: Media{URL: []byte(`"https://a"`)}})}}}, `
{"id":"msg_5feceb66ffc86f38d952786c","role":"assistant","parts":[{"type":"step-start"},{"type":"tool-f","toolCallId":"a","input":{},"state":"output-available","output":{"type":"content","value":[{"type":"text","text":"one"},{"type":"media","mediaType":"image/png","data":"AAAA","filename":"a.png"},{"type":"image-url","url":"https://a"}]}}]}
`},
		{"sealed reasoning is what its provider's package keeps",
			[]Message{{Role: Assistant, Blocks: []Block{
				{Kind: Reasoning, Format: session.Anthropic, Text: []byte(`"hmm"`), Signature: []byte(`"sig"`)},
				{Kind: Reasoning, Format: session.Anthropic, Raw: []byte(`{"data":"data"}`), Signature: []byte(`"data"`)},
				{Kind: Reasoning, Format: session.OpenAIResponses, Text: []byte(`"sum"`), Signature: []byte(`"enc"`)},
				{Kind: Reasoning, Format: session.Gemini, Text: []byte(`"t"`), Signature: []byte(`"sig"`)},
				{Kind: Reasoning, Format: session.OpenAIChat, Text: []byte(`"r"`)},
			}}}, `
{"id":"msg_5feceb66ffc86f38d952786c","role":"assistant","parts":[{"type":"step-start"},{"type":"reasoning","text":"hmm","providerMetadata":{"anthropic":{"signature":"sig"}}},{"type":"reasoning","text":"","providerMetadata":{"anthropic":{"redactedData":"data"}}},{"type":"reasoning","text":"sum","providerMetadata":{"openai":{"reasoningEncryptedContent":"enc"}}},{"type":"reasoning","text":"t","providerMetadata":{"google":{"thoughtSignature":"sig"}}},{"type":"reasoning","text":"r"}]}
`},
		{"images and files are URLs, or notes, and a name is a note", []Message{{Role: User, Name: []byte(`"ann"`), Blocks: []Block{
			{Kind: Image, Media: Media{URL: []byte(`"https://a.b/c"`), Detail: []byte(`"low"`)}},
			{Kind: File, Media: Media{Data: []byte(`"AAAA"`)}},
			{Kind: File, Media: Media{ID: []byte(`"file_1"`)}},
			{Kind: Opaque, Raw: []byte(`{"type":"x"}`)},
		}}, {Role: Other, Name: []byte(`"exit"`), Blocks: []Block{plainText("bye")}}, {Role: System, Blocks: []Block{plainText("be")}}}, `
{"id":"msg_5feceb66ffc86f38d952786c","role":"user","parts":[{"type":"text","text":"[From ann]"},{"type":"file","mediaType":"image/*","url":"https://a.b/c","providerMetadata":{"openai":{"imageDetail":"low"}}},{"type":"file","mediaType":"application/octet-stream","url":"data:application/octet-stream;base64,AAAA"},{"type":"text","text":"[file] file_1"},{"type":"text","text":"[opaque: {\"type\":\"x\"}]"}]}
{"id":"msg_6b86b273ff34fce19d6b804e","role":"user","parts":[{"type":"text","text":"[From exit]"},{"type":"text","text":"bye"}]}
{"id":"msg_d4735e3a265e16eee03f5971","role":"system","parts":[{"type":"text","text":"be"}]}
`},
		{"a result without its call has a part of its own", []Message{{Role: Tool, Blocks: []Block{resultOf("a", "f", plainText("x"))}}, {Role: User, Blocks: []Block{plainText("a"), resultOf("b", "f"), plainText("b")}}}, `
{"id":"msg_5feceb66ffc86f38d952786c","role":"assistant","parts":[{"type":"step-start"},{"type":"tool-f","toolCallId":"a","input":{},"state":"output-available","output":"x"}]}
{"id":"msg_6b86b273ff34fce19d6b804e","role":"user","parts":[{"type":"text","text":"a"}]}
{"id":"msg_d4735e3a265e16eee03f5971","role":"assistant","parts":[{"type":"step-start"},{"type":"tool-f","toolCallId":"b","input":{},"state":"output-available","output":""}]}
{"id":"msg_4e07408562bedb8b60ce05c1","role":"user","parts":[{"type":"text","text":"b"}]}
`},
	})
}

// edited decodes a message that a repair is about to change.
func edited(body string, change func(list []Message)) []Message {
	list := Decode(session.AISDK, []byte(body))
	for i := range list {
		list[i].Edited = true
	}
	change(list)
	return list
}

func TestUIMessagesThatARepairEditedKeepTheirPartsAndMembers(t *testing.T) {
	t.Parallel()
	body := `{"id":"m","role":"assistant","metadata":1,"parts":[{"type":"step-start"},{"type":"text","text":"a","x":1},{"type":"tool-f","toolCallId":"c1","title":"T","state":"output-available","input":{"a":1},"output":{"b":2},"preliminary":false},{"type":"tool-f","toolCallId":"c2","state":"approval-requested","input":{},"approval":{"id":"q"},"title":"U"}]}`
	same := `{"id":"m","metadata":1,"role":"assistant","parts":[{"type":"step-start"},{"type":"text","text":"a","x":1},{"type":"tool-f","toolCallId":"c1","title":"T","state":"output-available","input":{"a":1},"output":{"b":2},"preliminary":false},{"type":"tool-f","toolCallId":"c2","state":"approval-requested","input":{},"approval":{"id":"q"},"title":"U"}]}`
	for _, c := range []struct {
		name   string
		change func(list []Message)
		want   string
	}{
		{"nothing that is not edited changes", func([]Message) {}, same},
		{"an edited call keeps what its part has besides, and its result",
			func(list []Message) {
				list[0].Blocks[1].CallID, list[1].Blocks[0].CallID, list[0].Blocks[1].Edited = "c9", "c9", true
			}, `{"id":"m","metadata":1,"role":"assistant","parts":[{"type":"step-start"},{"type":"text","text":"a","x":1},{"type":"tool-f","toolCallId":"c9","input":{"a":1},"state":"output-available","output":{"b":2},"preliminary":false,"title":"T"},{"type":"tool-f","toolCallId":"c2","state":"approval-requested","input":{},"approval":{"id":"q"},"title":"U"}]}`},
		{"an edited result takes the place of the output",
			func(list []Message) {
				list[1].Blocks[0].Content, list[1].Blocks[0].Edited = []Block{plainText("short")}, true
			}, `{"id":"m","metadata":1,"role":"assistant","parts":[{"type":"step-start"},{"type":"text","text":"a","x":1},{"type":"tool-f","toolCallId":"c1","input":{"a":1},"state":"output-available","output":"short","title":"T"},{"type":"tool-f","toolCallId":"c2","state":"approval-requested","input":{},"approval":{"id":"q"},"title":"U"}]}`},
		{"a call that is edited stays as far as it was", func(list []Message) { list[0].Blocks[2].Edited = true }, `{"id":"m","metadata":1,"role":"assistant","parts":[{"type":"step-start"},{"type":"text","text":"a","x":1},{"type":"tool-f","toolCallId":"c1","title":"T","state":"output-available","input":{"a":1},"output":{"b":2},"preliminary":false},{"type":"tool-f","toolCallId":"c2","input":{},"state":"approval-requested","approval":{"id":"q"},"title":"U"}]}`},
		{"a call whose result is left out has none", func(list []Message) { list[1].Blocks = nil }, `{"id":"m","metadata":1,"role":"assistant","parts":[{"type":"step-start"},{"type":"text","text":"a","x":1},{"type":"tool-f","toolCallId":"c1","input":{"a":1},"state":"input-available","title":"T"},{"type":"tool-f","toolCallId":"c2","state":"approval-requested","input":{},"approval":{"id":"q"},"title":"U"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := encoded(t, session.AISDK, edited(body, c.change)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestAResultFromElsewhereGoesIntoTheMessageOfItsCall(t *testing.T) {
	t.Parallel()
	call := `{"id":"m1","role":"assistant","parts":[{"type":"tool-f","toolCallId":"a","state":"input-available","input":{}}]}`
	next := `{"id":"m2","role":"assistant","parts":[{"type":"text","text":"wait"}]}`
	list := Decode(session.AISDK, []byte(call))
	second := Decode(session.AISDK, []byte(next))
	second[0].Origin = 1
	list = append(append(list, second...), Message{Role: Tool, Blocks: []Block{resultOf("a", "f", plainText("x"))}})
	want := `{"id":"m1","role":"assistant","parts":[{"type":"step-start"},{"type":"tool-f","toolCallId":"a","input":{},"state":"output-available","output":"x"}]}
{"id":"m2","role":"assistant","parts":[{"type":"text","text":"wait"}]}`
	if got := encoded(t, session.AISDK, list); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAResultOfNoCallDoesNotChangeTheMessageBeforeIt(t *testing.T) {
	t.Parallel()
	body := `{"id":"m1","role":"assistant","parts":[{"type":"text","text":"a"}]}`
	list := append(Decode(session.AISDK, []byte(body)), Message{Role: Tool, Blocks: []Block{resultOf("a", "f", plainText("x"))}})
	got := Encode(session.AISDK, list)
	if len(got) != 2 || string(got[0]) != body || !bytes.Contains(got[1], []byte(`"output":"x"`)) {
		t.Errorf("got %s", got)
	}
}

func TestAMessageHasTheSameIDWheneverItIsRead(t *testing.T) {
	t.Parallel()
	said := Message{Format: session.Gemini, Raw: []byte(`{"x":1}`), Of: 1, Role: Assistant, Blocks: []Block{callOf("a", "f", `{}`)}}
	short := Encode(session.AISDK, []Message{said, said})
	long := Encode(session.AISDK, []Message{said, {Role: Tool, Blocks: []Block{resultOf("a", "f")}}, {Role: User}, said})
	id := func(body []byte) string { return string(member(body, "id").Of(body)) }
	if id(short[0]) != id(long[0]) {
		t.Errorf("%s became %s", id(short[0]), id(long[0]))
	}
	if id(long[0]) == id(long[2]) || bytes.Equal(long[0], long[2]) {
		t.Errorf("two messages have the id %s", id(long[0]))
	}
}
