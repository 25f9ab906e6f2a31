package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fine returns a provider and a model without mistakes, and a configuration for them.
func fine() (Config, Provider, Definition) {
	p := Provider{Kind: OpenAI, BaseURL: "https://gateway.example.com/v1", Key: NewKey("sk-hidden")}
	d := Definition{Provider: "gate", Model: "vendor/model:1", Window: 128_000}
	return Config{Providers: map[string]Provider{}, Models: map[string]Definition{}}, p, d
}

// header returns a change that adds a header.
func header(name string, value Key) func(*Provider, *Definition) {
	return func(p *Provider, _ *Definition) { p.Headers = map[string]Key{name: value} }
}

func TestAConfigurationSaysWhatIsWrongAndWhere(t *testing.T) {
	t.Parallel()
	hot := 3.0
	for want, change := range map[string]func(*Provider, *Definition){
		"": func(*Provider, *Definition) {},
		`/providers/gate/kind: "open-ai" is unknown`:           func(p *Provider, _ *Definition) { p.Kind = "open-ai" },
		`/providers/gate/base_url: it must be an address`:      func(p *Provider, _ *Definition) { p.BaseURL = "gateway" },
		`/providers/gate/base_url: it must be an addresS`:      func(p *Provider, _ *Definition) { p.BaseURL = "https://" },
		`/providers/gate/base_url: it must have no user`:       func(p *Provider, _ *Definition) { p.BaseURL = "https://u:hidden@h" },
		`/providers/gate/base_url: it must have no User`:       func(p *Provider, _ *Definition) { p.BaseURL = "https://h/?key=hidden" },
		`/providers/gate/base_url: http is only for a server`:  func(p *Provider, _ *Definition) { p.BaseURL = "http://h" },
		`/providers/gate/base_url: it must begin with https`:   func(p *Provider, _ *Definition) { p.BaseURL = "ftp://h" },
		`/providers/gate/key: it must have no control`:         func(p *Provider, _ *Definition) { p.Key = NewKey("hid\nden") },
		`/providers/gate/headers/Host: it must be the name`:    header("Host", NewKey("x")),
		`/providers/gate/headers/a b: it must be the name`:     header("a b", NewKey("x")),
		`/providers/gate/headers/X: its value must be a text`:  header("X", NewKey("hidden\r\nY: 1")),
		`/providers/gate/headers/Y: its value must be a text`:  header("Y", Key{}),
		`/providers/gate/concurrency: -1 must be from 0`:       func(p *Provider, _ *Definition) { p.Concurrency = -1 },
		`/providers/gate/timeout_seconds: 3601 must be from 0`: func(p *Provider, _ *Definition) { p.Timeout = 3601 },
		`/providers/gate/attempts: 11 must be from 0`:          func(p *Provider, _ *Definition) { p.Attempts = 11 },
		`/providers/gate/breaker/failures: -1 must be from 0`:  func(p *Provider, _ *Definition) { p.Breaker.Failures = -1 },
		`/providers/gate/breaker/seconds: -1 must be from 0`:   func(p *Provider, _ *Definition) { p.Breaker.Seconds = -1 },
		`/models/small/provider: "other" is not configured`:    func(_ *Provider, d *Definition) { d.Provider = "other" },
		`/models/small/model: it must be the name`:             func(_ *Provider, d *Definition) { d.Model = "" },
		`/models/small/window: 0 must be from 1000`:            func(_ *Provider, d *Definition) { d.Window = 0 },
		`/models/small/max_output: 128000 must be from 0 to`:   func(_ *Provider, d *Definition) { d.MaxOutput = 128_000 },
		`/models/small/reasoning_tokens: -1 must be from 0`:    func(_ *Provider, d *Definition) { d.Reasoning = -1 },
		`/models/small/price/input: -1 must be from 0`:         func(_ *Provider, d *Definition) { d.Price.Input = -1 },
		`/models/small/price/cached: 1e+07 must be from 0`:     func(_ *Provider, d *Definition) { d.Price.Cached = 1e7 },
		`/models/small/price/output: -1 must be from 0`:        func(_ *Provider, d *Definition) { d.Price.Output = -1 },
		`/models/small/temperature: 3 must be from 0 to 2`:     func(_ *Provider, d *Definition) { d.Temperature = &hot },
		`/models/small/temperature: 3 must be from 0 to 1`:     func(p *Provider, d *Definition) { p.Kind, d.Temperature = Anthropic, &hot },
		`/models/small/effort: "low" must be a level`:          func(p *Provider, d *Definition) { p.Kind, d.Effort = Anthropic, "low" },
		`/models/small/limit: "tokens" must be max_tokens`:     func(_ *Provider, d *Definition) { d.Limit = "tokens" },
		`/models/small/limit: "max_tokens" must be`: func(p *Provider, d *Definition) {
			p.Kind, d.Limit = OpenAIResponses, maxTokens
		},
	} {
		c, p, d := fine()
		change(&p, &d)
		c.Providers["gate"], c.Models["small"] = p, d
		err := c.Validate()
		got := fmt.Sprint(errors.Join(err))
		if want == "" {
			if err != nil {
				t.Errorf("a fine configuration: %v", err)
			}
			continue
		}
		if !strings.HasPrefix(strings.ToLower(got), strings.ToLower(want)) || strings.Contains(got, "\n") {
			t.Errorf("%q, want %q alone", got, want)
		}
		if strings.Contains(got, "hidden") {
			t.Errorf("%q has a secret", got)
		}
	}
}

