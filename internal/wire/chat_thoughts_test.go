package wire_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// thoughts has each member that servers have for reasoning.
var thoughts = map[string]string{
	"reasoning_content": `"reasoning_content":"my thought"`,
	"reasoning":         `"reasoning":"my thought"`,
	"reasoning_details": `"reasoning_details":[{"type":"reasoning.text","text":"my thought","signature":"s"}]`,
	"thinking_blocks":   `"thinking_blocks":[{"type":"thinking","thinking":"my thought","signature":"s"}]`,
}

// TestReasoningIsReadFromEveryMember counts it, and reads it in the other formats.
func TestReasoningIsReadFromEveryMember(t *testing.T) {
	t.Parallel()
	for name, member := range thoughts {
		message := `{"role":"assistant","content":"done",` + member + `}`
		long := strings.ReplaceAll(message, "my thought", strings.Repeat("my thought ", 1000))
		if found, err := wire.Inspect(session.OpenAIChat, []byte(long)); err != nil || found.Tokens < 1500 {
			t.Errorf("%s: %d tokens, %v", name, found.Tokens, err)
		}
		for _, target := range []session.Format{session.Anthropic, session.Gemini, session.OpenAIResponses, session.AISDK} {
			made := wiretest.Render(target, storedOf(session.OpenAIChat, []string{`{"role":"user","content":"u"}`, message}), wire.Options{})
			if n := bytes.Count(bytes.Join(made.Bodies, nil), []byte("my thought")); n != 1 {
				t.Errorf("%s in %s: %d times in %s", name, target, n, made.Bodies)
			}
		}
	}
}

// TestReasoningIsWrittenWhereTheServerReadsIt has the member that each server reads.
func TestReasoningIsWrittenWhereTheServerReadsIt(t *testing.T) {
	t.Parallel()
	for dialect, want := range map[provider.Dialect]string{
		provider.DeepSeek: "reasoning_content", provider.Moonshot: "reasoning_content", provider.Qwen: "reasoning_content", provider.ZAI: "reasoning_content",
		provider.LlamaCpp: "reasoning_content", provider.VLLM: "reasoning", provider.Groq: "reasoning", provider.Ollama: "reasoning", provider.OpenRouter: "reasoning",
	} {
		for name, member := range thoughts {
			own := storedOf(session.OpenAIChat, []string{`{"role":"user","content":"u"}`, `{"role":"assistant","content":"done",` + member + `}`, `{"role":"user","content":"u"}`})
			made := wiretest.Render(session.OpenAIChat, own, wire.Options{Dialect: dialect})
			text := string(made.Bodies[1])
			kept := dialect == provider.OpenRouter && strings.Contains(text, `"`+name+`":[`)
			if !strings.Contains(text, `"`+want+`":"my thought"`) && !kept || strings.Count(text, "my thought") != 1 {
				t.Errorf("%s for %s: %s", name, dialect, text)
			}
		}
	}
}

// TestAGatewayGetsItsListsBack has reasoning_details, with what the server of the model's own dialect cannot read, in
// views for models of several dialects behind OpenRouter, and for the servers themselves.
func TestAGatewayGetsItsListsBack(t *testing.T) {
	t.Parallel()
	list := `"reasoning_details":[{"type":"reasoning.encrypted","data":"ZZ","id":"c","format":"xai-responses-v1"},{"type":"reasoning.text","text":"hm"}]`
	log := []string{`{"role":"user","content":"u"}`, `{"role":"assistant","content":"done","reasoning":"hm",` + list + `}`, `{"role":"user","content":"u"}`}
	for _, model := range []string{"x-ai/grok-4.5", "moonshotai/kimi-k3", "deepseek/deepseek-v4-pro", "z-ai/glm-5", "qwen/qwen3-max", "google/gemini-3.5-flash", "anthropic/claude-opus-5.5"} {
		for prefix, want := range map[string]bool{"openrouter/": true, "": strings.HasPrefix(model, "google/") || strings.HasPrefix(model, "anthropic/")} {
			o := wire.Options{Model: prefix + model}
			made := wiretest.Render(session.OpenAIChat, storedOf(session.OpenAIChat, log), o)
			if got := strings.Contains(string(made.Bodies[1]), list); got != want {
				t.Errorf("%s%s: %s", prefix, model, made.Bodies[1])
			}
			if found := wiretest.Validate(session.OpenAIChat, made.Bodies, o); len(found) > 0 {
				t.Errorf("%s%s: %v", prefix, model, found)
			}
		}
	}
	if a, b := provider.ModelRules(session.OpenAIChat, "", "openrouter/x-ai/grok-4.5"), provider.ModelRules(session.OpenAIChat, "", "x-ai/grok-4.5"); a == b {
		t.Errorf("both have the rules %q, and other views", a)
	}
}

