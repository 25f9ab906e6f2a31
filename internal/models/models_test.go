package models_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/models"
)

func TestAModelIsFoundUnderEveryNameThatProvidersGiveIt(t *testing.T) {
	t.Parallel()
	r := models.Embedded()
	for name, want := range map[string]string{
		"gpt-4o":                                       "gpt-4o",
		"gpt-4o-2024-08-06":                            "gpt-4o",
		"gpt-4o-mini-2024-07-18":                       "gpt-4o-mini",
		"GPT-4o":                                       "gpt-4o",
		"openai/gpt-4o-2024-08-06":                     "gpt-4o",
		"azure/gpt-4o":                                 "gpt-4o",
		"openrouter/openai/gpt-4.1":                    "gpt-4.1",
		"claude-sonnet-4-5-20250929":                   "claude-sonnet-4-5",
		"claude-sonnet-4-5@20250929":                   "claude-sonnet-4-5",
		"claude-3-5-sonnet-v2@20241022":                "claude-3-5-sonnet",
		"anthropic/claude-sonnet-4.5":                  "claude-sonnet-4-5",
		"claude-3-5-sonnet-latest":                     "claude-3-5-sonnet",
		"claude-opus-4-20250514":                       "claude-opus-4",
		"claude-opus-4-1-20250805@default":             "claude-opus-4-1",
		"google/gemini-2.5-pro":                        "gemini-2.5-pro",
		"vertex_ai/gemini-1.5-pro-002":                 "gemini-1.5-pro",
		"x-ai/grok-4":                                  "grok-4",
		"meta-llama/Llama-3.3-70B-Instruct":            "llama-3.3-70b-instruct",
		"mistralai/mistral-large-2411":                 "mistral-large-2411",
		"qwen/qwen3-max":                               "qwen3-max",
		"o3-2025-04-16":                                "o3",
		"gpt-5.1-2025-11-13":                           "gpt-5.1",
		"deepseek/deepseek-chat":                       "deepseek-chat",
		"gateway.example/v1/anthropic/claude-opus-4-6": "claude-opus-4-6",
	} {
		if m, ok := r.Find(name); !ok || m.ID != want {
			t.Errorf("%s is %q, %v; want %s", name, m.ID, ok, want)
		}
	}
	for _, name := range []string{
		"", "/", "gpt", "gpt-4o-", "gpt-4o-turbo", "groq/gpt-4o", "google/gpt-4o", "/gpt-4o", "gpt-4o/", "gpt-4o:free", "gpt-4o-2024", "claude", "@20240620", "my-gpt-4o",
	} {
		if m, ok := r.Find(name); ok {
			t.Errorf("%q was taken for %s", name, m.ID)
		}
	}
}

func TestTheWindowIsWhatTheInputMayHave(t *testing.T) {
	t.Parallel()
	r := models.Embedded()
	for name, want := range map[string]int{
		"gpt-4o": 128_000, "gpt-4.1": 1_047_576, "gpt-5": 272_000, "o4-mini": 200_000, "claude-sonnet-4-5": 200_000, "claude-opus-4-6": 1_000_000,
		"gemini-1.5-pro": 2_097_152, "gemini-2.5-flash": 1_048_576, "deepseek-chat": 128_000, "grok-3": 131_072,
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
	if len(all) < 60 || len(providers) != 8 {
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
		 "cache":{"short_seconds":60,"read_price":0.5},` + source + `}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{
		"gpt-4o": 64_000, "mine/mm-20260131": 30_000, "acme/acme-1": 16_000, "acme-eu/Acme-1": 16_000, "gpt-4o-mini": 128_000, "x-ai/grok-3": 131_072,
	} {
		if m, ok := r.Find(name); !ok || m.Window() != want {
			t.Errorf("%s has a window of %d, %v; want %d", name, m.Window(), ok, want)
		}
	}
	if n := len(r.Models()) - len(models.Embedded().Models()); n != 2 {
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
		`{"model":1}`: {"/model: it is not known here: there are models, providers"},
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
		ID: "claude-haiku-4-5", Provider: "anthropic", Aliases: []string{"claude-haiku-4.5"}, ContextTokens: 200_000, MaxOutputTokens: 64_000,
		Cache: &models.Cache{ShortSeconds: 300, LongSeconds: 3600, ReadPrice: 0.1, WritePrice: 1.25, LongWritePrice: 2},
		Sources: []models.Source{
			{Of: "window", Name: "models.dev", Date: "2025-10-15"}, {Of: "cache", Name: "Anthropic, Prompt caching", Date: "2026-11-21"},
			{Of: "cache", Name: "Anthropic, Pricing", Date: "2026-11-21"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
