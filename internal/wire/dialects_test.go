package wire_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// TestEveryDialectGetsWhatItTakes renders random conversations for every dialect of every format, and compares the fast
// validator with what Render did.
func TestEveryDialectGetsWhatItTakes(t *testing.T) {
	t.Parallel()
	for _, f := range session.Formats() {
		for _, d := range provider.DialectsOf(f) {
			t.Run(fmt.Sprint(f, "/", d), func(t *testing.T) {
				t.Parallel()
				for seed := range *views / 5 {
					rng := rand.New(rand.NewPCG(uint64(seed), 21))
					o := wire.Options{Dialect: d, Model: models[rng.IntN(len(models))]}
					checkDialect(t, f, o, dialectView(rng, f), rng)
					if t.Failed() {
						t.Fatalf("seed %d", seed)
					}
				}
			})
		}
	}
}

// dialectView returns a view that may have what only some servers take.
func dialectView(rng *rand.Rand, f session.Format) []wire.Stored {
	if rng.IntN(3) == 0 {
		return randomView(rng)
	}
	options := compacttest.Options{Messages: 1 + rng.IntN(8), ResultTokens: 5, Wild: rng.IntN(3) == 0}
	view := stored(f, renameRandomly(rng, compacttest.Session(rng, f, options)))
	view = view[:1+rng.IntN(len(view))]
	for range rng.IntN(3) {
		if few := forFewServers[f]; len(few) > 0 {
			view = slices.Insert(view, rng.IntN(len(view)+1), wire.Stored{Format: f, Body: []byte(few[rng.IntN(len(few))])})
		}
	}
	return view
}

