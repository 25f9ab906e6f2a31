package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/session"
)

// file writes a file and returns its name.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func secret(text string) config.Secret { return config.Secret{Key: llm.NewKey(text)} }

const twoModels = `{
	"providers": {
		"local": {"kind": "openai", "base_url": "http://127.0.0.1:11434/v1", "allow_private": true, "concurrency": 2},
		"openai": {"kind": "openai-responses", "key": "sk-hush"}
	},
	"models": {
		"small": {"provider": "local", "model": "qwen3:8b", "window": 32000},
		"big": {"provider": "openai", "model": "gpt-5", "window": 272000, "price": {"input": 1.25, "cached": 0.125, "output": 10}}
	},
	"budgets": {"day": {"cost": 5, "tokens": 0}}
}`

func TestTheModelsOfAFileAndOfTheEnvironment(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		given config.LLM
		want  []string // a model each: its name, provider, model and window
	}{
		{"nothing", config.LLM{}, nil},
		{"a key", config.LLM{OpenAI: config.OpenAI{Key: secret("sk-hush")}}, []string{"gpt-5-mini openai gpt-5-mini 272000"}},
		{"a server without a key", config.LLM{AllowPrivate: true, Summary: "small=qwen3:8b", OpenAI: config.OpenAI{BaseURL: "http://localhost:11434/v1"}},
			[]string{"small openai qwen3:8b 32768"}},
		{"its window", config.LLM{Window: 8000, Summary: "mine", OpenAI: config.OpenAI{BaseURL: "https://llm.example/v1"}}, []string{"mine openai mine 8000"}},
		{"the key of a file", config.LLM{Anthropic: config.Anthropic{KeyFile: file(t, "sk-hush\n")}}, []string{"claude-haiku-4-5 anthropic claude-haiku-4-5 200000"}},
		{"two providers", config.LLM{Summary: "claude-sonnet-4-5", OpenAI: config.OpenAI{Key: secret("a")}, Anthropic: config.Anthropic{Key: secret("b")}},
			[]string{"claude-sonnet-4-5 anthropic claude-sonnet-4-5 200000"}},
		{"a provider that is named", config.LLM{Summary: "s=anthropic/house-model", OpenAI: config.OpenAI{Key: secret("a")}, Anthropic: config.Anthropic{Key: secret("b")}},
			[]string{"s anthropic house-model 32768"}},
		{"a file", config.LLM{File: file(t, twoModels)}, []string{"big openai gpt-5 272000", "small local qwen3:8b 32000"}},
		{"both", config.LLM{File: file(t, twoModels), Anthropic: config.Anthropic{Key: secret("b")}},
			[]string{"big openai gpt-5 272000", "claude-haiku-4-5 anthropic claude-haiku-4-5 200000", "small local qwen3:8b 32000"}},
	} {
		c, err := test.given.Models()
		var got []string
		for _, name := range c.ModelNames() {
			m := c.Models[name]
			got = append(got, fmt.Sprint(name, " ", m.Provider, " ", m.Model, " ", m.Window))
		}
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", test.name, err, diff)
		}
	}
}

// A provider of the file stands for itself: the key of the environment is not sent to its address.
func TestAProviderOfTheFileHasNoKeyOfTheEnvironment(t *testing.T) {
	t.Parallel()
	c, err := config.LLM{
		File:   file(t, `{"providers":{"openai":{"kind":"openai","base_url":"https://gateway.example/v1"}}}`),
		OpenAI: config.OpenAI{Key: secret("sk-hush"), BaseURL: "https://api.openai.com/v1"},
	}.Models()
	if p := c.Providers["openai"]; err != nil || p.Key.Set() || p.BaseURL != "https://gateway.example/v1" {
		t.Errorf("%v: %+v", err, p)
	}
	if from := c.Sources["/providers/openai"]; from == config.Environment || c.Sources["/models/gpt-5-mini"] != config.Environment {
		t.Errorf("sources: %v", c.Sources)
	}
}

