package wire_test

import (
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// namesAndForms are views in which a result may not fit its call.
var namesAndForms = map[string]struct {
	f      session.Format
	bodies []string
}{
	"responses: custom call, function output": {session.OpenAIResponses, []string{
		`{"role":"user","content":"go"}`,
		`{"type":"custom_tool_call","call_id":"1","name":"f","input":"x"}`,
		`{"type":"function_call_output","call_id":"1","output":"x"}`,
	}},
	"gemini: equal ids, other names": {session.Gemini, []string{
		`{"role":"user","parts":[{"text":"go"}]}`,
		`{"role":"model","parts":[{"functionCall":{"id":"1","name":"a","args":{}},"thoughtSignature":"c2ln"}]}`,
		`{"role":"user","parts":[{"functionResponse":{"id":"1","name":"b","response":{"output":"x"}}}]}`,
	}},
	"gemini: two calls, names swapped": {session.Gemini, []string{
		`{"role":"user","parts":[{"text":"go"}]}`,
		`{"role":"model","parts":[{"functionCall":{"id":"1","name":"a","args":{}},"thoughtSignature":"c2ln"},{"functionCall":{"id":"2","name":"b","args":{}}}]}`,
		`{"role":"user","parts":[{"functionResponse":{"id":"1","name":"x","response":{"output":"x"}}},{"functionResponse":{"id":"2","name":"b","response":{"output":"x"}}}]}`,
	}},
	"responses: shell call, function output": {session.OpenAIResponses, []string{
		`{"role":"user","content":"go"}`,
		`{"type":"shell_call","call_id":"1","action":{"commands":["ls"]}}`,
		`{"type":"function_call_output","call_id":"1","output":"x"}`,
	}},
	"responses: function call, shell output": {session.OpenAIResponses, []string{
		`{"role":"user","content":"go"}`,
		`{"type":"function_call","call_id":"1","name":"f","arguments":"{}"}`,
		`{"type":"shell_call_output","call_id":"1","output":[{"stdout":"x","stderr":"","outcome":{"type":"exit","exit_code":0}}]}`,
	}},
	"chat: legacy call, tool message": {session.OpenAIChat, []string{
		`{"role":"user","content":"go"}`,
		`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`,
		`{"role":"tool","tool_call_id":"function:f","content":"x"}`,
	}},
	"chat: tool call, function message": {session.OpenAIChat, []string{
		`{"role":"user","content":"go"}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"function:f","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"function","name":"f","content":"x"}`,
	}},
	"chat: same id twice in a message": {session.OpenAIChat, []string{
		`{"role":"user","content":"go"}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"1","type":"function","function":{"name":"g","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"1","content":"x"}`,
		`{"role":"tool","tool_call_id":"1","content":"y"}`,
	}},
	"anthropic: only a system message": {session.Anthropic, []string{
		`{"role":"system","content":"be good"}`,
	}},
	"anthropic: results and a user text, then results": {session.Anthropic, []string{
		`{"role":"user","content":"go"}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"a","input":{}},{"type":"tool_use","id":"2","name":"a","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"x"}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"2","content":"x"},{"type":"text","text":"and"}]}`,
	}},
	"anthropic: text, then call in the next message, then result": {session.Anthropic, []string{
		`{"role":"user","content":"go"}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"a","input":{}}]}`,
		`{"role":"assistant","content":"wait"}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"x"}]}`,
	}},
	"ai sdk: same call twice": {session.AISDK, []string{
		`{"id":"1","role":"user","parts":[{"type":"text","text":"go"}]}`,
		`{"id":"2","role":"assistant","parts":[{"type":"tool-a","toolCallId":"1","state":"output-available","input":{},"output":"x"}]}`,
		`{"id":"3","role":"assistant","parts":[{"type":"tool-a","toolCallId":"2","state":"input-available","input":{}}]}`,
	}},
	"gemini: function role": {session.Gemini, []string{
		`{"role":"user","parts":[{"text":"go"}]}`,
		`{"role":"model","parts":[{"functionCall":{"name":"a","args":{}},"thoughtSignature":"c2ln"}]}`,
		`{"role":"function","parts":[{"functionResponse":{"name":"a","response":{"output":"x"}}}]}`,
	}},
}

func TestAFastValidatorKnowsNamesAndForms(t *testing.T) {
	for name, c := range namesAndForms {
		view := make([]wire.Stored, len(c.bodies))
		raw := make([][]byte, len(c.bodies))
		for i := range c.bodies {
			view[i] = wire.Stored{Format: c.f, Body: []byte(c.bodies[i]), Seq: int64(i + 1)}
			raw[i] = view[i].Body
		}
		for checkpoint := range len(view) + 1 {
			valid := validated(c.f, view, checkpoint).Valid("")
			made := wiretest.Render(c.f, view, wire.Options{})
			v := wiretest.Validate(c.f, raw, wire.Options{})
			if valid && (len(made.Repairs) > 0 || len(v) > 0) {
				t.Errorf("%s (checkpoint %d): called valid, but repairs %v violations %v", name, checkpoint, made.Repairs, v)
				break
			}
		}
	}
}