// forFewServers are messages that only some servers take.
var forFewServers = map[session.Format][]string{
	session.OpenAIChat: {
		`{"role":"developer","content":"d"}`, `{"role":"system","content":[{"type":"text","text":"s"}]}`, `{"role":"user","name":"eve","content":"u"}`,
		`{"role":"user","content":[{"type":"text","text":"u"},{"type":"image_url","image_url":{"url":"https://a.b/c.png"}}]}`,
		`{"role":"assistant","content":"a","reasoning_content":"hm"}`, `{"role":"assistant","content":"a","reasoning_content":null}`,
		`{"role":"assistant","content":"a","reasoning_content":" "}`, `{"role":"assistant","content":null,"refusal":"no"}`, `{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`,
		`{"role":"assistant","content":"a","annotations":[],"audio":null}`, `{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`,
		`{"role":"function","name":"f","content":"r"}`,
		`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"},"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
	},
	session.Anthropic: {`{"role":"user","content":"u"}`, `{"role":"assistant","content":"a"}`},
	session.AISDK: {
		`{"id":"x","role":"user","parts":[{"type":"text","text":" "}]}`, `{"id":"x","role":"user","parts":[]}`, `{"id":"x","role":"system","parts":[{"type":"text","text":"s"}]}`,
		`{"id":"x","role":"user","parts":[{"type":"data-x","data":1}]}`,
		`{"id":"x","role":"assistant","parts":[{"type":"tool-f","toolCallId":"a.b","state":"output-available","input":"ls","output":"x"}]}`,
		`{"id":"x","role":"assistant","parts":[{"type":"tool-f","toolCallId":"c","state":"output-error","rawInput":"{","errorText":"x"}]}`,
		`{"id":"x","role":"system","parts":[]}`, `{"id":"x","role":"system","parts":[{"type":"source-url","sourceId":"s","url":"u"}]}`,
		`{"id":"x","role":"assistant","parts":[{"type":"text","text":"\n"}]}`, `{"id":"x","role":"assistant","parts":[]}`, `{"role":"user","parts":[{"type":"text","text":"u"}]}`,
		`{"id":"x","role":"assistant","parts":[{"type":"step-start"},{"type":"reasoning","text":"hm","providerMetadata":{"anthropic":{"signature":""}}}]}`, `{"id":"x","role":"assistant","parts":[{"type":"reasoning","text":"hm"}]}`,
		`{"id":"x","role":"assistant","parts":[{"type":"tool-s","toolCallId":"s","state":"output-available","input":{},"output":1,"providerExecuted":true}]}`, `{"id":"x","role":"assistant","content":"hi!","toolInvocations":[{"state":"result","toolCallId":"a"}]}`,
		`{"id":"x","role":"assistant","parts":[{"type":"text","text":"t"},{"type":"file","mediaType":"image/png","url":"https://a.b"}]}`, `{"id":"x","role":"user","parts":[{"type":"file","mediaType":"audio/wav","url":"https://a.b"}]}`,
		`{"id":"x","role":"assistant","parts":[{"type":"tool-f","toolCallId":"e","state":"output-available","input":{},"output":1,"errorText":"e"}]}`, `{"id":"x","role":"assistant","parts":[{"type":"text","text":"t"},{"type":"source-url","sourceId":"s","url":"u"},{"type":"custom","kind":"a.b"}]}`,
	},
}

func checkDialect(t *testing.T, f session.Format, o wire.Options, view []wire.Stored, rng *rand.Rand) {
	t.Helper()
	made := wiretest.Render(f, view, o)
	for _, v := range wiretest.Validate(f, made.Bodies, o) {
		t.Errorf("%v: message %d breaks %s: %s\n%s\nof\n%s", o, v.Message, v.Rule, v.Detail, bytes.Join(made.Bodies, []byte("\n")), show(view))
		return
	}
	if err := same(made.Bodies, wiretest.Render(f, stored(f, made.Bodies), o)); err != nil {
		t.Errorf("%v: what was rendered is rendered otherwise: %v\n%s", o, err, bytes.Join(made.Bodies, []byte("\n")))
		return
	}
	if !validated(f, view, rng.IntN(len(view)+1)).ValidFor(o) {
		return
	}
	unchanged := slices.EqualFunc(view, made.Bodies, func(m wire.Stored, body []byte) bool { return bytes.Equal(m.Body, body) })
	if !unchanged || len(made.Repairs) > 0 {
		t.Errorf("%v: a view that is called valid has the repairs %v\n%s", o, made.Repairs, show(view))
	}
}

// TestAPlainViewIsFastForEveryServer has a conversation that no server minds: only Mistral's ids are not looked at.
func TestAPlainViewIsFastForEveryServer(t *testing.T) {
	t.Parallel()
	for f, bodies := range map[session.Format][]string{
		session.OpenAIChat: {`{"role":"system","content":"s"}`, `{"role":"user","content":"u"}`,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
			`{"role":"tool","tool_call_id":"c","content":"r"}`, `{"role":"assistant","content":"a"}`, `{"role":"user","content":"u"}`},
		session.Anthropic: {`{"role":"user","content":"u"}`, `{"role":"assistant","content":"a"}`, `{"role":"user","content":"u"}`},
		session.AISDK: {`{"id":"1","role":"user","parts":[{"type":"text","text":"u"}]}`,
			`{"id":"2","role":"assistant","parts":[{"type":"tool-f","toolCallId":"c","state":"output-available","input":{},"output":"x"},{"type":"text","text":"a"}]}`,
			`{"id":"3","role":"user","parts":[{"type":"text","text":"u"}]}`},
	} {
		for _, d := range provider.DialectsOf(f) {
			for checkpoint := 2; checkpoint <= len(bodies); checkpoint++ {
				must := []provider.Dialect{provider.DeepSeek, provider.Moonshot, provider.Google}
				needs := d == provider.Mistral || f != session.AISDK && slices.Contains(must, d)
				view := storedOf(f, bodies)
				if got := validated(f, view, checkpoint).ValidFor(wire.Options{Dialect: d}); got == needs {
					t.Errorf("%s, %s, checkpoint %d: valid %t", f, d, checkpoint, got)
				}
			}
		}
	}
}

// TestNamesTellDialects has the names that gateways and providers give models.
func TestNamesTellDialects(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][3]provider.Dialect{ // openai-chat, anthropic, ai-sdk
		"":                                   {},
		"my-model":                           {},
		"gpt-5":                              {"openai", "", "openai"},
		"azure/gpt-4o":                       {"openai", "", "openai"},
		"claude-sonnet-4-5":                  {"", "anthropic", "anthropic"},
		"us.anthropic.claude-opus-4-6-v1:0":  {"", "bedrock", "bedrock"},
		"bedrock/anthropic.claude-3-haiku":   {"", "bedrock", "bedrock"},
		"claude-sonnet-4-5@20250929":         {"", "vertex", "vertex"},
		"vertex_ai/claude-sonnet-4-5":        {"", "vertex", "vertex"},
		"groq/openai/gpt-oss-120b":           {"groq", "", "groq"},
		"groq/mistral-saba-24b":              {"groq", "", "groq"},
		"openrouter/deepseek/deepseek-r1":    {"deepseek", "deepseek", "deepseek"},
		"Qwen/Qwen3-32B":                     {"qwen", "qwen", "qwen"},
		"hosted_vllm/Qwen/Qwen3-32B":         {"vllm", "qwen", "vllm"},
		"mistralai/mistral-large-2411":       {"mistral", "", "mistral"},
		"devstral-2512":                      {"mistral", "", "mistral"},
		"gemini-2.5-pro":                     {"google", "", "google"},
		"together_ai/meta-llama/Llama-3.3":   {"zai", "zai", ""},
		"x-ai/grok-4":                        {"zai", "zai", ""},
		"openrouter/minimax/minimax-m3":      {"zai", "zai", ""},
		"xiaomi/mimo-v2.5-pro":               {"moonshot", "moonshot", ""},
		"kimi-for-coding":                    {"moonshot", "moonshot", ""},
		"openrouter/anthropic/claude-opus-5": {"openrouter", "anthropic", "anthropic"},
		"vertex_ai/gemini-3.5-flash":         {"google", "vertex", "google"},
	} {
		for i, f := range []session.Format{session.OpenAIChat, session.Anthropic, session.AISDK} {
			if got := provider.DialectOf(f, name); got != want[i] {
				t.Errorf("%s, %s: %q, not %q", name, f, got, want[i])
			}
		}
	}
}

// TestASignatureOfAnthropicsSurvivesTheAISDK has thinking that came by way of the AI SDK go to Anthropic, and back.
func TestASignatureOfAnthropicsSurvivesTheAISDK(t *testing.T) {
	t.Parallel()
	view := stored(session.AISDK, [][]byte{
		[]byte(`{"id":"1","role":"user","parts":[{"type":"text","text":"go"}]}`),
		[]byte(`{"id":"2","role":"assistant","parts":[{"type":"step-start"},{"type":"reasoning","text":"hm","providerMetadata":{"anthropic":{"signature":"c2ln"}}},` +
			`{"type":"reasoning","text":"","providerMetadata":{"anthropic":{"redactedData":"cmVk"}}},{"type":"text","text":"done"}]}`),
		[]byte(`{"id":"3","role":"user","parts":[{"type":"text","text":"on"}]}`),
	})
	made := wiretest.Render(session.Anthropic, view, wire.Options{})
	want := `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"redacted_thinking","data":"cmVk"},{"type":"text","text":"done"}]}`
	if string(made.Bodies[1]) != want || len(made.Repairs) > 0 {
		t.Errorf("repairs %v\n%s\nnot\n%s", made.Repairs, made.Bodies[1], want)
	}
	back := wiretest.Render(session.AISDK, stored(session.Anthropic, made.Bodies), wire.Options{})
	for _, part := range []string{`"signature":"c2ln"`, `"redactedData":"cmVk"`} {
		if !bytes.Contains(back.Bodies[1], []byte(part)) {
			t.Errorf("%s is lost: %s", part, back.Bodies[1])
		}
	}
	other := wiretest.Render(session.Anthropic, view, wire.Options{Model: "claude-opus-4-6", Author: "claude-sonnet-4-5"})
	if strings.Contains(string(other.Bodies[1]), "c2ln") {
		t.Errorf("another model gets the signature: %s", other.Bodies[1])
	}
}
