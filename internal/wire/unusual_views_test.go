package wire_test

import (
	"math/rand/v2"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// unusualMessages are messages of each format that programs seldom send, for TestEveryViewOfOddMessagesIsValid. Their
// calls share a few ids.
var unusualMessages = map[session.Format][]string{
	session.OpenAIChat: {
		`{"role":"developer","content":"be \n"}`,
		`{"role":"system","content":[{"type":"text","text":""}]}`,
		`{"role":"user","name":"ann","content":" "}`,
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://a.b/c.png","detail":"low"}},{"type":"file","file":{"file_id":"file_1"}}]}`,
		`{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"iVBORw0KGgo=","format":"wav"}},{"type":"odd","x":[1]}]}`,
		`{"role":"assistant","content":null,"reasoning_content":"hm \n"}`,
		`{"role":"assistant","content":"","reasoning_content":"hm","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`,
		`{"role":"assistant","content":"x ","refusal":"no "}`,
		`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`,
		`{"role":"function","name":"f","content":"r"}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"b","type":"custom","custom":{"name":"g","input":"free"}},{"id":"a","type":"function","function":{"name":"f","arguments":"[1]"}}]}`,
		`{"role":"tool","tool_call_id":"a","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}`,
		`{"role":"tool","tool_call_id":"b","content":""}`,
		`{"role":"assistant","content":[]}`,
	},
	session.OpenAIResponses: {
		`{"type":"message","role":"developer","content":[{"type":"input_text","text":"be"}]}`,
		`{"role":"user","content":[{"type":"input_image","file_id":"file_1"},{"type":"input_file","file_url":"https://a.b/c.pdf"}]}`,
		`{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"refusal","refusal":"no\t"}]}`,
		`{"type":"message","role":"assistant","content":[]}`,
		`{"type":"reasoning","id":"rs_1","summary":[]}`,
		`{"type":"reasoning","id":"rs_2","summary":[{"type":"summary_text","text":"hm "}],"encrypted_content":"e"}`,
		`{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`,
		`{"type":"custom_tool_call","call_id":"b","name":"g","input":"free "}`,
		`{"type":"function_call_output","call_id":"a","output":[{"type":"input_image","image_url":"https://a.b/c.png"}]}`,
		`{"type":"custom_tool_call_output","call_id":"b","output":"r"}`,
		`{"type":"local_shell_call","id":"ls","call_id":"c","action":{"command":["ls"]},"status":"completed"}`,
		`{"type":"local_shell_call_output","id":"c","output":"{}"}`,
		`{"type":"web_search_call","id":"ws_1","status":"completed"}`,
		`{"type":"item_reference","id":"x"}`,
		`{"type":"mcp_approval_response","approve":true,"approval_request_id":"m"}`,
		`{"type":"compaction","encrypted_content":"e"}`,
	},
	session.Anthropic: {
		`{"role":"system","content":"be"}`,
		`{"role":"user","content":[]}`,
		`{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"doc \n"},"title":"t"},{"type":"search_result","content":[]}]}`,
		`{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://a.b/c.png"},"cache_control":{"type":"ephemeral"}}]}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm ","signature":"s"}]}`,
		`{"role":"assistant","content":[{"type":"redacted_thinking","data":"d"},{"type":"tool_use","id":"a","name":"f","input":{}}]}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":""},{"type":"tool_use","id":"b","name":"g","input":[]},{"type":"text","text":"then "}]}`,
		`{"role":"assistant","content":[{"type":"server_tool_use","id":"srv","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"srv","content":[]}]}`,
		`{"role":"assistant","content":[{"type":"compaction","content":""}]}`,
		`{"role":"assistant","content":" \n"}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}`,
		`{"role":"user","content":[{"type":"text","text":"w"},{"type":"tool_result","tool_use_id":"b","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"iVBORw0KGgo="}}],"is_error":true}]}`,
	},
	session.Gemini: {
		`{"role":"system","parts":[{"text":"be"}]}`,
		`{"parts":[{"text":"w"},{"fileData":{"mimeType":"video/mp4","fileUri":"gs://a/b"}}]}`,
		`{"role":"user","parts":[{"inlineData":{"mimeType":"application/pdf","data":"AA"}}]}`,
		`{"role":"model","parts":[{"text":"hm ","thought":true}]}`,
		`{"role":"model","parts":[{"text":"","thoughtSignature":"c2ln"}]}`,
		`{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"f"}},{"text":"x "}]}`,
		`{"role":"model","parts":[{"functionCall":{"id":"a","name":"g","args":{}},"thoughtSignature":"c2ln"}]}`,
		`{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK"}}]}`,
		`{"role":"model","parts":[]}`,
		`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"r"}}},{"functionResponse":{"name":"f","response":{}}}]}`,
		`{"role":"function","parts":[{"functionResponse":{"id":"a","name":"g","response":{"error":"e"},"parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}]}}]}`,
	},
	session.AISDK: {
		`{"id":"1","role":"system","parts":[]}`,
		`{"id":"2","role":"user","parts":[{"type":"file","mediaType":"image/*","url":"https://a.b/c"},{"type":"data-x","data":1}]}`,
		`{"id":"3","role":"assistant","parts":[{"type":"reasoning","text":"hm "}]}`,
		`{"id":"4","role":"assistant","parts":[{"type":"reasoning","text":"","providerMetadata":{"openai":{"itemId":"rs"}}},{"type":"step-start"},{"type":"source-url","sourceId":"s","url":"u"}]}`,
		`{"id":"5","role":"assistant","parts":[{"type":"tool-f","toolCallId":"a","state":"input-streaming","input":{}},{"type":"text","text":"x "}]}`,
		`{"id":"6","role":"assistant","parts":[{"type":"dynamic-tool","toolName":"g","toolCallId":"b","state":"output-error","input":"free","errorText":"e "},{"type":"step-start"},{"type":"text","text":" "}]}`,
		`{"id":"7","role":"assistant","parts":[{"type":"tool-f","toolCallId":"a","state":"approval-requested","input":{},"approval":{"id":"p"}}]}`,
		`{"id":"8","role":"assistant","parts":[]}`,
		`{"id":"9","role":"user","content":"older "}`,
	},
}

// TestEveryViewOfOddMessagesIsValid renders a few messages of any kind in any order.
func TestEveryViewOfOddMessagesIsValid(t *testing.T) {
	t.Parallel()
	for seed := range 3 * *views {
		rng := rand.New(rand.NewPCG(uint64(seed), 19))
		view := unusualView(rng)
		checkViews(t, seed, view, rng)
		if t.Failed() {
			t.Fatal(show(view))
		}
	}
}

func unusualView(rng *rand.Rand) (view []wire.Stored) {
	formats := session.Formats()
	for f := formats[rng.IntN(len(formats))]; len(view) == 0 || rng.IntN(6) > 0; {
		if rng.IntN(4) == 0 {
			f = formats[rng.IntN(len(formats))]
		}
		list := unusualMessages[f]
		view = append(view, wire.Stored{Format: f, Body: []byte(list[rng.IntN(len(list))]), Seq: int64(len(view) + 1)})
	}
	return view
}
