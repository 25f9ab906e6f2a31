package wire

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/varve-dev/varve/internal/session"
)

// said is what the tests compare of a block: Raw and Format are held by the round trips.
var said = cmpopts.IgnoreFields(Block{}, "Raw", "Format", "pair", "number", "origin", "loose", "waits", "executed")

func TestDecodeAnthropic(t *testing.T) {
	t.Parallel()
	lit := func(text string) []byte { return []byte(`"` + text + `"`) }
	for _, c := range []struct {
		name, body string
		role       Role
		want       []Block
	}{
		{"a string", `{"role":"user","content":"a\u0000\ud800"}`, User, []Block{{Kind: Text, Text: lit(`a\u0000\ud800`)}}},
		{"no content", `{"role":"assistant","content":""}`, Assistant, nil},
		{"a turn", `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"redacted_thinking","data":"d"},{"type":"text","text":"x","citations":[]},{"type":"tool_use","id":"a","name":"f","input":{"p":1}}]}`, Assistant,
			[]Block{{Kind: Reasoning, Text: lit("hm"), Signature: lit("s")}, {Kind: Reasoning, Signature: lit("d")}, {Kind: Text, Text: lit("x")}, {Kind: Call, CallID: "a", Name: lit("f"), Value: []byte(`{"p":1}`)}}},
		{"thinking that is kept back", `{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"}]}`, Assistant, []Block{{Kind: Reasoning, Signature: lit("s")}}},
		{"a call without input", `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f"}]}`, Assistant, []Block{{Kind: Call, CallID: "a", Name: lit("f"), Value: []byte(`{}`)}}},
		{"a call whose only parameter is called input", `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"input":"x"}}]}`, Assistant, []Block{{Kind: Call, CallID: "a", Name: lit("f"), Value: []byte(`{"input":"x"}`)}}},
		{"nothing but results", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"},{"type":"tool_result","tool_use_id":"b","is_error":true}]}`, Tool,
			[]Block{{Kind: Result, CallID: "a", Content: []Block{{Kind: Text, Text: lit("r")}}}, {Kind: Result, CallID: "b", IsError: true}}},
		{"a result and words", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"r"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}},7]},{"type":"text","text":"x"}]}`, User,
			[]Block{{Kind: Result, CallID: "a", Content: []Block{{Kind: Text, Text: lit("r")}, {Kind: Image, Media: Media{Type: lit("image/png"), Data: lit("AA==")}}, {Kind: Opaque, Edited: true}}}, {Kind: Text, Text: lit("x")}}},
		{"media", `{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://e.x/i"}},{"type":"image","source":{"type":"url","url":"data:image/png;base64,AA=="}},{"type":"image","source":{"type":"file","file_id":"f1"}},{"type":"document","title":"t","source":{"type":"text","media_type":"text/plain","data":"d"}},{"type":"document","source":{"type":"content","content":"c"}}]}`, User,
			[]Block{{Kind: Image, Media: Media{URL: lit("https://e.x/i")}}, {Kind: Image, Media: Media{Type: lit("image/png"), Data: lit("AA==")}}, {Kind: Image, Media: Media{ID: lit("f1")}}, {Kind: File, Media: Media{Type: lit("text/plain"), Text: lit("d"), Name: lit("t")}}, {Kind: Opaque}}},
		{"what only Anthropic knows", `{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s","content":[]},{"type":"compaction","content":"c"},"x"]}`, Assistant,
			[]Block{{Kind: Opaque}, {Kind: Opaque}, {Kind: Opaque}, {Kind: Text, Text: lit("x"), Edited: true}}},
		{"content of another kind", `{"role":"user","content":{"a":1}}`, User, []Block{{Kind: Opaque, Edited: true}}},
		{"a system message", `{"role":"system","content":"s"}`, System, []Block{{Kind: Text, Text: lit("s")}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			list := Decode(session.Anthropic, []byte(c.body))
			if len(list) != 1 || list[0].Role != c.role {
				t.Fatalf("decoded to %+v", list)
			}
			if diff := cmp.Diff(c.want, list[0].Blocks, said); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestARoleThatAnthropicDoesNotKnowIsKept(t *testing.T) {
	t.Parallel()
	list := Decode(session.Anthropic, []byte(`{"role":"exit","content":"x","more":{"a":1},"again":2}`))
	list[0].Edited = true
	if got, want := string(Encode(session.Anthropic, list)[0]), `{"role":"exit","content":"x","more":{"a":1},"again":2}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestEncodeAnthropic(t *testing.T) {
	t.Parallel()
	lit := func(text string) []byte { return []byte(`"` + text + `"`) }
	text := Block{Kind: Text, Text: lit("x")}
	png := Media{Type: lit("image/png"), Data: lit("AA==")}
	for _, c := range []struct {
		name string
		n    Message
		want string
	}{
		{"a single text is a string", Message{Blocks: []Block{text}}, `{"role":"user","content":"x"}`},
		{"a speaker's name", Message{Name: lit("Ann"), Blocks: []Block{text}}, `{"role":"user","content":[{"type":"text","text":"[From Ann]"},{"type":"text","text":"x"}]}`},
		{"members of another format's message", Message{Format: session.OpenAIChat, Extra: []byte(`"audio":null`), Blocks: []Block{text}}, `{"role":"user","content":"x"}`},
		{"a text of nothing", Message{Role: Assistant, Blocks: []Block{{Kind: Text, Text: lit("")}, text, text}}, `{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"text","text":"x"}]}`},
		{"calls", Message{Role: Assistant, Blocks: []Block{{Kind: Call, CallID: "a", Name: lit("f"), Value: []byte(`{"p":1}`)}, {Kind: Call, CallID: "b", Value: nil}}},
			`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"p":1}},{"type":"tool_use","id":"b","name":"unknown_9d0fd45228","input":{}}]}`},
		{"arguments that are no object", Message{Role: Assistant, Blocks: []Block{{Kind: Call, CallID: "a", Name: lit("f"), Value: lit("patch"), Custom: true}}},
			`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"input":"patch"}}]}`},
		{"results", Message{Role: Tool, Blocks: []Block{{Kind: Result, CallID: "a", Content: []Block{text}, IsError: true}, {Kind: Result, CallID: "b", Content: []Block{text, {Kind: Image, Media: png}}}, {Kind: Result, CallID: "c"}}},
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x","is_error":true},{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"x"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]},{"type":"tool_result","tool_use_id":"c"}]}`},
		{"another provider's reasoning", Message{Format: session.OpenAIResponses, Role: Assistant, Blocks: []Block{{Kind: Reasoning, Format: session.OpenAIResponses, Raw: []byte(`{}`), Text: lit("hm")}, {Kind: Reasoning, Format: session.OpenAIResponses, Raw: []byte(`{}`), Signature: lit("abc")}}},
			`{"role":"assistant","content":[{"type":"text","text":"[Reasoning] hm"}]}`},
		{"media", Message{Blocks: []Block{{Kind: Image, Media: png}, {Kind: Image, Media: Media{URL: lit("https://e.x/i")}}, {Kind: File, Media: Media{Type: lit("application/pdf"), Data: lit("AA=="), Name: lit("a.pdf")}}, {Kind: File, Media: Media{Text: lit("d")}}}},
			`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}},{"type":"image","source":{"type":"url","url":"https://e.x/i"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AA=="},"title":"a.pdf"},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"}}]}`},
		{"media that the API does not take", Message{Blocks: []Block{{Kind: Image, Media: Media{Type: lit("image/tiff"), Data: lit("AA==")}}, {Kind: File, Media: Media{ID: lit("file-1")}}}},
			`{"role":"user","content":[{"type":"text","text":"[image image/tiff: 4 bytes in base64]"},{"type":"text","text":"[file] file-1"}]}`},
		{"an image of the assistant's", Message{Role: Assistant, Blocks: []Block{{Kind: Image, Media: png}}}, `{"role":"assistant","content":[{"type":"text","text":"[image image/png: 4 bytes in base64]"}]}`},
		{"what another provider knows", Message{Role: Assistant, Blocks: []Block{{Kind: Opaque, Format: session.Gemini, Raw: []byte(`{"executableCode":{}}`)}}}, `{"role":"assistant","content":[{"type":"text","text":"[opaque: {\"executableCode\":{}}]"}]}`},
		{"a system message", Message{Role: System, Blocks: []Block{text}}, `{"role":"system","content":"x"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := Encode(session.Anthropic, []Message{c.n})
			if len(got) != 1 || string(got[0]) != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestAnEditedMessageKeepsTheBlocksThatAreNotEdited(t *testing.T) {
	t.Parallel()
	list := Decode(session.Anthropic, []byte(`{"role":"user", "id":"m1", "content":[ {"type":"text","text":"x","cache_control":{"type":"ephemeral"}}, {"type":"search_result","q": 1}, {"type":"text","text":"y"} ]}`))
	list[0].Edited = true
	list[0].Blocks[2].Text, list[0].Blocks[2].Edited = []byte(`"z"`), true
	want := `{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},{"type":"search_result","q": 1},{"type":"text","text":"z"}],"id":"m1"}`
	if got := string(Encode(session.Anthropic, list)[0]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestWhatAnotherFormatSaysIsTheSameAfterASecondImportFromAnthropic(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}`,
		`{"role":"assistant","content":"Let me see.","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"p\":[1,\"\\u00e9\"]}"}}]}`,
		`{"role":"tool","tool_call_id":"a","content":"r\u0000"}`,
	} {
		first := Decode(session.OpenAIChat, []byte(body))
		again := Decode(session.Anthropic, Encode(session.Anthropic, first)[0])
		if again[0].Role != first[0].Role {
			t.Errorf("%s: role %v became %v", body, first[0].Role, again[0].Role)
		}
		if diff := cmp.Diff(first[0].Blocks, again[0].Blocks, said, cmpopts.IgnoreFields(Media{}, "Detail")); diff != "" {
			t.Errorf("%s: (-first +again):\n%s", body, diff)
		}
	}
}

