package wire

import "github.com/varve-dev/varve/internal/session"

// memberFixtures are about the rules of the members and blocks that a provider knows. Each of those that break a rule
// is what a library returns, or writes beside a message.
var memberFixtures = map[session.Format][]fixture{
	session.OpenAIChat: {
		{"V-C6", "what compatible servers want back", Options{}, []string{someUser, `{"role":"assistant","content":"a","refusal":null,"function_call":null,"audio":null,"reasoning_content":"r","reasoning_details":[{"type":"reasoning.text"}]}`,
			`{"role":"user","name":"n","content":[{"type":"text","text":"u","cache_control":{"type":"ephemeral"}},{"type":"image_url","image_url":{"url":"https://a/b.png","detail":"low"}}]}`}, nil},
		{"V-C6", "a message of openai-python", Options{}, []string{someUser, `{"content":"a","refusal":null,"role":"assistant","annotations":[],"audio":null,"function_call":null,"tool_calls":null}`}, []string{"V-C6 1", "V-C6 1"}},
		{"V-C6", "an empty array of calls", Options{}, []string{someUser, `{"role":"assistant","content":"a","tool_calls":[ ]}`}, []string{"V-C6 1"}},
		{"V-C6", "what is left of a function_call in a stream", Options{}, []string{someUser, `{"role":"assistant","content":"a","function_call":{}}`, `{"role":"assistant","content":"b","function_call":{"name":"","arguments":""}}`}, []string{"V-C6 1", "V-C6 2"}},
		{"V-C6", "what a program keeps beside the content", Options{}, []string{`{"role":"user","content":"u","extra":{"raw_output":"much","returncode":0}}`}, []string{"V-C6 0"}},
		{"V-C6", "a member of a call, of a function and of a sound", Options{}, []string{someUser, `{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}","parsed_arguments":null}}],"audio":{"id":"x","data":"AA==","transcript":"t"}}`, chatTool("a")},
			[]string{"V-C6 1", "V-C6 1", "V-C6 1", "V-C6 1"}},
		{"V-C6", "a block of another provider", Options{}, []string{`{"role":"user","content":[{"type":"input_text","text":"u"},{"type":"future","data":1}]}`}, []string{"V-C6 0", "V-C6 0"}},
	},
	session.OpenAIResponses: {
		{"V-R5", "an answer's items", Options{}, []string{someUser, `{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"e"}`,
			`{"id":"msg_1","type":"message","role":"assistant","status":"completed","phase":null,"content":[{"type":"output_text","text":"a","annotations":[],"logprobs":[]}]}`}, nil},
		{"V-R5", "an item of a role alone", Options{}, []string{`{"role":"user","content":[{"type":"input_text","text":"u"},{"type":"input_image","image_url":"https://a/b.png","detail":"auto","file_id":"f"}]}`}, nil},
		{"V-R5", "metadata and null", Options{}, []string{`{"role":"user","content":"u","metadata":{"a":1}}`, `{"type":"message","id":null,"role":"assistant","status":null,"content":[{"type":"output_text","text":"a","annotations":null}]}`},
			[]string{"V-R5 0", "V-R5 1", "V-R5 1", "V-R5 1"}},
		{"V-R5", "items and blocks of no type", Options{}, []string{`{"type":"token_count","info":1}`, `{"role":"assistant","content":[{"type":"input_text","text":"a"}]}`, `{"role":"user","content":[{"type":"text","text":"u"}]}`},
			[]string{"V-R5 0", "V-R5 1", "V-R5 2"}},
		{"V-R5", "created_by of an output", Options{}, []string{`{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`, `{"type":"function_call_output","call_id":"a","output":"r","created_by":"x"}`}, []string{"V-R5 1"}},
	},
	session.Anthropic: {
		{"V-A13", "changes of tools", Options{Model: "claude-opus-5-5"}, []string{someUser, says("system", toolAdded, toolWithdrawn), someDone, someUser}, nil},
		{"V-A13", "what requests may have", Options{}, []string{someUser, says("assistant", `{"citations":null,"text":"a","type":"text"}`, `{"type":"tool_use","id":"a","name":"f","input":{"parsed":1},"caller":{"type":"direct"}}`),
			says("user", `{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"r"},{"type":"tool_reference","tool_name":"g"}],"is_error":false}`)}, nil},
		{"V-A13", "an answer as a message", Options{}, []string{someUser, `{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1}}`},
			[]string{"V-A13 1", "V-A13 1", "V-A13 1", "V-A13 1", "V-A13 1", "V-A13 1"}},
		{"V-A13", "an interrupted stream", Options{}, []string{someUser, says("assistant", `{"type":"tool_use","id":"a","name":"f","input":{},"partial_json":"{\"a"}`)}, []string{"V-A13 1"}},
		{"V-A13", "a file's id in a citation", Options{}, []string{someUser, says("assistant", `{"type":"text","text":"a","citations":[{"type":"char_location","cited_text":"c","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1,"file_id":null}]}`)}, []string{"V-A13 1"}},
		{"V-A13", "blocks of no type, also in a result", Options{}, []string{says("user", `{"type":"input_text","text":"u"}`), uses("a"), says("user", `{"type":"tool_result","tool_use_id":"a","content":[{"type":"future"}]}`)}, []string{"V-A13 0", "V-A13 2"}},
	},
	session.Gemini: {
		{"V-G5", "a candidate's content", Options{}, []string{geminiUser, geminiOf("model", `{"text":"a","thought":true,"thoughtSignature":"s","videoMetadata":null}`, `{"functionCall":{"id":"1","name":"f","args":{"any":1}},"thoughtSignature":"s"}`), geminiOf("user", `{"functionResponse":{"id":"1","name":"f","response":{"any":1}}}`)}, nil},
		{"V-G5", "members beside the parts, and in them", Options{}, []string{`{"role":"user","parts":[{"text":"u","state":"done"},{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo=","url":"u"}}],"finishReason":"STOP","index":0}`}, []string{"V-G5 0", "V-G5 0", "V-G5 0", "V-G5 0"}},
		{"V-G5", "a part of nothing that is known", Options{}, []string{geminiOf("user", `{"text":"u"}`, `{"future":{"a":1}}`)}, []string{"V-G5 0"}},
	},
	session.AISDK: {
		{"V-U2", "what providers say of a part", Options{}, []string{`{"id":"m1","role":"user","metadata":{"a":1},"parts":[{"type":"text","text":"u","state":"done","providerMetadata":{"x":{}}},{"type":"data-note","data":1},{"type":"source-url","sourceId":"s","url":"u"}]}`}, nil},
		{"V-U2", "a member of no message", Options{}, []string{`{"id":"m1","role":"user","extra":{"raw":1},"parts":[{"type":"text","text":"u"}]}`}, []string{"V-U2 0"}},
		{"V-U2", "a part of no type", Options{}, []string{`{"id":"m1","role":"user","parts":[{"type":"future","a":1},{"type":"text","text":"u"}]}`}, []string{"V-U2 0"}},
	},
}

func init() {
	for f, list := range memberFixtures {
		fixtures[f] = append(fixtures[f], list...)
	}
}
