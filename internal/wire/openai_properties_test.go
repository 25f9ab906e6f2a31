package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
)

func FuzzDecodeOpenAIChat(f *testing.F) {
	fuzzDecode(f, session.OpenAIChat,
		`{"role":"user","name":"n","content":[{"type":"text","text":"a\u0000\ud800"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA","detail":1}},{"type":"file","file":{"file_data":"data:;base64,"}},{"type":"input_audio","input_audio":{"format":"mp3"}},7]}`,
		`{"role":"assistant","content":null,"refusal":"r","reasoning_content":"t","tool_calls":[{"id":"a","function":{"name":"f","arguments":" {\"a\":[{}]}"}},{"id":"b","custom":{"input":{}}},[]],"x":1,"x":2}`,
		`{"role":"assistant","function_call":{"name":"f","arguments":"{\"a\":\"\\ud800\"}"}}`,
		`{"role":"tool","tool_call_id":"\u0000","name":"f","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":"u"},{"type":"file"}]}`,
		`{"role":"function","name":"f","content":{}}`,
		`{"role":"developer","content":[]}`,
		` {"role":"\u0065xit","content":7} `,
	)
}

func FuzzDecodeOpenAIResponses(f *testing.F) {
	fuzzDecode(f, session.OpenAIResponses,
		`{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,AA","detail":"low"},{"type":"input_file","file_data":"x","filename":7},{"type":"input_audio","input_audio":[]},7]}`,
		`{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"r"}],"phase":"x"}`,
		`{"type":"reasoning","id":"r","summary":[{"text":"a"},7],"content":[{"text":"b"}],"encrypted_content":"e"}`,
		`{"type":"function_call","id":"f","call_id":"c","name":"n","arguments":"{\"a\":1}"}`,
		`{"type":"custom_tool_call","call_id":"c","input":{}}`,
		`{"type":"computer_call","call_id":"c","actions":[{}]}`,
		`{"type":"shell_call_output","call_id":"c","output":[{"stdout":"s"}]}`,
		`{"type":"computer_call_output","output":{"type":"computer_screenshot","image_url":"u"}}`,
		`{"type":"local_shell_call_output","id":"c","output":7}`,
		`{"type":"function_call_output","call_id":"\ud800","output":[{"type":"input_image","file_id":"f"},{"type":"input_text","text":"x"},{}]}`,
		`{"type":"mcp_approval_response","approve":true}`,
		`{"id":"i","type":null}`,
		`{"type":"additional_tools","role":"developer"}`,
	)
}

// responsesItems returns the items of recorded requests and responses.
func responsesItems(t *testing.T, folder string) (items [][]byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "openai-responses", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		var recorded struct {
			Output  []json.RawMessage
			Request struct {
				Body struct{ Input []json.RawMessage }
			}
			Response struct {
				Body struct{ Output []json.RawMessage }
			}
		}
		data, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, &recorded)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, list := range [][]json.RawMessage{recorded.Output, recorded.Request.Body.Input, recorded.Response.Body.Output} {
			for _, item := range list {
				items = append(items, item)
			}
		}
	}
	return items
}

func TestRecordedOpenAIMessagesCanBeSaidInEveryFormat(t *testing.T) {
	t.Parallel()
	folder := corpus()
	if folder == "" {
		t.Log("no recorded conversations: set VARVE_DATA to a folder of them")
		return
	}
	recorded := map[session.Format][][]byte{session.OpenAIResponses: responsesItems(t, folder)}
	for _, bodies := range conversations(t, filepath.Join(folder, "openai-chat")) {
		recorded[session.OpenAIChat] = append(recorded[session.OpenAIChat], bodies...)
	}
	for f, bodies := range recorded {
		kinds := map[string]int{}
		for _, body := range bodies {
			m := inspect(t, f, string(body))
			checkMessage(t, f, body, m)
			for _, p := range m.Parts {
				kinds[p.Kind.String()]++
			}
			list := Decode(f, body)
			if same := Encode(f, list); len(same) != 1 || !bytes.Equal(same[0], body) {
				t.Fatalf("%.200s came back as %.200s", body, same)
			}
			for _, target := range session.Formats() {
				checkEncoded(t, target, list)
			}
		}
		t.Logf("%s: %d messages, %v", f, len(bodies), kinds)
		if kinds["text"] == 0 || kinds["call"] == 0 || kinds["result"] == 0 {
			t.Errorf("%s: the recordings hold no calls and results", f)
		}
	}
}