func FuzzDecodeAnthropic(f *testing.F) {
	fuzzDecode(f, session.Anthropic,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[{"type":"text","text":"a\u0000\ud800"},{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"AA"}},7]},{"type":"tool_result","content":{}}]}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"},{"type":"redacted_thinking","data":7},{"type":"tool_use","id":"\u0000","name":"n","input":[1]},{"type":"compaction","content":""}],"x":1,"x":2}`,
		`{"role":"user","content":[{"type":"document","title":"t","source":{"type":"text","data":"d"}},{"type":"document","source":{"type":"url","url":"http"}},{"type":"image","source":{"type":"file","file_id":"f"}},[]]}`,
		`{"role":"\u0065xit","content":{"type":"text","text":"x"}}`,
		` {"content":"","role":"developer"} `,
		`{"role":"user","content":[{"type":"text","text":" "},{"type":"text","text":7},{"type":0}]}`,
	)
}

// anthropicConversation returns a conversation of about a megabyte.
func anthropicConversation() (bodies [][]byte) {
	for i := range 330 {
		bodies = append(bodies,
			fmt.Appendf(nil, `{"role":"assistant","content":[{"type":"thinking","thinking":"I should read file %d.","signature":"c2lnbmF0dXJl"},{"type":"text","text":"Let me look."},{"type":"tool_use","id":"toolu_%d","name":"read_file","input":{"path":"a/%d.go","offset":1}}]}`, i, i, i),
			fmt.Appendf(nil, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","is_error":false,"content":[{"type":"text","text":"%s"}]}]}`, i, listing))
	}
	return bodies
}

// The types of a client that decodes messages by the book.
type (
	bookMessage struct {
		Role    string      `json:"role"`
		Content []bookBlock `json:"content"`
	}
	bookBlock struct {
		Type      string          `json:"type"`
		Text      string          `json:"text,omitempty"`
		Thinking  string          `json:"thinking,omitempty"`
		Signature string          `json:"signature,omitempty"`
		ID        string          `json:"id,omitempty"`
		Name      string          `json:"name,omitempty"`
		Input     json.RawMessage `json:"input,omitempty"`
		ToolUseID string          `json:"tool_use_id,omitempty"`
		IsError   bool            `json:"is_error,omitempty"`
		Content   []bookBlock     `json:"content,omitempty"`
	}
)

func BenchmarkDecodeAnthropic(b *testing.B) {
	benchmarkDecode[bookMessage](b, session.Anthropic, anthropicConversation())
}

func BenchmarkEncodeAnthropic(b *testing.B) {
	benchmarkEncode[bookMessage](b, session.Anthropic, anthropicConversation())
}
