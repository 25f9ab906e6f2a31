package wire_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// returned are messages as more libraries hand them out, what a view has of them, and the kinds of its repairs.
var returned = []struct {
	name    string
	format  session.Format
	dialect string
	log     []string
	want    []string // what differs from the log, by number; "" for what does not
	kinds   []string
}{
	{"a whole answer of Anthropic with thinking and a call", session.Anthropic, "", []string{`{"role":"user","content":"u"}`,
		`{"id":"msg_01","type":"message","role":"assistant","model":"claude-sonnet-4-5","container":null,"context_management":null,"content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"toolu_1","name":"f","input":{},"caller":{"type":"direct"}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1}}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"r"}]}`},
		[]string{"", `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"toolu_1","name":"f","input":{},"caller":{"type":"direct"}}]}`, ""}, []string{"member_dropped"}},
	{"a stream of Anthropic that was interrupted in a call", session.Anthropic, "", []string{`{"role":"user","content":"u"}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":"","partial_json":"{\"pa"}]}`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"r"}]}`},
		[]string{"", `{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]}`, ""}, []string{"member_dropped", "input_as_object"}},
	{"vLLM", session.OpenAIChat, "vllm", []string{`{"role":"user","content":"u"}`,
		`{"role":"assistant","content":"a","refusal":null,"annotations":null,"audio":null,"function_call":null,"tool_calls":[],"reasoning_content":null}`, `{"role":"user","content":"on"}`},
		[]string{"", `{"role":"assistant","content":"a"}`, ""}, []string{"member_dropped", "members_dropped"}},
	{"Writer", session.OpenAIChat, "", []string{`{"role":"user","content":"u"}`, `{"content":"a","role":"assistant","refusal":null,"tool_calls":[],"graph_data":null,"llm_data":null,"image_data":null}`},
		[]string{"", `{"content":"a","role":"assistant","refusal":null}`}, []string{"member_dropped"}},
	{"DeepSeek", session.OpenAIChat, "deepseek", []string{`{"role":"user","content":"u"}`,
		`{"role":"assistant","content":"","reasoning_content":"hm","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]}`, `{"role":"tool","tool_call_id":"call_1","content":"r"}`},
		[]string{"", `{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]}`, ""}, []string{"member_dropped", "input_as_object"}},
	{"Mistral", session.OpenAIChat, "mistral", []string{`{"role":"user","content":"u"}`,
		`{"role":"assistant","content":"","prefix":false,"tool_calls":[{"id":"aB3456789","type":"function","index":0,"function":{"name":"f","arguments":"{}"}}]}`, `{"role":"tool","tool_call_id":"aB3456789","name":"f","content":"r"}`},
		[]string{"", `{"role":"assistant","content":"","prefix":false,"tool_calls":[{"id":"aB3456789","type":"function","function":{"name":"f","arguments":"{}"}}]}`, ""}, []string{"member_dropped"}},
	{"a parsed answer of Chat Completions", session.OpenAIChat, "openai", []string{`{"role":"user","content":"u"}`,
		`{"role":"assistant","content":"{}","refusal":null,"annotations":[],"parsed":{"a":1},"tool_calls":[]}`},
		[]string{"", `{"role":"assistant","content":"{}","refusal":null}`}, []string{"member_dropped"}},
	{"parsed items of a Response", session.OpenAIResponses, "", []string{`{"role":"user","content":"u"}`,
		`{"id":"fc_1","arguments":"{}","call_id":"call_1","name":"f","type":"function_call","status":"completed","parsed_arguments":{"a":1}}`, `{"type":"function_call_output","call_id":"call_1","output":"r"}`,
		`{"id":"msg_1","content":[{"annotations":[],"text":"{}","type":"output_text","logprobs":[],"parsed":{"a":1}}],"role":"assistant","status":"completed","type":"message","phase":null,"metadata":{"a":"b"}}`},
		[]string{"", `{"id":"fc_1","arguments":"{}","call_id":"call_1","name":"f","type":"function_call","status":"completed"}`, "",
			`{"id":"msg_1","content":[{"annotations":[],"text":"{}","type":"output_text","logprobs":[]}],"role":"assistant","status":"completed","type":"message","phase":null}`}, []string{"member_dropped", "member_dropped"}},
	{"items of the Agents SDK with one constant as id", session.OpenAIResponses, "", []string{`{"role":"user","content":"u"}`,
		`{"id":"__fake_id__","arguments":"{}","call_id":"call_1","name":"f","type":"function_call","status":"completed"}`, `{"type":"function_call_output","call_id":"call_1","output":"r"}`,
		`{"id":"__fake_id__","content":[{"annotations":[],"text":"a","type":"output_text"}],"role":"assistant","status":"completed","type":"message"}`},
		[]string{"", `{"arguments":"{}","call_id":"call_1","name":"f","type":"function_call","status":"completed"}`, "",
			`{"content":[{"annotations":[],"text":"a","type":"output_text"}],"role":"assistant","status":"completed","type":"message"}`}, []string{"item_id_dropped", "item_id_dropped"}},
	{"google-genai for Python", session.Gemini, "", []string{`{"role":"user","parts":[{"text":"u"}]}`,
		`{"parts":[{"media_resolution":null,"code_execution_result":null,"executable_code":null,"file_data":null,"function_call":{"id":null,"args":{"x":1},"name":"f","partial_args":null,"will_continue":null},"function_response":null,"inline_data":null,"text":null,"thought":null,"thought_signature":"c2ln","video_metadata":null}],"role":"model"}`,
		`{"role":"user","parts":[{"function_response":{"name":"f","response":{"result":"r"}}}]}`}, []string{"", "", ""}, nil},
	{"a candidate with a signature", session.Gemini, "", []string{`{"role":"user","parts":[{"text":"u"}]}`, `{"parts":[{"text":"a","thoughtSignature":"c2ln"}],"role":"model"}`, `{"role":"user","parts":[{"text":"on"}]}`}, []string{"", "", ""}, nil},
	{"a UIMessage", session.AISDK, "", []string{`{"id":"u1","role":"user","parts":[{"type":"text","text":"u"}]}`,
		`{"id":"a1","role":"assistant","metadata":{"usage":{"totalTokens":9}},"parts":[{"type":"step-start"},{"type":"text","text":"a","state":"done","providerMetadata":{"openai":{"itemId":"msg_1"}}},{"type":"tool-f","toolCallId":"call_1","state":"output-available","input":{},"output":"r","callProviderMetadata":{"openai":{"itemId":"fc_1"}},"extra":{"raw":"much"}},{"type":"data-note","id":"d","data":{"a":1}}]}`},
		[]string{"", `{"id":"a1","role":"assistant","metadata":{"usage":{"totalTokens":9}},"parts":[{"type":"step-start"},{"type":"text","text":"a","state":"done","providerMetadata":{"openai":{"itemId":"msg_1"}}},{"type":"tool-f","toolCallId":"call_1","state":"output-available","input":{},"output":"r","callProviderMetadata":{"openai":{"itemId":"fc_1"}}},{"type":"data-note","id":"d","data":{"a":1}}]}`}, []string{"member_dropped"}},
}

func TestWhatMoreLibrariesReturnMakesAViewThatTheirServerTakes(t *testing.T) {
	t.Parallel()
	for _, test := range returned {
		o := wire.Options{Dialect: provider.Dialect(test.dialect)}
		made := wiretest.Render(test.format, storedOf(test.format, test.log), o)
		var got, kinds []string
		for i, body := range made.Bodies {
			got = append(got, string(body))
			if i < len(test.log) && got[i] == test.log[i] {
				got[i] = ""
			}
		}
		for _, r := range made.Repairs {
			kinds = append(kinds, r.Kind)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", test.name, diff)
		}
		if fmt.Sprint(kinds) != fmt.Sprint(test.kinds) {
			t.Errorf("%s: repairs %+v", test.name, made.Repairs)
		}
		for _, v := range wiretest.Validate(test.format, made.Bodies, o) {
			t.Errorf("%s: message %d breaks %s: %s", test.name, v.Message, v.Rule, v.Detail)
		}
	}
}