// TestWhatOpenAIFormatsBothSayIsTheSameThereAndBack takes messages of each format to the other and back.
func TestWhatOpenAIFormatsBothSayIsTheSameThereAndBack(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"role":"developer","content":"be"}`,
		`{"role":"user","content":[{"type":"text","text":"a\ud800"},{"type":"image_url","image_url":{"url":"https://a.b","detail":"low"}}]}`,
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,BBBB"}}]}`,
		`{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_id":"file_1"}},{"type":"text","text":"x"}]}`,
		`{"role":"assistant","content":null,"refusal":"no"}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":"}}]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"custom","custom":{"name":"f","input":"x"}}]}`,
		`{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
		`{"role":"tool","tool_call_id":"c","content":""}`,
	} {
		items := Encode(session.OpenAIResponses, Decode(session.OpenAIChat, []byte(body)))
		var back []Message
		for _, item := range items {
			back = append(back, Decode(session.OpenAIResponses, item)...)
		}
		if got := encoded(t, session.OpenAIChat, back); got != body {
			t.Errorf("%s\ncame back as\n%s\nfrom\n%s", body, got, bytes.Join(items, []byte("\n")))
		}
	}
}

// chatConversation returns a conversation of about a megabyte.
func chatConversation() (bodies [][]byte) {
	file := strings.Repeat(`func main() {\n\tfmt.Println(\"héllo\")\n}\n`, 60)
	for i := range 330 {
		bodies = append(bodies,
			fmt.Appendf(nil, `{"role":"assistant","content":"Let me look at file %d.","tool_calls":[{"id":"call_%d","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"a/%d.go\",\"offset\":1}"}}]}`, i, i, i),
			fmt.Appendf(nil, `{"role":"tool","tool_call_id":"call_%d","content":"%s"}`, i, file))
	}
	return bodies
}

// itemConversation returns the same conversation as Responses items.
func itemConversation() (bodies [][]byte) {
	for _, body := range chatConversation() {
		bodies = append(bodies, Encode(session.OpenAIResponses, Decode(session.OpenAIChat, body))...)
	}
	return bodies
}

// The types of a client that decodes messages and items by the book.
type (
	plainMessage struct {
		Role       string      `json:"role"`
		Content    string      `json:"content"`
		ToolCallID string      `json:"tool_call_id,omitempty"`
		ToolCalls  []plainCall `json:"tool_calls,omitempty"`
	}
	plainCall struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	}
	plainItem struct {
		Type      string `json:"type"`
		Role      string `json:"role,omitempty"`
		Content   string `json:"content,omitempty"`
		CallID    string `json:"call_id,omitempty"`
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments,omitempty"`
		Output    string `json:"output,omitempty"`
	}
)

func BenchmarkDecodeOpenAI(b *testing.B) {
	benchmarkDecode[plainMessage](b, session.OpenAIChat, chatConversation())
	benchmarkDecode[plainItem](b, session.OpenAIResponses, itemConversation())
}

func benchmarkDecode[T any](b *testing.B, f session.Format, bodies [][]byte) {
	size := int64(len(bytes.Join(bodies, nil)))
	b.Run(string(f)+"/wire", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			for _, body := range bodies {
				Decode(f, body)
			}
		}
	})
	b.Run(string(f)+"/encoding-json", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			for _, body := range bodies {
				var m T
				if err := json.Unmarshal(body, &m); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// BenchmarkEncodeOpenAI writes every block anew, as for a view in another format than the session's.
func BenchmarkEncodeOpenAI(b *testing.B) {
	benchmarkEncode[plainMessage](b, session.OpenAIChat, chatConversation())
	benchmarkEncode[plainItem](b, session.OpenAIResponses, itemConversation())
}

func benchmarkEncode[T any](b *testing.B, f session.Format, bodies [][]byte) {
	size := int64(len(bytes.Join(bodies, nil)))
	var list []Message
	messages := make([]T, len(bodies))
	for i, body := range bodies {
		decoded := Decode(f, body)
		for j := range decoded {
			decoded[j].Raw, decoded[j].Format = nil, ""
			clearFormat(decoded[j].Blocks)
		}
		list = append(list, decoded...)
		if err := json.Unmarshal(body, &messages[i]); err != nil {
			b.Fatal(err)
		}
	}
	b.Run(string(f)+"/wire", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			Encode(f, list)
		}
	})
	b.Run(string(f)+"/encoding-json", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			for i := range messages {
				if _, err := json.Marshal(&messages[i]); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

func TestBenchmarksOfOpenAIWriteWhatTheyRead(t *testing.T) {
	t.Parallel()
	for f, bodies := range map[session.Format][][]byte{session.OpenAIChat: chatConversation()[:2], session.OpenAIResponses: itemConversation()[:3]} {
		for _, body := range bodies {
			list := Decode(f, body)
			list[0].Raw = nil
			clearFormat(list[0].Blocks)
			if diff := cmp.Diff(string(body), encoded(t, f, list)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	}
}

// clearFormat makes blocks those of no format, so that every one of them has to be written anew.
func clearFormat(blocks []Block) {
	for i := range blocks {
		blocks[i].Format = ""
		clearFormat(blocks[i].Content)
	}
}
