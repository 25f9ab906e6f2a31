package wire

import (
	"fmt"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/wire/provider"
)

// asks returns options for a server.
func asks(d provider.Dialect) Options { return Options{Dialect: d} }

const (
	kimiTools   = `{"role":"system","tools":[{"type":"function","function":{"name":"f","parameters":{}}}]}`
	thoughtDone = `{"role":"assistant","content":"done","reasoning_content":"hm"}`
	developer   = `{"role":"developer","content":"d"}`
	listUser    = `{"role":"user","content":[{"type":"text","text":"u"}]}`
	listSystem  = `{"role":"system","content":[{"type":"text","text":"s"}]}`
	listTool    = `{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"r"}]}`
	namedUser   = `{"role":"user","name":"eve","content":"u"}`
	nineCalls   = "aB3456789"
	reasoned    = `{"role":"assistant","content":"done","reasoning":"hm"}`
	detailed    = `{"role":"assistant","content":"done","reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"s"}]}`
	signedCall  = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"s"}}}]}`
)

func manyCalls(n int, kind string) string {
	var calls []string
	for i := range n {
		calls = append(calls, fmt.Sprintf(`{"id":"a%d",%s"function":{"name":"f","arguments":"{}"}}`, i, kind))
	}
	return `{"role":"assistant","content":null,"tool_calls":[` + strings.Join(calls, ",") + `]}`
}

func manyTools(n int) (results []string) {
	for i := range n {
		results = append(results, chatTool(fmt.Sprint("a", i)))
	}
	return results
}

func chatArguments(text string) string {
	return `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"` + text + `"}}]}`
}

var geminiAsks = Options{Model: "gemini/gemini-3-pro-preview"}

var chatDialectFixtures = []fixture{
	{"V-D1", "a server that shows reasoning to its model", asks(provider.Qwen), []string{someUser, thoughtDone, someUser}, nil},
	{"V-D1", "OpenAI ignores reasoning", Options{Model: "gpt-4o"}, []string{someUser, thoughtDone, someUser}, nil},
	{"V-D1", "nobody knows the server", Options{}, []string{someUser, thoughtDone, someUser}, nil},
	{"V-D1", "DeepSeek gets its reasoning", Options{Model: "deepseek-reasoner"}, []string{someUser, thoughtDone, someUser}, nil},
	{"V-D1", "a model of DeepSeek's that does not think", Options{Model: "deepseek-chat"}, []string{someUser, someDone, someUser}, nil},
	{"V-D1", "Groq gets reasoning", Options{Model: "groq/openai/gpt-oss-120b"}, []string{someUser, thoughtDone, someUser}, []string{"V-D1 1"}},
	{"V-D1", "Mistral gets reasoning", mistralAsks, []string{someUser, thoughtDone, someUser}, []string{"V-D1 1"}},
	{"V-D1", "Cerebras gets a reasoning_content that is null", asks(provider.Cerebras), []string{someUser, `{"role":"assistant","content":"done","reasoning_content":null}`, someUser}, []string{"V-D1 1"}},
	{"V-D1", "DeepSeek misses reasoning", Options{Model: "deepseek/deepseek-v4-pro"}, []string{someUser, someDone, someUser, thoughtDone, someUser}, []string{"V-D1 1"}},
	{"V-D2", "Groq knows a developer", asks(provider.Groq), []string{developer, someUser}, nil},
	{"V-D2", "the roles that all know", asks(provider.DeepSeek), []string{someSystem, someUser}, nil},
	{"V-D2", "a developer of DeepSeek's", asks(provider.DeepSeek), []string{developer, someUser, developer, someUser}, []string{"V-D2 0", "V-D2 2"}},
	{"V-D2", "a legacy call", asks(provider.DeepSeek), []string{someUser, `{"role":"assistant","content":null,"reasoning_content":"hm","function_call":{"name":"f","arguments":"{}"}}`, `{"role":"function","name":"f","content":"r"}`}, []string{"V-D2 1", "V-D2 2"}},
	{"V-D3", "the system is first", asks(provider.Qwen), []string{someSystem, someUser, someDone}, nil},
	{"V-D3", "two systems of Mistral's", mistralAsks, []string{someSystem, someSystem, someUser}, nil},
	{"V-D3", "two systems", asks(provider.VLLM), []string{someSystem, listSystem, someUser}, []string{"V-D3 1"}},
	{"V-D3", "a system in the middle", Options{Model: "qwen3-max"}, []string{someUser, someSystem, someUser}, []string{"V-D3 1"}},
	{"V-D4", "only the tool has a name", asks(provider.VLLM), []string{someUser, chatCalls("a"), `{"role":"tool","tool_call_id":"a","name":"f","content":"r"}`}, nil},
	{"V-D4", "Groq knows names", asks(provider.Groq), []string{namedUser}, nil},
	{"V-D4", "Mistral knows no names", mistralAsks, []string{namedUser}, []string{"V-D4 0"}},
	{"V-D4", "what an SDK returned", asks(provider.Groq), []string{someUser, `{"role":"assistant","content":"done","refusal":null,"annotations":[],"audio":null}`, someUser}, []string{"V-C6 1", "V-D4 1"}},
	{"V-D4", "a refusal", asks(provider.Groq), []string{someUser, `{"role":"assistant","content":null,"refusal":"no"}`, someUser}, []string{"V-D4 1"}},
	{"V-D5", "an array of the user's", asks(provider.Groq), []string{listUser}, nil},
	{"V-D5", "arrays where Groq wants strings", asks(provider.Groq), []string{listSystem, someUser, chatCalls("a"), listTool}, []string{"V-D5 0", "V-D5 3"}},
	{"V-D5", "an array where DeepSeek wants a string", asks(provider.DeepSeek), []string{listUser}, []string{"V-D5 0"}},
	{"V-D5", "a picture for DeepSeek", asks(provider.DeepSeek), []string{`{"role":"user","content":[{"type":"text","text":"u"},{"type":"image_url","image_url":{"url":"https://a.b/c.png"}}]}`}, []string{"V-D5 0"}},
	{"V-C10", "128 calls", Options{}, append([]string{someUser, manyCalls(128, `"type":"function",`)}, manyTools(128)...), nil},
	{"V-C10", "129 calls", Options{}, append([]string{someUser, manyCalls(129, `"type":"function",`)}, manyTools(129)...), []string{"V-C10 1"}},
	{"V-C10", "300 calls that wait", Options{}, []string{someUser, manyCalls(300, `"type":"function",`)}, []string{"V-C10 1"}},
	{"V-C10", "2,048 messages", Options{Model: "gpt-5"}, append([]string{someSystem}, slices.Repeat([]string{someUser}, 2047)...), nil},
	{"V-C10", "2,049 messages", Options{Model: "gpt-5"}, append([]string{someSystem}, slices.Repeat([]string{someUser}, 2048)...), []string{"V-C10 2048"}},
	{"V-C10", "another server", asks(provider.DeepSeek), slices.Repeat([]string{someUser}, 2049), nil},
	{"V-C11", "what says nothing", Options{}, []string{someUser, `{"role":"assistant","content":"a","tool_calls":[{}]}`, someUser}, []string{"V-C11 1"}},
	{"V-C3", "tools that a message declares", Options{}, []string{someUser, kimiTools, someUser}, nil},
	{"V-D12", "tools that a message declares, at Kimi", Options{Model: "kimi-k3"}, []string{someUser, kimiTools, someUser}, nil},
	{"V-D12", "beside an empty content", Options{Model: "kimi-k3"}, []string{someUser, `{"role":"system","content":null,` + kimiTools[len(`{"role":"system",`):], someUser}, []string{"V-D12 1"}},
	{"V-D12", "at OpenAI", Options{Model: "gpt-5.6"}, []string{someUser, kimiTools, someUser}, []string{"V-D12 1"}},
	{"V-D12", "at Z.ai", Options{Model: "glm-5.3"}, []string{someUser, kimiTools, someUser}, []string{"V-D12 1"}},
	{"V-C11", "types", Options{}, append([]string{someUser, manyCalls(2, `"type":"function",`)}, manyTools(2)...), nil},
	{"V-C11", "none", Options{}, append([]string{someUser, manyCalls(1, ``)}, manyTools(1)...), []string{"V-C11 1"}},
	{"V-C11", "null", Options{}, append([]string{someUser, manyCalls(1, `"type":null,`)}, manyTools(1)...), []string{"V-C11 1"}},
	{"V-C3", "a sound without a text", Options{}, []string{someUser, `{"role":"assistant","content":null,"audio":{"id":"audio_1"}}`, someUser}, nil},
	{"V-C3", "a sound beside an empty array", Options{}, []string{someUser, `{"role":"assistant","content":[],"audio":{"id":"audio_1"}}`, someUser}, []string{"V-C3 1"}},
	{"V-C3", "a refusal alone", Options{}, []string{someUser, `{"role":"assistant","refusal":"no"}`, someUser}, nil},
	{"V-D1", "vLLM reads reasoning", asks(provider.VLLM), []string{someUser, reasoned, someUser}, nil},
	{"V-D1", "vLLM drops reasoning_content", asks(provider.VLLM), []string{someUser, thoughtDone, someUser}, []string{"V-D1 1"}},
	{"V-D1", "Ollama reads reasoning", asks(provider.Ollama), []string{someUser, thoughtDone, someUser}, []string{"V-D1 1"}},
	{"V-D1", "OpenRouter reads a list", asks(provider.OpenRouter), []string{someUser, detailed, someUser}, nil},
	{"V-D1", "DeepSeek misses reasoning under its name", asks(provider.DeepSeek), []string{someUser, reasoned, someUser}, []string{"V-D1 1"}},
	{"V-D1", "DeepSeek gets a list alone", asks(provider.DeepSeek), []string{someUser, detailed, someUser}, []string{"V-D1 1"}},
	{"V-D1", "Cerebras gets reasoning", asks(provider.Cerebras), []string{someUser, reasoned, someUser}, []string{"V-D1 1"}},
	{"V-D1", "Moonshot wants it beside calls alone", Options{Model: "kimi-k2-thinking"}, []string{someUser, someDone, someUser}, nil},
	{"V-D1", "MiMo misses it beside calls", Options{Model: "openrouter/xiaomi/mimo-v2.5-pro"}, []string{someUser, chatCalls("a"), chatTool("a"), someUser}, []string{"V-D1 1"}},
	{"V-D1", "Moonshot misses it beside calls", Options{Model: "moonshot/kimi-k2.5"}, []string{someUser, chatCalls("a"), chatTool("a"), someUser}, []string{"V-D1 1"}},
	{"V-D1", "a model of Moonshot's that does not think", Options{Model: "moonshot-v1-32k"}, []string{someUser, chatCalls("a"), chatTool("a"), someUser}, nil},
	{"V-D11", "an object", asks(provider.VLLM), []string{someUser, chatArguments(`{\"a\": 1}`), chatTool("a")}, nil},
	{"V-D11", "OpenAI takes any text", Options{Model: "gpt-5"}, []string{someUser, chatArguments(`{\"a\": 1`), chatTool("a")}, nil},
	{"V-D11", "cut off", asks(provider.VLLM), []string{someUser, chatArguments(`{\"a\": 1`), chatTool("a")}, []string{"V-D11 1"}},
	{"V-D11", "an array", asks(provider.Qwen), []string{someUser, chatArguments(`[1]`), chatTool("a")}, []string{"V-D11 1"}},
	{"V-D11", "a text", asks(provider.LlamaCpp), []string{someUser, chatArguments(`\"a\"`), chatTool("a")}, []string{"V-D11 1"}},
	{"V-D11", "nothing", asks(provider.Ollama), []string{someUser, chatArguments(``), chatTool("a")}, []string{"V-D11 1"}},
	{"V-D11", "null", asks(provider.Google), []string{someUser, strings.Replace(signedCall, `"{}"`, `"null"`, 1), chatTool("a")}, []string{"V-D11 1"}},
	{"V-D10", "the call is signed", geminiAsks, []string{someUser, signedCall, chatTool("a")}, nil},
	{"V-D10", "the id has the signature, as LiteLLM writes it", geminiAsks, []string{someUser, chatCalls("call_1__thought__" + forty), chatTool("call_1__thought__" + forty)}, nil},
	{"V-D10", "a Gemini that does not check", Options{Model: "gemini-2.5-pro"}, []string{someUser, chatCalls("a"), chatTool("a")}, nil},
	{"V-D10", "an earlier turn", geminiAsks, []string{someUser, chatCalls("a"), chatTool("a"), someDone, someUser}, nil},
	{"V-D10", "no signature", geminiAsks, []string{someUser, chatCalls("a"), chatTool("a")}, []string{"V-D10 1"}},
	{"V-D10", "no signature in the second step", geminiAsks, []string{someUser, signedCall, chatTool("a"), chatCalls("b"), chatTool("b")}, []string{"V-D10 3"}},
	{"V-D7", "the assistant answers", mistralAsks, []string{someUser, chatCalls(nineCalls), chatTool(nineCalls), someDone, someUser}, nil},
	{"V-D7", "another server does not mind", asks(provider.Qwen), []string{someUser, chatCalls("a"), chatTool("a"), someUser}, nil},
	{"V-D7", "the user speaks after a result", mistralAsks, []string{someUser, chatCalls(nineCalls), chatTool(nineCalls), someUser}, []string{"V-D7 3"}},
}

var bedrockFixtures = []fixture{
	{"V-D6", "Anthropic joins messages itself", Options{Model: "claude-sonnet-4-5"}, []string{someUser, someUser, someDone}, nil},
	{"V-D6", "roles alternate", asks(provider.Bedrock), []string{someSystem, someUser, someDone, someUser}, nil},
	{"V-D6", "the user speaks twice", Options{Model: "us.anthropic.claude-sonnet-4-5-v1:0"}, []string{someUser, someUser, someDone}, []string{"V-D6 1"}},
	{"V-D6", "results, and then the user", asks(provider.Vertex), []string{someUser, `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}`, someUser, someDone, someDone}, []string{"V-D6 3", "V-D6 5"}},
}

func uiSaid(role, text string) string {
	return `{"id":"m","role":"` + role + `","parts":[{"type":"text","text":"` + text + `"}]}`
}

func uiDone(id, input string) string {
	return `{"id":"m","role":"assistant","parts":[{"type":"tool-f","toolCallId":"` + id + `","state":"output-available",` + input + `"output":"x"}]}`
}

var (
	claudeAsks = Options{Model: "claude-sonnet-4-5"}
	gptAsks    = Options{Model: "gpt-5"}
)

var behindFixtures = []fixture{
	{"V-U3", "nobody knows the provider", Options{}, []string{uiSaid("user", " ")}, nil},
	{"V-U3", "OpenAI takes white space", gptAsks, []string{uiSaid("user", " ")}, nil},
	{"V-U3", "texts and a thought without words", claudeAsks, []string{uiSaid("system", "s"), uiSaid("user", "u"),
		`{"id":"m","role":"assistant","parts":[{"type":"reasoning","text":"","providerMetadata":{"anthropic":{"redactedData":"x"}}},{"type":"text","text":"t"}]}`, uiSaid("user", "u")}, nil},
	{"V-U3", "white space", claudeAsks, []string{uiSaid("user", "u"), uiSaid("assistant", `\n`), uiSaid("user", "u")}, []string{"V-U3 1"}},
	{"V-U3", "nothing but what the provider does not get", claudeAsks, []string{uiSaid("user", "u"), `{"id":"m","role":"user","parts":[{"type":"data-x","data":1}]}`}, []string{"V-U3 1"}},
	{"V-U4", "the user is first", claudeAsks, []string{uiSaid("system", "s"), uiSaid("user", "u")}, nil},
	{"V-U4", "OpenAI does not mind who is first", gptAsks, []string{uiSaid("assistant", "a")}, nil},
	{"V-U4", "nothing but the head", claudeAsks, []string{uiSaid("system", "s")}, []string{"V-U4 0"}},
	{"V-U4", "nothing but the head, for OpenAI", gptAsks, []string{uiSaid("system", "s")}, nil},
	{"V-U4", "the assistant is first", claudeAsks, []string{uiSaid("assistant", "a"), uiSaid("user", "u")}, []string{"V-U4 0"}},
	{"V-U4", "the assistant is first, for Google", Options{Model: "gemini-2.5-pro"}, []string{uiSaid("assistant", "a"), uiSaid("user", "u")}, []string{"V-U4 0"}},
	{"V-U5", "forty characters", gptAsks, []string{uiSaid("user", "u"), uiDone(forty, `"input":{},`)}, nil},
	{"V-U5", "an id that is no name", gptAsks, []string{uiSaid("user", "u"), uiDone("a.b", `"input":{},`)}, nil},
	{"V-U5", "41 characters", gptAsks, []string{uiSaid("user", "u"), uiDone(forty+"c", `"input":{},`)}, []string{"V-U5 1"}},
	{"V-U5", "a dot", claudeAsks, []string{uiSaid("user", "u"), uiDone("a.b", `"input":{},`)}, []string{"V-U5 1"}},
	{"V-U5", "an id that Mistral does not take", mistralAsks, []string{uiSaid("user", "u"), uiDone("call_1", `"input":{},`)}, []string{"V-U5 1"}},
	{"V-U6", "an object", claudeAsks, []string{uiSaid("user", "u"), uiDone("a", `"input":{},`)}, nil},
	{"V-U6", "OpenAI takes a text", gptAsks, []string{uiSaid("user", "u"), uiDone("a", `"input":"ls",`)}, nil},
	{"V-U6", "a text", claudeAsks, []string{uiSaid("user", "u"), uiDone("a", `"input":"ls",`)}, []string{"V-U6 1"}},
	{"V-U6", "a text for a server that reads it", Options{Dialect: "vllm"}, []string{uiSaid("user", "u"), uiDone("a", `"input":"ls",`)}, []string{"V-U6 1"}},
	{"V-U6", "an array for a server that reads it", Options{Model: "groq/openai/gpt-oss-120b"}, []string{uiSaid("user", "u"), uiDone("a", `"input":[1],`)}, []string{"V-U6 1"}},
	{"V-U6", "nothing, be it for OpenAI", gptAsks, []string{uiSaid("user", "u"), uiDone("a", `"input":null,`)}, []string{"V-U6 1"}},
	{"V-U6", "no arguments that could be read", gptAsks, []string{uiSaid("user", "u"), `{"id":"m","role":"assistant","parts":[{"type":"tool-f","toolCallId":"a","state":"output-error","rawInput":"{","errorText":"x"}]}`}, nil},
	{"V-U7", "OpenAI takes a system in the middle", gptAsks, []string{uiSaid("user", "u"), uiSaid("system", "s"), uiSaid("user", "u")}, nil},
	{"V-U7", "a system in the middle", claudeAsks, []string{uiSaid("user", "u"), uiSaid("system", "s"), uiSaid("user", "u")}, []string{"V-U7 1"}},
	{"V-U8", "a model that continues", claudeAsks, []string{uiSaid("user", "u"), uiSaid("assistant", "a")}, nil},
	{"V-U8", "a thought is last", claudeAsks, []string{uiSaid("user", "u"), `{"id":"m","role":"assistant","parts":[{"type":"text","text":"a"},{"type":"reasoning","text":"hm","providerMetadata":{"anthropic":{"signature":"s"}}}]}`}, []string{"V-U8 1"}},
	{"V-U8", "a thought that is not sent is last", claudeAsks, []string{uiSaid("user", "u"), `{"id":"m","role":"assistant","parts":[{"type":"text","text":"a"},{"type":"reasoning","text":"hm"}]}`}, nil},
	{"V-U8", "results are last", Options{Model: "claude-opus-4-6"}, []string{uiSaid("user", "u"), uiDone("a", `"input":{},`)}, nil},
	{"V-U8", "a call in flight is last", Options{Model: "claude-opus-4-6"}, []string{uiSaid("user", "u"), `{"id":"m","role":"assistant","parts":[{"type":"tool-f","toolCallId":"a","state":"input-available","input":{}}]}`}, nil},
	{"V-U8", "the assistant is last", Options{Model: "claude-opus-4-6"}, []string{uiSaid("user", "u"), uiSaid("assistant", "a")}, []string{"V-U8 1"}},
	{"V-U8", "the assistant is last, for Google", Options{Model: "gemini-2.5-pro"}, []string{uiSaid("user", "u"), uiSaid("assistant", "a")}, []string{"V-U8 1"}},
}
