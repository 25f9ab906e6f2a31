package terminal_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/terminal"
)

func TestAViewIsTextInEveryFormat(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, view, want string }{
		{
			"OpenAI Chat, with control characters in a result",
			`{"session":"s","format":"openai-chat","checkpoint":1,"through_seq":2,"last_seq":4,"tokens":9,
				"omitted":{"units":1,"messages":2,"tokens":5},"messages":[
				{"role":"user","content":[{"type":"text","text":"look"},
					{"type":"image_url","image_url":{"url":"https://x.example/a.png"}},
					{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,QUJD"}}]},
				{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}}]},
				{"role":"tool","tool_call_id":"c1","content":"a\u001b[31mb"}]}`,
			`session s (openai-chat): 3 messages, 9 tokens, checkpoint 1 through 2 of 4
left out: 1 units (2 messages, 5 tokens)

## user

look
(image, https://x.example/a.png)
(file, a.pdf, application/pdf, 4 bytes of base64)

## assistant

→ ls {} (c1)

## tool

← c1
a` + "\uFFFD" + `[31mb
`,
		},
		{
			"Anthropic, with a message that is none",
			`{"session":"s","format":"anthropic","last_seq":2,"system":[{"type":"text","text":"be brief"}],"messages":[
				{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"tool_use","id":"t1","name":"ls","input":{"p":1}}]},
				{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"x"},
					{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}]},{"type":"weather","of":1}]}, 7]}`,
			`session s (anthropic): 3 messages, 0 tokens, checkpoint 0 through 0 of 2

## system

be brief

## assistant

(thinking) hm
→ ls {"p":1} (t1)

## user

← t1
x
(image, image/png, 4 bytes of base64)
(weather, 25 bytes)

## a message

7
`,
		},
		{
			"Anthropic, with a system prompt that is a string",
			`{"session":"s","format":"anthropic","system":"be brief","messages":[{"role":"user","content":"hi"}]}`,
			`session s (anthropic): 1 messages, 0 tokens, checkpoint 0 through 0 of 0

## system

be brief

## user

hi
`,
		},
		{
			"OpenAI Responses",
			`{"session":"s","format":"openai-responses","messages":[
				{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_image","file_id":"file_1"}]},
				{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}]},
				{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so"}]},
				{"type":"function_call","call_id":"c1","name":"ls","arguments":"{\"p\":1}"},
				{"type":"function_call_output","call_id":"c1","output":"a.go"}]}`,
			`session s (openai-responses): 5 messages, 0 tokens, checkpoint 0 through 0 of 0

## user

hi
(image, file_1)

## assistant

(thinking) hm

## assistant

so

## assistant

→ ls {"p":1} (c1)

## tool

← c1
a.go
`,
		},
		{
			"Gemini",
			`{"session":"s","format":"gemini","system":{"parts":[{"text":"be brief"}]},"messages":[
				{"role":"user","parts":[{"text":"hi"},{"inlineData":{"mimeType":"image/png","data":"QUJD"}}]},
				{"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"name":"ls","args":{"p":1}}}]},
				{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"a.go"}}}]}]}`,
			`session s (gemini): 3 messages, 0 tokens, checkpoint 0 through 0 of 0

## system

be brief

## user

hi
(image, image/png, 4 bytes of base64)

## assistant

(thinking) hm
→ ls {"p":1} (function:ls)

## tool

← function:ls
a.go
`,
		},
		{
			"AI SDK",
			`{"session":"s","format":"ai-sdk","messages":[
				{"id":"1","role":"user","parts":[{"type":"text","text":"hi"},{"type":"file","mediaType":"image/png","url":"https://x.example/a.png"}]},
				{"id":"2","role":"assistant","parts":[{"type":"reasoning","text":"hm"},{"type":"text","text":"so"},
					{"type":"tool-ls","toolCallId":"c1","state":"output-available","input":{"p":1},"output":"a.go"}]}]}`,
			`session s (ai-sdk): 2 messages, 0 tokens, checkpoint 0 through 0 of 0

## user

hi
(image, image/png, https://x.example/a.png)

## assistant

(thinking) hm
so
→ ls {"p":1} (c1)

## tool

← c1
a.go
`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var v protocol.View
			if err := json.Unmarshal([]byte(tt.view), &v); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if err := terminal.View(&out, &v); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