// TestThoughtsOfOthersAreThinkingWhereNobodyChecksSignatures renders what was thought in every other format for models
// that take thinking without a signature in Anthropic's format, and for Claude.
func TestThoughtsOfOthersAreThinkingWhereNobodyChecksSignatures(t *testing.T) {
	t.Parallel()
	said := map[session.Format]string{
		session.OpenAIResponses: `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"my thought"}]}`,
		session.Gemini:          `{"role":"model","parts":[{"text":"my thought","thought":true},{"text":"done"}]}`,
		session.AISDK:           `{"id":"m","role":"assistant","parts":[{"type":"reasoning","text":"my thought"},{"type":"text","text":"done"}]}`,
	}
	want := `{"type":"thinking","thinking":"my thought","signature":""}`
	check := func(f session.Format, message string) {
		log := append(storedOf(session.OpenAIChat, []string{`{"role":"user","content":"u"}`}), storedOf(f, []string{message})...)
		log = append(log, storedOf(session.OpenAIChat, []string{`{"role":"assistant","content":"x"}`, `{"role":"user","content":"u"}`})...)
		for _, model := range []string{"kimi-k3", "deepseek-v4-pro", "qwen3-max", "glm-5", "minimax-m2", "mimo-v2", "openrouter/moonshotai/kimi-k3", "claude-opus-5-5", ""} {
			o := wire.Options{Model: model}
			made := wiretest.Render(session.Anthropic, log, o)
			text := string(bytes.Join(made.Bodies, nil))
			if takes := model != "" && !strings.HasPrefix(model, "claude"); strings.Contains(text, want) != takes || strings.Count(text, "my thought") != 1 {
				t.Errorf("%s for %q: %s", f, model, text)
			}
			if found := wiretest.Validate(session.Anthropic, made.Bodies, o); len(found) > 0 {
				t.Errorf("%s for %q: %v", f, model, found)
			}
		}
	}
	for f, message := range said {
		check(f, message)
	}
	for _, member := range thoughts {
		check(session.OpenAIChat, `{"role":"assistant","content":"done",`+member+`}`)
	}
}

// TestThinkingIsAddedWhereTheServerRequiresIt has a message of the assistant that came without it.
func TestThinkingIsAddedWhereTheServerRequiresIt(t *testing.T) {
	t.Parallel()
	const call = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`
	log := []string{`{"role":"user","content":"u"}`, `{"role":"assistant","content":"x"}`, `{"role":"user","content":"u"}`, call, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}`}
	for model, want := range map[string]int{"deepseek-v4-pro": 2, "kimi-k3": 1, "qwen3-max": 0, "claude-opus-4-5": 0, "moonshot-v1-8k": 0} {
		o := wire.Options{Model: model}
		view := storedOf(session.Anthropic, log)
		made := wiretest.Render(session.Anthropic, view, o)
		if n := bytes.Count(bytes.Join(made.Bodies, nil), []byte(`{"type":"thinking","thinking":" ","signature":""}`)); n != want || len(made.Repairs) != want {
			t.Errorf("%s: %d thoughts, want %d: %s %v", model, n, want, made.Bodies, made.Repairs)
		}
		if found := wiretest.Validate(session.Anthropic, made.Bodies, o); len(found) > 0 {
			t.Errorf("%s: %v", model, found)
		}
		if (len(wiretest.Validate(session.Anthropic, bytesOfStrings(log), o)) > 0) != (want > 0) {
			t.Errorf("%s: the log is taken as it is, or is not", model)
		}
		if validated(session.Anthropic, view, 0).Valid(model) != (want == 0) {
			t.Errorf("%s: called valid, or not", model)
		}
	}
}

// TestSystemMessagesInTheMiddleKeepTheirMembers has until when one holds, and the effort from it on.
func TestSystemMessagesInTheMiddleKeepTheirMembers(t *testing.T) {
	t.Parallel()
	const system = `{"role":"system","content":"s","clear_at":"next_user_message","output_config":{"effort":"low"}}`
	log := []string{`{"role":"user","content":"u"}`, system, `{"role":"assistant","content":"x"}`, `{"role":"user","content":"u"}`}
	made := wiretest.Render(session.Anthropic, storedOf(session.Anthropic, log), wire.Options{Model: "claude-opus-5-5"})
	if string(made.Bodies[1]) != system || len(made.Repairs) > 0 {
		t.Errorf("%s %v", made.Bodies, made.Repairs)
	}
	made = wiretest.Render(session.Anthropic, storedOf(session.Anthropic, log), wire.Options{Model: "claude-sonnet-4-5"})
	if text := string(bytes.Join(made.Bodies, nil)); strings.Contains(text, "clear_at") || strings.Contains(text, "effort") {
		t.Errorf("a note of the user has %s", text)
	}
}

// TestAnEmptyThoughtIsNone has thinking without a text, for a server that requires some, and a call without its function
// for one that knows no other members.
func TestAnEmptyThoughtIsNone(t *testing.T) {
	t.Parallel()
	const user, call = `{"role":"user","content":"u"}`, `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":null,"extra_content":{"google":{"thought_signature":"s"}}}]}`
	for body, test := range map[string]struct{ model, want string }{
		`{"role":"assistant","content":[{"type":"thinking","thinking":""},{"type":"text","text":"so"}]}`:   {"deepseek-v4-pro", `"reasoning_content":" "`},
		`{"role":"assistant","content":[{"type":"thinking","thinking":[]},{"type":"text","text":"so"}]}`:   {"deepseek-v4-pro", `"reasoning_content":" "`},
		`{"role":"assistant","content":[{"type":"thinking","thinking":null},{"type":"text","text":"so"}]}`: {"deepseek-v4-pro", `"reasoning_content":" "`},
		call: {"mistral-large-latest", `"name":"unknown_`},
	} {
		o := wire.Options{Model: test.model}
		made := wiretest.Render(session.OpenAIChat, storedOf(session.OpenAIChat, []string{user, body, user}), o)
		if got := string(made.Bodies[1]); !strings.Contains(got, test.want) {
			t.Errorf("%s lacks %s", got, test.want)
		}
		if found := wiretest.Validate(session.OpenAIChat, made.Bodies, o); len(found) > 0 {
			t.Errorf("%s: %v\n%s", body, found, made.Bodies[1])
		}
	}
}
