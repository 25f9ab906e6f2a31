package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// otherValues take the place of each value of a message.
var otherValues = []string{`null`, `{}`, `[]`, `""`, `" "`, `0`, `true`, `"x"`, `[null]`, `[{}]`, `["x"]`, `{"x":1}`, `"\ud83d"`}

// mutatedLogs are conversations with one of nearly everything that a format has.
var mutatedLogs = map[session.Format][]string{
	session.OpenAIChat: {
		`{"role":"system","content":"s"}`,
		`{"role":"user","name":"eve","content":[{"type":"text","text":"u"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + tinyPicture + `","detail":"low"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0xLjQ="}},{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}}]}`,
		`{"role":"assistant","content":"so","refusal":null,"reasoning_content":"hm","reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"s","index":0}],"annotations":[{"type":"url_citation","url_citation":{"url":"https://a.b","title":"t","start_index":0,"end_index":1}}],"audio":null,"tool_calls":[{"id":"a","type":"function","index":0,"function":{"name":"f","arguments":"{\"x\":1}"},"extra_content":{"google":{"thought_signature":"s"}}},{"id":"b","type":"custom","custom":{"name":"g","input":"x"}}]}`,
		`{"role":"tool","tool_call_id":"a","name":"f","content":[{"type":"text","text":"r"}]}`, `{"role":"tool","tool_call_id":"b","content":"r"}`,
		`{"role":"assistant","content":null,"function_call":{"name":"h","arguments":"{}"}}`, `{"role":"function","name":"h","content":"r"}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"so"},{"type":"refusal","refusal":"no"}]}`, `{"role":"user","content":"u"}`,
	},
	session.OpenAIResponses: {
		`{"type":"message","role":"developer","content":[{"type":"input_text","text":"s"}]}`,
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"u"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,` + tinyPicture + `"},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0xLjQ="}]}`,
		`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"content":[{"type":"reasoning_text","text":"hm"}],"encrypted_content":"e","status":null}`,
		`{"type":"function_call","id":"fc_1","call_id":"a","name":"f","arguments":"{\"x\":1}","status":"completed"}`, `{"type":"custom_tool_call","id":"ctc_1","call_id":"b","name":"g","input":"x"}`,
		`{"type":"shell_call","id":"sh_1","call_id":"c","status":"completed","action":{"commands":["ls"],"timeout_ms":1,"max_output_length":2}}`,
		`{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"r"},{"type":"input_image","image_url":"data:image/png;base64,` + tinyPicture + `"}]}`, `{"type":"custom_tool_call_output","call_id":"b","output":"r"}`,
		`{"type":"shell_call_output","call_id":"c","output":[{"stdout":"r","stderr":"","outcome":{"type":"exit","exit_code":0}}],"max_output_length":2}`,
		`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q","sources":[{"type":"url","url":"https://a.b"}]}}`,
		`{"type":"message","id":"msg_1","role":"assistant","status":"completed","phase":"final_answer","content":[{"type":"output_text","text":"so","annotations":[{"type":"url_citation","url":"https://a.b","title":"t","start_index":0,"end_index":1}],"logprobs":[]},{"type":"refusal","refusal":"no"}]}`,
		`{"type":"tool_search_call","id":"tsc_1","call_id":"s","execution":"client","status":"completed","arguments":{"q":"x"}}`, `{"type":"tool_search_output","id":"tso_1","call_id":"s","execution":"client","status":"completed","tools":[{"type":"function","name":"f","parameters":{}}]}`,
		`{"type":"mcp_approval_request","id":"mcpr_1","name":"f","arguments":"{}","server_label":"s"}`, `{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true,"reason":"x"}`,
		`{"type":"mcp_call","id":"mcp_1","name":"f","arguments":"{}","server_label":"s","output":"r","error":null}`,
		`{"type":"computer_call","id":"cu_1","call_id":"d","status":"completed","pending_safety_checks":[],"action":{"type":"screenshot"}}`, `{"type":"computer_call_output","call_id":"d","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,` + tinyPicture + `"}}`,
		`{"role":"user","content":"u"}`,
	},
	session.Anthropic: {
		`{"role":"system","content":[{"type":"text","text":"s","cache_control":{"type":"ephemeral","ttl":"1h"}}]}`,
		`{"role":"user","content":[{"type":"text","text":"u","cache_control":{"type":"ephemeral"}},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + tinyPicture + `"}},{"type":"document","title":"t","context":"c","citations":{"enabled":true},"source":{"type":"text","media_type":"text/plain","data":"d"}},{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"x"}]}]}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"redacted_thinking","data":"d"},{"type":"text","text":"so","citations":[{"type":"char_location","cited_text":"x","document_index":0,"document_title":"t","start_char_index":0,"end_char_index":1}]},{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://a.b","title":"t","encrypted_content":"e","page_age":null}]},{"type":"tool_use","id":"a","name":"f","input":{"x":1}},{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"b","name":"g","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[{"type":"text","text":"r"}]},{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"r"},{"type":"image","source":{"type":"url","url":"https://a.b/c.png"}},{"type":"tool_reference","tool_name":"f"}]},{"type":"text","text":"u"}]}`,
		`{"role":"assistant","content":[{"type":"mcp_tool_use","id":"mcptoolu_1","name":"f","server_name":"s","input":{}},{"type":"mcp_tool_result","tool_use_id":"mcptoolu_1","is_error":false,"content":[{"type":"text","text":"r"}]},{"type":"compaction","content":"c"},{"type":"text","text":"so"}]}`,
		`{"role":"user","content":"u"}`,
	},
	session.Gemini: {
		`{"role":"system","parts":[{"text":"s"}]}`,
		`{"role":"user","parts":[{"text":"u"},{"inlineData":{"mimeType":"image/png","data":"` + tinyPicture + `","displayName":"n"}},{"fileData":{"mimeType":"application/pdf","fileUri":"https://a.b/c.pdf"},"videoMetadata":{"fps":1}}]}`,
		`{"role":"model","parts":[{"text":"hm","thought":true},{"text":"so","thoughtSignature":"s"},{"functionCall":{"id":"a","name":"f","args":{"x":1}},"thoughtSignature":"s"},{"functionCall":{"name":"g","args":{}}}]}`,
		`{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":"r"},"parts":[{"inlineData":{"mimeType":"image/png","data":"` + tinyPicture + `"}}]}},{"functionResponse":{"name":"g","response":{"error":"r"}}}]}`,
		`{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}},{"text":"so"}]}`,
		`{"role":"user","parts":[{"text":"u"}]}`,
	},
	session.AISDK: {
		`{"id":"0","role":"system","parts":[{"type":"text","text":"s"}]}`,
		`{"id":"1","role":"user","metadata":{"a":1},"parts":[{"type":"text","text":"u","state":"done"},{"type":"file","mediaType":"image/png","filename":"n","url":"data:image/png;base64,` + tinyPicture + `"},{"type":"data-x","id":"i","data":{"a":1}}]}`,
		`{"id":"2","role":"assistant","parts":[{"type":"step-start"},{"type":"reasoning","text":"hm","state":"done","providerMetadata":{"anthropic":{"signature":"s"},"openai":{"itemId":"rs_1","reasoningEncryptedContent":"e"}}},{"type":"text","text":"so","providerMetadata":{"google":{"thoughtSignature":"s"}}},{"type":"tool-f","toolCallId":"a","state":"output-available","input":{"x":1},"output":{"type":"content","value":[{"type":"text","text":"r"},{"type":"media","mediaType":"image/png","data":"` + tinyPicture + `"}]},"callProviderMetadata":{"google":{"thoughtSignature":"s"}}},{"type":"dynamic-tool","toolName":"g h","toolCallId":"b","state":"output-error","input":{},"errorText":"r"},{"type":"step-start"},{"type":"tool-web_search","toolCallId":"c","providerExecuted":true,"state":"output-available","input":{"query":"q"},"output":[{"type":"web_search_result","url":"https://a.b","title":"t","encryptedContent":"e","pageAge":null}]},{"type":"source-url","sourceId":"s","url":"https://a.b","title":"t"},{"type":"source-document","sourceId":"s","mediaType":"text/plain","title":"t"},{"type":"file","mediaType":"image/png","url":"https://a.b/c.png"},{"type":"text","text":"so"}]}`,
		`{"id":"3","role":"user","parts":[{"type":"text","text":"u"}]}`,
		`{"role":"assistant","content":[{"type":"reasoning","text":"hm","providerOptions":{"anthropic":{"signature":"s"}}},{"type":"text","text":"so"},{"type":"tool-call","toolCallId":"d","toolName":"f","input":{"x":1}},{"type":"tool-approval-request","approvalId":"p","toolCallId":"d"}]}`,
		`{"role":"tool","content":[{"type":"tool-approval-response","approvalId":"p","approved":true},{"type":"tool-result","toolCallId":"d","toolName":"f","output":{"type":"content","value":[{"type":"text","text":"r"},` + found + `]}}]}`,
		`{"role":"user","content":[{"type":"text","text":"u"},{"type":"image","image":"` + tinyPicture + `","mediaType":"image/png"}]}`,
	},
}

