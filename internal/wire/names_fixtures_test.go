package wire

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// namedLists are lists of a call of a tool and its result, by format.
var namedLists = map[session.Format][]string{
	session.OpenAIChat: {someUser, `{"role":"assistant","content":null,"tool_calls":[{"id":"aB3456789","type":"function","function":{"name":"NAME","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"aB3456789","content":"r"}`},
	session.OpenAIResponses: {userItem, `{"type":"function_call","call_id":"a","name":"NAME","arguments":"{}"}`, outputItem("a")},
	session.Anthropic: {someUser, `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"NAME","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}`},
	session.Gemini: {geminiUser, `{"role":"model","parts":[{"functionCall":{"id":"a","name":"NAME","args":{}},"thoughtSignature":"s"}]}`,
		`{"role":"user","parts":[{"functionResponse":{"id":"a","name":"NAME","response":{"output":"r"}}}]}`},
	session.AISDK: {uiSaid("user", "u"), `{"id":"m","role":"assistant","parts":[{"type":"dynamic-tool","toolName":"NAME","toolCallId":"aB3456789","state":"output-available","input":{},"output":"r"}]}`},
}

// nameLimits are written down here again: how many characters the name
// of a tool may have, by format and dialect.
var nameLimits = map[session.Format]map[provider.Dialect]int{
	session.OpenAIChat: {
		"": 64, provider.OpenAI: 64, provider.Mistral: 64, provider.Groq: 64, provider.Cerebras: 64, provider.DeepSeek: 64, provider.Qwen: 64, provider.VLLM: 64,
		provider.Google: 64, provider.LlamaCpp: 64, provider.Moonshot: 64, provider.Ollama: 64, provider.OpenRouter: 64, provider.ZAI: 64,
	},
	session.OpenAIResponses: {"": 128},
	session.Anthropic: {"": 128, provider.Anthropic: 128, provider.Vertex: 128, provider.Bedrock: 64,
		provider.DeepSeek: 128, provider.Moonshot: 128, provider.Qwen: 128, provider.ZAI: 128},
	session.Gemini: {"": 64},
	session.AISDK: {
		provider.OpenAI: 64, provider.Mistral: 64, provider.Groq: 64, provider.Cerebras: 64, provider.DeepSeek: 64, provider.Qwen: 64, provider.VLLM: 64,
		provider.Anthropic: 128, provider.Vertex: 128, provider.Bedrock: 64, provider.Google: 64,
	},
}

// plainModels want no reasoning or signatures.
var plainModels = map[provider.Dialect]string{
	provider.DeepSeek: "deepseek-chat", provider.Moonshot: "moonshot-v1-8k", provider.Google: "gemini-2.5-pro",
}

// namedFixture returns a list whose call, and result if it has the name, must or must not break the rule.
func namedFixture(f session.Format, d provider.Dialect, name string, kept bool) fixture {
	x := fixture{rule: provider.Of(f).Codes.ToolName, name: fmt.Sprintf("%s: %q", d, name), o: asks(d)}
	for _, body := range namedLists[f] {
		x.bodies = append(x.bodies, strings.ReplaceAll(body, "NAME", name))
	}
	if model, ok := plainModels[d]; ok && f != session.AISDK {
		x.o.Model = model
	}
	if !kept {
		x.want = append(x.want, x.rule+" 1")
	}
	if !kept && f == session.Gemini {
		x.want = append(x.want, x.rule+" 2")
	}
	return x
}

func nameFixtures(f session.Format) (list []fixture) {
	for _, d := range slices.Sorted(maps.Keys(nameLimits[f])) {
		limit := nameLimits[f][d]
		list = append(list, namedFixture(f, d, strings.Repeat("n", limit), true), namedFixture(f, d, strings.Repeat("n", limit+1), false),
			namedFixture(f, d, "mcp__server_Tool-2", true), namedFixture(f, d, "my tool", false), namedFixture(f, d, "日本語", false), namedFixture(f, d, "", false))
		google := f == session.Gemini || d == provider.Google && f == session.AISDK
		for _, name := range []string{"fs.read:file", "a.b", "a:b"} {
			list = append(list, namedFixture(f, d, name, google))
		}
		for _, name := range []string{"9lives", "-x"} {
			list = append(list, namedFixture(f, d, name, !google))
		}
	}
	return list
}