func TestAllMistakesAreNamedAtOnce(t *testing.T) {
	t.Parallel()
	c, p, d := fine()
	p.Kind, d.Window = "", 1
	c.Providers["the gate"], c.Models["-small"] = p, d
	if got := strings.Count(fmt.Sprint(c.Validate()), "\n") + 1; got != 5 {
		t.Errorf("%d mistakes, want 5:\n%v", got, c.Validate())
	}
	if _, err := Open(c, quiet); err == nil {
		t.Error("Open takes it")
	}
}

func TestAKeyIsNeverShown(t *testing.T) {
	t.Parallel()
	c, p, d := fine()
	p.Headers = map[string]Key{"X-Gate": NewKey("also-hidden")}
	c.Providers["gate"], c.Models["small"] = p, d
	models, err := Open(c, quiet)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	logger.Info("a key", "key", p.Key, "provider", p, "config", c, "pointer", &c, "models", models)
	slog.New(slog.NewTextHandler(&log, nil)).Info("a key", "key", p.Key, "provider", p, "config", c)
	document, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	unreadable := json.Unmarshal([]byte(`{"providers":{"p":{"key":["hidden"]}}}`), &Config{})
	hold := struct{ private Key }{p.Key} // fmt cannot call the methods of what is in there
	shown := string(document) + log.String() + fmt.Sprint(unreadable)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		shown += fmt.Sprintf(verb+verb+verb+verb+verb, p.Key, &p.Key, c, models, hold)
		shown += fmt.Sprintf(verb+verb, models.named["small"].wire, &hold)
	}
	for _, secret := range []string{"hidden", fmt.Sprintf("%x", "hidden"), fmt.Sprintf("%d", []byte("hidden"))[1:20]} {
		if strings.Contains(shown, secret) {
			t.Errorf("%q is shown: %s", secret, shown)
		}
	}
	if unreadable == nil || !strings.Contains(string(document), `"key":"set"`) {
		t.Errorf("%v, %s", unreadable, document)
	}
}

func TestAKeyIsReadFromAFileAsItStandsThere(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"sk-1\n": "sk-1", "  \r\n": "", "": "", "sk 2": "sk 2"} {
		if got := NewKey(text); got.reveal() != want || got.Set() != (want != "") {
			t.Errorf("NewKey(%q): %q", text, got.reveal())
		}
	}
	var p Provider
	err := json.Unmarshal([]byte(`{"key":"sk-3"}`), &p)
	if err != nil || p.Key.reveal() != "sk-3" {
		t.Errorf("%v, %q", err, p.Key.reveal())
	}
}

func TestWhatAConfigurationLeavesOut(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"": maxCompletionTokens, "https://eu.api.openai.com/v1": maxCompletionTokens,
		"https://mine.openai.azure.com/openai/v1": maxCompletionTokens,
		"https://openrouter.ai/api/v1":            maxTokens, "https://openai.com.example.net/v1": maxTokens,
	} {
		p := Provider{Kind: OpenAI, BaseURL: base}.withDefaults()
		d := Definition{Window: 128_000}.withDefaults(p)
		if d.Limit != want || d.MaxOutput != 4096 || !strings.HasSuffix(p.BaseURL, "/v1/") {
			t.Errorf("%s: %+v, want %s", base, d, want)
		}
	}
	p := Provider{Kind: Anthropic}.withDefaults()
	want := Provider{Kind: Anthropic, BaseURL: "https://api.anthropic.com/", Concurrency: 4, Timeout: 120, Attempts: 3,
		Breaker: Breaker{Failures: 5, Seconds: 30}}
	if diff := cmp.Diff(want, p, cmp.Comparer(func(a, b Key) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestModelsByName(t *testing.T) {
	t.Parallel()
	c, p, d := fine()
	c.Providers["gate"], c.Models["small"], c.Models["large"] = p, d, d
	models, err := Open(c, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"large", "small"}, models.Names()); diff != "" {
		t.Error(diff)
	}
	var none *Models
	if _, ok := none.Named("small"); ok || none.Names() != nil {
		t.Error("no models at all have one")
	}
}