// tinyPicture is a PNG of one pixel.
const tinyPicture = `iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==`

// valuesIn returns where the values of a message are, and its members from the comma or the brace before them.
func valuesIn(body []byte) (values, members []rawjson.Span) {
	var walk func(at rawjson.Span)
	walk = func(at rawjson.Span) {
		values = append(values, at)
		switch body[at.Start] {
		case '{':
			for key, value := range rawjson.Members(body, at.Start) {
				members = append(members, rawjson.Span{Start: key.Start, End: value.End})
				walk(value)
			}
		case '[':
			for element := range rawjson.Elements(body, at.Start) {
				walk(element)
			}
		}
	}
	walk(rawjson.Span{End: len(body)})
	return values, members
}

// mutantsOf returns the message with every value replaced by each other value, and without every member.
func mutantsOf(body []byte) (list [][]byte) {
	values, members := valuesIn(body)
	for _, at := range values {
		for _, with := range otherValues {
			list = append(list, wire.Replace(nil, body, []wire.Edit{{Span: at, With: []byte(with)}}))
		}
	}
	for _, at := range members {
		if body[at.End] == ',' {
			at.End++
		} else if body[at.Start-1] == ',' {
			at.Start--
		}
		list = append(list, wire.Replace(nil, body, []wire.Edit{{Span: at}}))
	}
	return list
}