var otherNameFixtures = map[session.Format][]fixture{
	session.OpenAIChat: {
		{"V-C7", "a legacy call and its result", Options{}, []string{someUser, `{"role":"assistant","content":null,"function_call":{"name":"my f","arguments":"{}"}}`, `{"role":"function","name":"my f","content":"r"}`}, []string{"V-C7 1", "V-C7 2"}},
		{"V-C7", "a custom tool", Options{}, []string{someUser, `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"a.b","input":"x"}}]}`, chatTool("a")}, []string{"V-C7 1"}},
		{"V-C7", "a call without a name", Options{}, []string{someUser, `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"arguments":"{}"}}]}`, chatTool("a")}, []string{"V-C7 1"}},
		{"V-C7", "the name of a result", Options{}, []string{someUser, chatCalls("a", "b", "c"), `{"role":"tool","tool_call_id":"a","name":"a b","content":"r"}`,
			`{"role":"tool","tool_call_id":"b","name":"","content":"r"}`, `{"role":"tool","tool_call_id":"c","name":"f","content":"r"}`}, []string{"V-C7 2", "V-C7 3"}},
		{"V-C7", "a function_call beside the call that it repeats", Options{}, []string{someUser, `{"role":"assistant","content":null,"function_call":{"name":"a b","arguments":"{}"},"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`, chatTool("a")}, []string{"V-C7 1"}},
		{"V-C8", "names of speakers", Options{}, []string{`{"role":"system","name":"boss","content":"s"}`, `{"role":"user","name":"` + sixtyFour + `","content":"u"}`, `{"role":"assistant","name":"a-B_3","content":"done"}`}, nil},
		{"V-C8", "a space, no character, and one too many", Options{}, []string{`{"role":"system","name":"the boss","content":"s"}`, `{"role":"user","name":"","content":"u"}`, `{"role":"user","name":"` + sixtyFour + `c","content":"u"}`,
			`{"role":"assistant","name":"Žofie","content":"done"}`}, []string{"V-C8 0", "V-C8 1", "V-C8 2", "V-C8 3"}},
	},
	session.OpenAIResponses: {
		{"V-R6", "a custom tool", Options{}, []string{userItem, `{"type":"custom_tool_call","call_id":"a","name":"a b","input":"x"}`, `{"type":"custom_tool_call_output","call_id":"a","output":"r"}`}, []string{"V-R6 1"}},
		{"V-R6", "tools of the provider, and what an MCP server calls its own", Options{}, []string{userItem, `{"type":"shell_call","call_id":"a","action":{"commands":["ls"]}}`, `{"type":"shell_call_output","call_id":"a","output":[{"stdout":"r","stderr":"","outcome":{"type":"exit","exit_code":0}}]}`,
			`{"type":"mcp_call","id":"mcp_1","server_label":"s","name":"a b","arguments":"{}","output":"r"}`}, nil},
	},
	session.AISDK: {
		{"V-U11", "nobody knows the provider", Options{}, []string{uiSaid("user", "u"), `{"id":"m","role":"assistant","parts":[{"type":"tool-my tool","toolCallId":"a","state":"output-available","input":{},"output":"r"}]}`}, nil},
		{"V-U11", "nobody knows the provider, and there is no name", Options{}, []string{uiSaid("user", "u"), `{"id":"m","role":"assistant","parts":[{"type":"tool-","toolCallId":"a","state":"output-available","input":{},"output":"r"}]}`}, []string{"V-U11 1"}},
		{"V-U11", "a tool that the provider runs", claudeAsks, []string{uiSaid("user", "u"), `{"id":"m","role":"assistant","parts":[{"type":"tool-my tool","toolCallId":"a","state":"input-available","input":{},"providerExecuted":true}]}`}, []string{"V-U10 1", "V-U11 1"}},
		{"V-U11", "a name in the type", claudeAsks, []string{uiSaid("user", "u"), `{"id":"m","role":"assistant","parts":[{"type":"tool-my tool","toolCallId":"a","state":"output-available","input":{},"output":"r"}]}`}, []string{"V-U11 1"}},
	},
}

func init() {
	for f := range fixtures {
		fixtures[f] = append(fixtures[f], append(nameFixtures(f), otherNameFixtures[f]...)...)
	}
}