func TestWhatIsWrongWithModelsIsNamedAndNoKeyRepeated(t *testing.T) {
	t.Parallel()
	open := config.OpenAI{Key: secret("sk-hush")}
	for _, test := range []struct {
		name  string
		given config.LLM
		want  []string
	}{
		{"no file", config.LLM{File: "/nowhere.json"}, []string{"VARVE_LLM", "/nowhere.json"}},
		{"no JSON", config.LLM{File: file(t, `{"providers":{"a":{"key":"sk-hush"`)}, []string{"VARVE_LLM", "not JSON"}},
		{"names that are unknown or twice", config.LLM{File: file(t, `{"providers":{"a":{"kind":"openai","api_key":"sk-hush"},"a":{}},"modles":{}}`)},
			[]string{"/providers/a/api_key: it is not known here", "/providers/a: it is there twice", `/modles: it is not known here: did you mean "models"?`}},
		{"values of other types", config.LLM{File: file(t, `{"providers":{"a":{"kind":"openai","key":["sk-hush"],"concurrency":"sk-hush"},"b":3},"models":{"m":{"price":{"input":"sk-hush"}}}}`)},
			[]string{"/providers/a/key: it must be a string, not an array", "/providers/a/concurrency: it must be a whole number, not a string",
				"/providers/b: it must be an object, not a number", "/models/m/price/input: it must be a number, not a string"}},
		{"what cannot be", config.LLM{File: file(t, `{"providers":{"a":{"kind":"opnai"}},"models":{"m":{"provider":"b","window":5}},"budgets":{"run":{"calls":-1}}}`)},
			[]string{"/providers/a/kind", "/models/m/provider", "/models/m/window", "/budgets/run/calls: it must be from 0, which bounds nothing"}},
		{"a key twice", config.LLM{File: file(t, `{"providers":{"a":{"kind":"openai","key":"sk-hush","key_file":"/nowhere"}}}`)}, []string{"/providers/a/key and /providers/a/key_file"}},
		{"a key's file", config.LLM{File: file(t, `{"providers":{"a":{"kind":"openai","key_file":"/nowhere"}}}`)}, []string{"/providers/a/key_file: open /nowhere"}},
		{"a key's file without a key", config.LLM{File: file(t, `{"providers":{"a":{"kind":"openai","key_file":"/dev/null"}}}`)}, []string{"/providers/a/key_file: /dev/null has no key in it"}},
		{"a variable's file without a key", config.LLM{OpenAI: config.OpenAI{KeyFile: "/dev/null"}}, []string{"OPENAI_API_KEY_FILE: /dev/null has no key in it"}},
		{"numbers that cannot be", config.LLM{File: file(t, `{"budgets":{"day":{"calls":1.5,"cost":1e400}}}`)},
			[]string{"/budgets/day/calls: it must be a whole number, not a fraction", "/budgets/day/cost: it must be a number, not a fraction or a number as large as this one"}},
		{"variables twice", config.LLM{OpenAI: config.OpenAI{Key: secret("sk-hush"), KeyFile: "/nowhere"}}, []string{"OPENAI_API_KEY and OPENAI_API_KEY_FILE"}},
		{"a variable's file", config.LLM{Anthropic: config.Anthropic{KeyFile: "/nowhere"}}, []string{"ANTHROPIC_API_KEY_FILE: open /nowhere"}},
		{"an address of this machine", config.LLM{OpenAI: config.OpenAI{BaseURL: "http://localhost:1/v1"}}, []string{"OPENAI_BASE_URL", "VARVE_LLM_ALLOW_PRIVATE=true"}},
		{"a private one", config.LLM{Anthropic: config.Anthropic{BaseURL: "https://10.1.2.3"}}, []string{"ANTHROPIC_BASE_URL", "VARVE_LLM_ALLOW_PRIVATE=true"}},
		{"no address", config.LLM{OpenAI: config.OpenAI{BaseURL: "https://u:sk-hush@h/v1"}}, []string{"OPENAI_BASE_URL: it must have no user"}},
		{"a key of two lines", config.LLM{OpenAI: config.OpenAI{Key: secret("sk-hush\nsk-hush")}}, []string{"OPENAI_API_KEY: "}},
		{"a model without a provider", config.LLM{Summary: "gpt-5"}, []string{"VARVE_SUMMARY_MODEL", "OPENAI_API_KEY"}},
		{"a model that no policy can name", config.LLM{Summary: "qwen3:8b", OpenAI: open}, []string{"VARVE_SUMMARY_MODEL", "NAME=qwen3:8b"}},
		{"a window", config.LLM{Window: 7, OpenAI: open}, []string{"VARVE_SUMMARY_WINDOW"}},
	} {
		err := test.given.Validate()
		if err == nil {
			t.Errorf("%s: no error", test.name)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v\nwant %q", test.name, err, want)
			}
		}
		if strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: the error repeats a key: %v", test.name, err)
		}
	}
}

func TestABudgetIsBoundedUnlessTheOperatorSaysOtherwise(t *testing.T) {
	t.Parallel()
	var given config.Budgets
	if err := given.UnmarshalText([]byte(`{"day":{"calls":7},"run":{"cost":0}}`)); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		given    config.LLM
		run, day session.ModelBudget
	}{
		"by default": {config.LLM{}, session.ModelBudget{Calls: 60, Tokens: 2_000_000, CostMicros: 2_000_000}, session.ModelBudget{Calls: 1000, Tokens: 20_000_000, CostMicros: 20_000_000}},
		"a file":     {config.LLM{File: file(t, twoModels)}, session.ModelBudget{Calls: 60, Tokens: 2_000_000, CostMicros: 2_000_000}, session.ModelBudget{Calls: 1000, CostMicros: 5_000_000}},
		"a setting over a file": {config.LLM{File: file(t, twoModels), Budgets: given}, session.ModelBudget{Calls: 60, Tokens: 2_000_000},
			session.ModelBudget{Calls: 7, CostMicros: 5_000_000}},
	} {
		c, err := test.given.Models()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]session.ModelBudget{test.run, test.day}, []session.ModelBudget{c.Budgets.Run.Model(), c.Budgets.Day.Model()}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, bad := range []string{`{"week":{}}`, `{"day":{"tokens":1.5}}`, `7`, `{`} {
		if err := new(config.Budgets).UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestKeysAreReadFromFlagsAndNeverShown(t *testing.T) {
	t.Parallel()
	var settings struct {
		config.LLM `embed:""`
	}
	if _, err := kong.Must(&settings).Parse([]string{"--openai-key=sk-hush", `--llm-budgets={"day":{"cost":3}}`, "--anthropic-base-url=https://h"}); err != nil {
		t.Fatal(err)
	}
	if !settings.OpenAI.Key.Set() || *settings.Budgets.Day.Cost != 3 || settings.Anthropic.BaseURL != "https://h" {
		t.Errorf("%+v", settings)
	}
	c, err := settings.Models()
	if shown := fmt.Sprintf("%v %+v %#v %v", settings, settings, c, err); strings.Contains(shown, "hush") || err != nil {
		t.Error(shown)
	}
}