var askedOf = map[session.Format][]string{
	session.OpenAIChat:      {"", "gpt-5.6", "mistral-large-latest", "groq/openai/gpt-oss-120b", "deepseek-v4-pro", "kimi-k3", "vllm/qwen3-32b", "openrouter/x/y", "gemini-3.5-flash", "ollama/llama"},
	session.OpenAIResponses: {"", "gpt-5.6"}, session.Anthropic: {"", "claude-opus-5-5", "claude-opus-4-5", "us.anthropic.claude-opus-4-6-v1", "kimi-k3", "deepseek-v4-pro"},
	session.Gemini: {"", "gemini-2.5-pro", "gemini-3.5-flash"}, session.AISDK: {"", "claude-opus-5-5", "claude-opus-4-5", "gpt-5.6", "gemini-3.5-flash", "mistral-large-latest"},
}

// TestEveryValueMayBeAnother replaces each value of each message by every other kind of value, and leaves each member
// out. What an append takes of that has a valid view in every format, and the fast validator lets nothing through that
// is repaired.
func TestEveryValueMayBeAnother(t *testing.T) {
	t.Parallel()
	skip := 3 // which of the models are asked: every third
	if testing.Short() {
		skip = 29
	}
	for f, log := range mutatedLogs {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			views := 0
			for i := range log {
				for _, mutant := range mutantsOf([]byte(log[i])) {
					if !json.Valid(mutant) {
						t.Fatalf("no JSON: %s", mutant)
					}
					if _, err := wire.Accept(f, mutant); err != nil {
						continue
					}
					mutated := storedOf(f, slices.Concat(log[:i], []string{string(mutant)}, log[i+1:]))
					for target, models := range askedOf {
						for _, model := range models {
							if views++; views%skip == 0 {
								checkMutated(t, target, mutated, wire.Options{Model: model}, mutant)
							}
						}
					}
				}
			}
		})
	}
}

func checkMutated(t *testing.T, target session.Format, view []wire.Stored, o wire.Options, mutant []byte) {
	t.Helper()
	what := fmt.Sprintf("as %s for %q: %s", target, o.Model, mutant)
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%v %s", p, what)
		}
	}()
	made := wiretest.Render(target, view, o)
	for _, broken := range wiretest.Validate(target, made.Bodies, o) {
		t.Errorf("%+v %s", broken, what)
	}
	if f := view[0].Format; f == target && validated(f, view, 0).ValidFor(o) && len(made.Repairs) > 0 {
		t.Errorf("the fast validator takes what is repaired (%v) %s", made.Repairs, what)
	}
	if joined := bytes.Join(made.Bodies, []byte("\n")); strings.Contains(string(joined), `\ud83d"`) && !bytes.Contains(mutant, []byte(`\\ud83d`)) {
		t.Errorf("half of a pair %s", what)
	}
}
