package models_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/models"
)

func TestAModelIsFoundUnderEveryNameThatPlatformsGiveIt(t *testing.T) {
	t.Parallel()
	r := models.Embedded()
	for id, names := range map[string][]string{
		"gpt-4o":        {"gpt-4o", "gpt-4o-2024-08-06", "GPT-4o", "openai/gpt-4o-2024-08-06", "azure/gpt-4o", "openai:gpt-4o", "gpt-4o:free", "ft:gpt-4o-2024-08-06:acme::abc123"},
		"gpt-4o-mini":   {"gpt-4o-mini-2024-07-18", "azure/eu/gpt-4o-mini"},
		"gpt-4-turbo":   {"gpt-4-1106-preview", "gpt-4-turbo-2024-04-09"},
		"gpt-3.5-turbo": {"gpt-35-turbo", "azure/gpt-35-turbo-0125"},
		"gpt-4.1":       {"openrouter/openai/gpt-4.1"},
		"gpt-5.1":       {"gpt-5.1-2025-11-13", "gpt-5.1-high", "openai/gpt-5.1:nitro"},
		"gpt-5.6-sol":   {"gpt-5.6", "us.openai.gpt-5.6-sol", "bedrock/us.openai.gpt-5.6-sol", "openai/gpt-5.6-sol:batch", "openai/gpt-5.6-sol-fast", "azure_ai/gpt-5.6-sol"},
		"gpt-6.2-astra": {"gpt-6.2-astra", "global.openai.gpt-6.2-astra"},
		"o3":            {"o3-2025-04-16"},
		"o1-preview":    {"o1-preview-2024-09-12", "openai/o1-preview"}, // o1 has another window
		"gpt-oss-120b":  {"openai.gpt-oss-120b-1:0", "cerebras/gpt-oss-120b", "@cf/openai/gpt-oss-120b"},
		"claude-opus-5-5": {
			"claude-opus-5.5", "anthropic/claude-opus-5.5", "claude-5.5-opus", "us.anthropic.claude-opus-5-5", "global.anthropic.claude-opus-5-5",
			"arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-5-5", "claude-opus-5-5@default", "anthropic:claude-opus-5-5",
			"projects/p/locations/global/publishers/anthropic/models/claude-opus-5-5", "openrouter/anthropic/claude-opus-5.5:beta", "claude-opus-5-5[1m]",
			"vertex_ai/claude-opus-5-5", "databricks-claude-opus-5-5", "anthropic--claude-5.5-opus", "claude-opus-5-5-thinking", "azure_ai/claude-opus-5-5",
		},
		"claude-fable-5":    {"claude-fable-5", "anthropic/claude-fable-5"},
		"claude-fable-5-2":  {"anthropic/claude-fable-5.2", "eu.anthropic.claude-fable-5-2"},
		"claude-mythos-5-1": {"claude-mythos-5.1"},
		"claude-sonnet-4-5": {
			"claude-sonnet-4-5-20250929", "claude-sonnet-4-5@20250929", "anthropic/claude-sonnet-4.5", "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
			"anthropic.claude-sonnet-4-5-20250929-v1:0", "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-sonnet-4-5-20250929-v1:0",
			"bedrock/converse/jp.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-4.5-sonnet", "claude-sonnet-4-5-latest", "gateway.example/v1/anthropic/claude-sonnet-4-5",
			"amazon_bedrock:anthropic.claude-sonnet-4-5", "amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0",
			"claude-sonnet-4-5-20250929-thinking-32k", "claude-sonnet-4-5-1m",
		},
		"claude-3-5-sonnet":      {"claude-3-5-sonnet-v2@20241022", "claude-3-5-sonnet-latest", "claude-3.5-sonnet", "anthropic/claude-3.5-sonnet:beta", "anthropic.claude-3-5-sonnet-20241022-v2:0"},
		"claude-opus-4":          {"claude-opus-4-20250514", "claude-4-opus", "claude-opus-4-0"},
		"claude-instant-1.2":     {"anthropic.claude-instant-v1"},
		"claude-haiku-4-5":       {"google-vertex:claude-haiku-4-5@20251001", "my-registry:anthropic/claude-haiku-4.5", "vertexAnthropic:claude-haiku-4-5-20251001-v1:0"},
		"glm-4.7":                {"accounts/fireworks/models/glm-4p7"},
		"minimax-m2.5":           {"fireworks_ai/accounts/fireworks/models/minimax-m2p5"},
		"kimi-k2-0905":           {"groq/moonshotai/kimi-k2-instruct-0905"},
		"qwen3-coder":            {"Qwen/Qwen3-Coder-480B-A35B-Instruct", "qwen.qwen3-coder-480b-a35b-v1:0"},
		"claude-opus-4-1":        {"copilot/claude-opus-41", "claude-opus-4-1-20250805@default", "us.anthropic.claude-opus-4-1-20250805-v1:0"},
		"claude-opus-4-6":        {"anthropic.claude-opus-4-6-v1", "au.anthropic.claude-opus-4-6-v1"},
		"gemini-2.5-pro":         {"google/gemini-2.5-pro", "gemini-2.5-pro-exp-03-25", "models/gemini-2.5-pro"},
		"gemini-2.5-flash":       {"gemini-2.5-flash-preview-09-2025", "gemini/gemini-2.5-flash"},
		"gemini-1.5-pro":         {"vertex_ai/gemini-1.5-pro-002"},
		"gemini-3.5-flash":       {"google/gemini-3.5-flash:batch", "projects/p/locations/l/publishers/google/models/gemini-3.5-flash"},
		"grok-4":                 {"x-ai/grok-4", "grok-4-0709"},
		"grok-4-fast":            {"xai/grok-4-fast-reasoning", "grok-4-fast-non-reasoning"},
		"llama-3.3-70b-instruct": {"meta-llama/Llama-3.3-70B-Instruct", "groq/llama-3.3-70b-versatile", "us.meta.llama3-3-70b-instruct-v1:0", "hosted_vllm/meta-llama/Llama-3.3-70B-Instruct"},
		"llama-3.1-70b-instruct": {"meta-llama/Meta-Llama-3.1-70B-Instruct"},
		"mistral-large-2411":     {"mistralai/mistral-large-2411"},
		"qwen3-max":              {"qwen/qwen3-max", "dashscope/qwen3-max"},
		"qwen3-235b-a22b-2507":   {"Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "qwen.qwen3-235b-a22b-2507-v1:0"},
		"deepseek-chat":          {"deepseek/deepseek-chat"},
		"deepseek-v4-pro":        {"deepseek-ai/DeepSeek-V4-Pro", "deepseek/deepseek-v4-pro:free", "accounts/fireworks/models/deepseek-v4-pro"},
		"kimi-k3":                {"moonshotai/kimi-k3", "us.moonshotai.kimi-k3", "moonshotai/Kimi-K3"},
		"kimi-k2-thinking":       {"moonshotai/kimi-k2-thinking", "moonshot.kimi-k2-thinking"},
		"glm-5.3":                {"z-ai/glm-5.3", "zai-org/GLM-5.3", "global.zai.glm-5.3", "zai/glm-5.3"},
		"minimax-m3":             {"MiniMax-M3", "minimax/minimax-m3", "MiniMaxAI/MiniMax-M3"},
		"gemini-3-pro-preview":   {"gemini-3-pro", "google/gemini-3-pro-preview-11-2025"},
		"gemini-3-flash-preview": {"google/gemini-3-flash"},
		"grok-4.1-fast":          {"grok-4-1-fast-reasoning", "xai/grok-4-1-fast-non-reasoning-latest"},
		"devstral-2512":          {"mistral.devstral-2-123b", "mistral/devstral-2"},
		"mistral-large-2512":     {"mistral.mistral-large-3-675b-instruct"},
		"qwen3.8-27b":            {"qwen-3.8-27b", "cerebras/qwen-3.8-27b"},
		"qwen3-32b":              {"alibaba/qwen-3-32b", "Qwen/Qwen3-32B"},
		"palmyra-x5":             {"us.writer.palmyra-x5-v1:0"},
		"command-r-plus-08-2024": {"cohere.command-r-plus-v1:0", "command-r-plus"},
	} {
		for _, name := range names {
			if m, ok := r.Find(name); !ok || m.ID != id {
				t.Errorf("%s is %q, %v; want %s", name, m.ID, ok, id)
			}
			if got := models.Canonical(name); got != id {
				t.Errorf("%s is %s to those that ask for the model alone; want %s", name, got, id)
			}
		}
	}
	for _, name := range []string{
		"", "/", "gpt", "gpt-4o-", "gpt-4o-2024", "qwen3-30b-a3b-thinking-2507x", "gpt-4o-turbo", "gpt-4o/", "claude", "@20240620", "my-gpt-4o", "claude-opus", "gpt-5-nope", "us.", ":", "-v1:0", strings.Repeat("a/", 5000),
		"arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abcdef",
	} {
		if m, ok := r.Find(name); ok {
			t.Errorf("%q was taken for %s", name, m.ID)
		}
	}
}

func TestEveryModelIsFoundUnderEverySpellingOfItsNames(t *testing.T) {
	t.Parallel()
	r := models.Embedded()
	for _, m := range r.Models() {
		for _, name := range append([]string{m.ID}, m.Aliases...) {
			for _, form := range []string{
				"%s", "openrouter/vendor/%s:free", "us.%s", "%s@default", "%s-20260131", "%s-2026-01-31", "bedrock/global.openai.%s-v1:0", "azure/%s", "openai:%s",
				"arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.%s", "projects/p/locations/l/publishers/x/models/%s", " %s ",
			} {
				spelt := fmt.Sprintf(form, name)
				for _, spelt := range []string{spelt, strings.ToUpper(spelt), strings.ReplaceAll(spelt, "_", "-")} {
					if got, want := models.Canonical(spelt), cmp.Or(m.SameAs, m.ID); got != want {
						t.Errorf("%s is %s, not %s", spelt, got, want)
					}
				}
			}
		}
	}
}

// TestNamesThatMoveHaveTheFiguresOfTheirDay has aliases that providers and gateways point at newer models in time.
func TestNamesThatMoveHaveTheFiguresOfTheirDay(t *testing.T) {
	t.Parallel()
	r := models.Embedded()
	for name, want := range map[string]int{
		"mistral-large-latest": 1_048_576, "mistral/mistral-medium-latest": 262_144, "mistralai:mistral-small-latest": 262_144, "codestral-latest": 256_000,
		"magistral-small-latest": 128_000, "magistral-medium-latest": 262_144, "devstral-latest": 262_144, "devstral-medium-latest": 262_144, "devstral-small-2505": 128_000,
		"ministral-3b-latest": 131_072, "ministral-8b-latest": 262_144, "pixtral-large-latest": 128_000, "voxtral-small-latest": 32_768, "open-mixtral-8x7b": 32_000,
		"gemini-flash-latest": 1_048_576, "models/gemini-pro-latest": 1_048_576, "gemini/gemini-flash-lite-latest": 1_048_576, "~google/gemini-flash-latest": 1_048_576,
		"~anthropic/claude-opus-latest": 1_000_000, "openrouter/~anthropic/claude-haiku-latest": 1_000_000, "claude-sonnet-latest": 1_000_000, "~anthropic/claude-fable-latest": 1_000_000,
		"chat-latest": 272_000, "openai/gpt-chat-latest": 272_000, "~openai/gpt-sol-latest": 922_000, "~openai/gpt-mini-latest": 272_000, "gpt-daybreak-blue-latest": 922_000,
		"~x-ai/grok-latest": 500_000, "~moonshotai/kimi-latest": 1_048_576, "~z-ai/glm-latest": 1_048_576, "~deepseek/deepseek-pro-latest": 1_048_576, "deepseek-flash-latest": 1_048_576,
		"accounts/fireworks/routers/minimax-latest": 512_000, "mistral/devstral-small-latest": 256_000, "ministral-14b-latest": 262_144, "chatgpt-4o-latest": 128_000,
		"codex-mini-latest": 200_000, "qwen-turbo-latest": 1_000_000, "opus": 1_000_000, "opus[1m]": 1_000_000, "sonnet": 1_000_000, "haiku": 1_000_000,
	} {
		if m, ok := r.Find(name); !ok || m.Window() != want {
			t.Errorf("%s has a window of %d, %v; want %d", name, m.Window(), ok, want)
		}
	}
	for _, name := range []string{"~anthropic/claude-opus-latest", "claude-haiku-latest", "opus", "sonnet[1m]"} {
		if m := models.Of(name); !m.BindsThinking || !m.RefusesPrefill || m.SameAs == "" {
			t.Errorf("%+v", m)
		}
	}
	if m := models.Of("chat-latest"); m.Family != "gpt" {
		t.Errorf("%+v", m)
	}
}

func TestSpellingsOfAModelThatIsNotKnownAreOne(t *testing.T) {
	t.Parallel()
	for want, names := range map[string][]string{
		"claude-zeus-9-1": {"claude-zeus-9.1", "anthropic/claude-zeus-9.1:beta", "us.anthropic.claude-zeus-9-1-20290101-v1:0", "claude-zeus-9-1@20290101", "CLAUDE-ZEUS-9-1"},
		"claude-opus-9":   {"claude-9-opus", "claude-opus-9-20290101", "google-vertex:claude-opus-9@20290101"},
		"my-own":          {"my-own", "hosted_vllm/my-own", "My.Own"},
		"gpt-9":           {"openai/gpt-9", "gpt-9-2029-01-01"},
		"":                {"", "/", "x/"},
		"@20240620":       {"@20240620"},
	} {
		for _, name := range names {
			if got := models.Canonical(name); got != want {
				t.Errorf("%q is %q, want %q", name, got, want)
			}
		}
	}
}

func TestAnUnknownModelHasTheFactsOfItsRelatives(t *testing.T) {
	t.Parallel()
	newest := models.Facts{Family: "claude", MaxImages: 600, RefusesPrefill: true, SystemInMiddle: true, BindsThinking: true}
	for name, want := range map[string]models.Facts{
		"claude-opus-6": newest, "anthropic/claude-sonnet-5.7": newest, "claude-zeus-1": newest,
		"claude-opus-4-9":   {Family: "claude", MaxImages: 600, RefusesPrefill: true, SystemInMiddle: true},
		"claude-3-9-sonnet": {Family: "claude", MaxImages: 100},
		"gemini-9-flash":    {Family: "gemini"}, "mistral-large-9": {Family: "mistral"}, "open-mixtral-9": {Family: "mistral"}, "o4-large": {Family: "gpt"},
		"my-own": {}, "": {},
	} {
		got := models.Of(name)
		if got.Facts != want || got.Window() != 0 {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func TestClaudesDifferAsAnthropicDocuments(t *testing.T) {
	t.Parallel()
	type facts struct{ prefill, middle, binds bool }
	for name, want := range map[string]facts{
		"claude-2.1": {}, "claude-3-opus-20240229": {}, "claude-sonnet-4-5": {}, "claude-opus-4-1": {}, "claude-haiku-4.5": {},
		"claude-opus-4-6": {prefill: true}, "claude-sonnet-5": {prefill: true}, "claude-opus-4-8": {prefill: true, middle: true},
		"claude-opus-5": {prefill: true, middle: true}, "claude-fable-5": {prefill: true, middle: true}, "claude-mythos-5": {prefill: true, middle: true},
		"claude-fable-5-1": {true, true, true}, "claude-fable-5.2": {true, true, true}, "claude-mythos-5-1": {true, true, true},
		"claude-opus-5-5": {true, true, true}, "claude-sonnet-5-5": {true, true, true}, "us.anthropic.claude-haiku-5-5": {true, true, true},
	} {
		m := models.Of(name)
		if got := (facts{m.RefusesPrefill, m.SystemInMiddle, m.BindsThinking}); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func TestTheWindowIsWhatTheInputMayHave(t *testing.T) {
	t.Parallel()
	r := models.Embedded()
	for name, want := range map[string]int{
		"gpt-4o": 128_000, "gpt-4.1": 1_047_576, "gpt-5": 272_000, "o4-mini": 200_000, "claude-sonnet-4-5": 200_000, "claude-opus-4-6": 1_000_000,
		"gemini-1.5-pro": 2_097_152, "gemini-2.5-flash": 1_048_576, "deepseek-chat": 128_000, "grok-3": 131_072,
		"gpt-5.6": 922_000, "gpt-6.2-sol": 922_000, "claude-opus-5-5": 1_000_000, "claude-fable-5-1": 1_000_000, "gemini-4-neon": 1_048_576,
		"deepseek-v4-pro": 1_000_000, "kimi-k3": 1_048_576, "glm-5.3": 1_000_000, "minimax-m3": 1_000_000, "qwen4-max": 1_000_000, "grok-4.7": 500_000,
		"claude-sonnet-4-5[1m]": 1_000_000,
	} {
		if m, ok := r.Find(name); !ok || m.Window() != want {
			t.Errorf("%s has a window of %d, %v; want %d", name, m.Window(), ok, want)
		}
	}
}

func TestEveryEmbeddedFigureHasASource(t *testing.T) {
	t.Parallel()
	all := models.Embedded().Models()
	providers := map[string]bool{}
	for _, m := range all {
		providers[m.Provider] = true
		cached := slices.ContainsFunc(m.Sources, func(s models.Source) bool { return s.Of == "cache" })
		if cached != (m.Cache != nil) {
			t.Errorf("%s: cache %+v, sources %+v", m.ID, m.Cache, m.Sources)
		}
		if c := m.Cache; c != nil && (c.ReadPrice <= 0 || c.ReadPrice >= 1 || c.LongSeconds != 0 && c.LongSeconds <= c.ShortSeconds) {
			t.Errorf("%s: cache %+v", m.ID, c)
		}
		if undated, ok := models.Embedded().Find(m.ID); !ok || undated.ID != m.ID {
			t.Errorf("%s is found as %s", m.ID, undated.ID)
		}
	}
	if len(all) < 300 || len(providers) < 20 {
		t.Errorf("%d models of %d providers", len(all), len(providers))
	}
}

func TestNamesThatAreAlmostRightAreSuggested(t *testing.T) {
	t.Parallel()
	r := models.Embedded()
	for name, want := range map[string]string{
		"gpt4o": "gpt-4o", "gpt-5o": "gpt-4o", "claude-sonnet-4.5x": "claude-sonnet-4-5", "openai/gpt-41": "gpt-4.1", "gemini-2.5-por": "gemini-2.5-pro",
	} {
		if near := r.Near(name, 3); !slices.Contains(near, want) || len(near) > 3 {
			t.Errorf("%s is near %v, want %s among them", name, near, want)
		}
	}
	for _, name := range []string{"", "/", "my-own-model", strings.Repeat("x", 10_000)} {
		if near := r.Near(name, 3); len(near) != 0 {
			t.Errorf("%.20q is near %v", name, near)
		}
	}
}

const source = `"sources":[{"of":"window","name":"us","date":"2026-01-31"}]`

func TestAnOperatorsModelsAreMergedOverTheEmbeddedOnes(t *testing.T) {
	t.Parallel()
	r, err := models.Embedded().Extend([]byte(`{"providers":{"me":["mine"],"Acme":["ACME-EU"]},"models":[
		{"id":"Acme-1","provider":"Acme","context_tokens":16000,` + source + `},
		{"id":"GPT-4o","provider":"openai","context_tokens":64000,` + source + `},
		{"id":"my-model","provider":"me","aliases":["mm"],"context_tokens":32000,"max_input_tokens":30000,
		 "cache":{"short_seconds":60,"read_price":0.5},` + source + `},
		{"id":"prod-chat","provider":"azure","same_as":"gpt-5.6-sol"},
		{"id":"eu/claude-slow","provider":"us","same_as":"claude-opus-5-5","context_tokens":90000,` + source + `}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{
		"gpt-4o": 64_000, "mine/mm-20260131": 30_000, "acme/acme-1": 16_000, "acme-eu/Acme-1": 16_000, "gpt-4o-mini": 128_000, "x-ai/grok-3": 131_072, "prod-chat": 922_000,
	} {
		if m, ok := r.Find(name); !ok || m.Window() != want {
			t.Errorf("%s has a window of %d, %v; want %d", name, m.Window(), ok, want)
		}
	}
	slow := r.Of("EU/Claude-Slow")
	if slow.Window() != 90_000 || slow.SameAs != "claude-opus-5-5" || !slow.BindsThinking || slow.Cache == nil {
		t.Errorf("%+v", slow)
	}
	for _, wrong := range []string{"nobody", "prod-chat"} {
		if _, err := r.Extend([]byte(`{"models":[{"id":"x","provider":"p","same_as":"` + wrong + `"}]}`)); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("the same as %s: %v", wrong, err)
		}
	}
	if n := len(r.Models()) - len(models.Embedded().Models()); n != 4 {
		t.Errorf("%d more models", n)
	}
	if m, _ := models.Embedded().Find("gpt-4o"); m.Window() != 128_000 {
		t.Error("the embedded registry has changed")
	}
}

func TestEverythingThatIsWrongWithAFileIsNamed(t *testing.T) {
	t.Parallel()
	for document, want := range map[string][]string{
		``:            {"/: unexpected end of JSON input"},
		`null`:        {"/: it must be an object"},
		`[]`:          {"/: cannot unmarshal array"},
		`{} {}`:       {"/: invalid character '{' after top-level value"},
		`{"model":1}`: {"/model: it is not known here: there are families, models, providers"},
		`{"models":[{"id":"a","provider":"p","contxt":1,"aliases":"b","context_tokens":"9","sources":[]},
		            {"id":"","context_tokens":999,"max_input_tokens":1000,"max_output_tokens":-1},
		            {"id":"c","provider":"p","context_tokens":10000000.5,` + source + `},
		            {"id":"d","provider":"p","context_tokens":2000,"cache":{"ttl":1,"read_price":-1},"sources":[{"of":"price","date":"2026-13-01"}]}]}`: {
			"/models/0/contxt: it is not known", "/models/0/aliases: cannot", "/models/0/context_tokens: cannot",
			"/models/1: name 0 of the model must have 1 to 255 bytes, not 0", "/models/1/provider", "/models/1/context_tokens: it must be from 1000 to 10000000, not 999",
			"/models/1/max_input_tokens", "/models/1/max_output_tokens", "/models/1/sources: it must have the source", "/models/2/context_tokens: cannot",
			"/models/3/cache/ttl", "/models/3/cache/read_price", "/models/3/sources/0/of", "/models/3/sources/0/name", "/models/3/sources/0/date",
		},
		`{"models":[{"id":"a","provider":"p","aliases":["gpt-4o"],"context_tokens":2000,` + source + `},{"id":"b","provider":"p","aliases":["A"],"context_tokens":2000,` + source + `}]}`: {
			`"gpt-4o" names both gpt-4o and a`, `"a" names both a and b`,
		},
	} {
		_, err := models.Embedded().Extend([]byte(document))
		if err == nil {
			t.Errorf("%s was accepted", document)
			continue
		}
		var missing []string
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				missing = append(missing, w)
			}
		}
		if lines := strings.Count(err.Error(), "\n") + 1; lines != len(want) || missing != nil {
			t.Errorf("%s\n%v\n%d problems, want %d with %v", document, err, lines, len(want), missing)
		}
	}
}

func TestAModelsFiguresAreThoseOfItsEntry(t *testing.T) {
	t.Parallel()
	got, _ := models.Embedded().Find("claude-haiku-4-5")
	want := models.Model{
		ID: "claude-haiku-4-5", Provider: "anthropic", Aliases: []string{}, ContextTokens: 200_000, MaxOutputTokens: 64_000,
		Cache: &models.Cache{ShortSeconds: 300, LongSeconds: 3600, ReadPrice: 0.1, WritePrice: 1.25, LongWritePrice: 2},
		Sources: []models.Source{
			{Of: "window", Name: "models.dev", Date: "2025-10-15"}, {Of: "cache", Name: "Anthropic, Prompt caching", Date: "2026-11-21"},
			{Of: "cache", Name: "Anthropic, Pricing", Date: "2026-11-21"},
		},
		Facts: models.Facts{Family: "claude", MaxImages: 100},
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLiteLLMsListIsReadAsItIs(t *testing.T) {
	t.Parallel()
	r, err := models.Embedded().Extend([]byte(`{
		"sample_spec": {"litellm_provider": "one of https://docs.litellm.ai/docs/providers", "max_input_tokens": "max input tokens", "mode": "one of: chat"},
		"1024-x-1024/dall-e-2": {"litellm_provider": "openai", "mode": "image_generation"},
		"claude-opus-5-5": {"litellm_provider": "anthropic", "mode": "chat", "max_input_tokens": 900000, "max_output_tokens": 128000, "cache_read_input_token_cost": 2e-07},
		"us.anthropic.claude-opus-5-5": {"litellm_provider": "bedrock_converse", "mode": "chat", "max_input_tokens": 800000},
		"claude-opus-4-0": {"litellm_provider": "anthropic", "mode": "chat", "max_input_tokens": 190000},
		"groq/llama-3.3-70b-versatile": {"litellm_provider": "groq", "mode": "chat", "max_input_tokens": 32768, "max_tokens": 8192},
		"minimax/MiniMax-M3": {"litellm_provider": "minimax", "mode": "chat", "max_input_tokens": 500000},
		"acme/brand-new": {"litellm_provider": "acme", "mode": "responses", "max_tokens": 64000.0},
		"gpt-3.5-turbo": {"litellm_provider": "openai", "mode": "chat", "max_input_tokens": 16385},
		"gpt-3.5-turbo-0125": {"litellm_provider": "openai", "mode": "chat", "max_input_tokens": 16000},
		"acme/Twice": {"litellm_provider": "acme", "mode": "chat", "max_input_tokens": 9000},
		"acme/twice": {"litellm_provider": "acme", "mode": "chat", "max_input_tokens": 9000},
		"fallback_generalizations": {"rules": []}, "last_updated": "2026-07-24",
		"acme/tiny": {"litellm_provider": "acme", "mode": "chat", "max_input_tokens": 77}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{
		"claude-opus-5-5": 900_000, "US.anthropic.claude-opus-5-5": 800_000, "eu.anthropic.claude-opus-5-5": 900_000, "claude-opus-4-0": 190_000, "claude-opus-4": 200_000,
		"gpt-3.5-turbo": 16_385, "gpt-3.5-turbo-0125": 16_000, "gpt-3.5-turbo-1106": 16_385, "acme/Twice": 9000,
		"groq/llama-3.3-70b-versatile": 32_768, "meta-llama/llama-3.3-70b-instruct": 128_000, "minimax/MiniMax-M3": 500_000, "acme/brand-new": 64_000, "gpt-4o": 128_000,
	} {
		if m, ok := r.Find(name); !ok || m.Window() != want {
			t.Errorf("%s has a window of %d, %v; want %d", name, m.Window(), ok, want)
		}
	}
	if _, ok := r.Find("acme/tiny"); ok {
		t.Error("a model of 77 tokens is known")
	}
	bedrock := r.Of("us.anthropic.claude-opus-5-5")
	if bedrock.SameAs != "claude-opus-5-5" || !bedrock.BindsThinking || bedrock.Cache == nil {
		t.Errorf("%+v", bedrock)
	}
}
