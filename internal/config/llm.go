package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/models"
)

// LLM says which language models may be asked for summaries, with what keys, and what they may cost: a file, or the
// variables that the providers' own programs have for one provider. Start at Models.
type LLM struct {
	Registry `embed:""`

	File         string  `name:"llm" env:"VARVE_LLM" help:"JSON file of language models for summaries."`
	Summary      string  `name:"summary-model" env:"VARVE_SUMMARY_MODEL" help:"Model of OPENAI_… or ANTHROPIC_…."`
	Window       int     `name:"summary-window" env:"VARVE_SUMMARY_WINDOW" help:"Its window in tokens, if not known."`
	AllowPrivate bool    `name:"llm-allow-private" env:"VARVE_LLM_ALLOW_PRIVATE" help:"It may be at a private address."`
	Budgets      Budgets `name:"llm-budgets" env:"VARVE_LLM_BUDGETS" help:"JSON of what models may cost."`

	OpenAI    OpenAI    `embed:"" prefix:"openai-"`
	Anthropic Anthropic `embed:"" prefix:"anthropic-"`
}

// OpenAI is a server that speaks Chat Completions.
type OpenAI struct {
	BaseURL string `env:"OPENAI_BASE_URL" help:"Server that speaks Chat Completions."`
	Key     Secret `env:"OPENAI_API_KEY" hidden:"" help:"Its key."`
	KeyFile string `env:"OPENAI_API_KEY_FILE" help:"File with its key."`
}

// Anthropic is a server that speaks Messages.
type Anthropic struct {
	BaseURL string `env:"ANTHROPIC_BASE_URL" help:"Server that speaks Anthropic's Messages."`
	Key     Secret `env:"ANTHROPIC_API_KEY" hidden:"" help:"Its key."`
	KeyFile string `env:"ANTHROPIC_API_KEY_FILE" help:"File with its key."`
}

// Secret is a key as a setting.
type Secret struct{ llm.Key }

// UnmarshalText reads the key.
func (s *Secret) UnmarshalText(text []byte) error {
	s.Key = llm.NewKey(string(text))
	return nil
}

// own is a provider that the environment configures.
type own struct {
	name, prefix string // of the provider, and of its variables
	kind         llm.Kind
	baseURL      string
	key          llm.Key
	keyFile      string
	model        string // that is asked unless VARVE_SUMMARY_MODEL names another
	price        llm.Price
}

// owns returns the providers that the environment can configure. The prices are those that came with the models.
func (l LLM) owns() []own {
	return []own{
		{"openai", "OPENAI", llm.OpenAI, l.OpenAI.BaseURL, l.OpenAI.Key.Key, l.OpenAI.KeyFile,
			"gpt-5-mini", llm.Price{Input: 0.25, Cached: 0.025, Output: 2}},
		{"anthropic", "ANTHROPIC", llm.Anthropic, l.Anthropic.BaseURL, l.Anthropic.Key.Key, l.Anthropic.KeyFile,
			"claude-haiku-4-5", llm.Price{Input: 1, Cached: 0.1, Output: 5}},
	}
}

func (o own) isSet() bool { return o.baseURL != "" || o.key.Set() || o.keyFile != "" }

// Environment is the source of what variables have configured, in Sources.
const Environment = "environment"

// Configured are the models with their budgets, and where each provider and model comes from: Environment, or the file.
type Configured struct {
	llm.Config
	Budgets Budgets
	Sources map[string]string // by /providers/NAME and /models/NAME
}

// Models returns the models of the file, and that of the environment besides. A provider or a model of the file counts
// before one of the environment with the same name. The error names all mistakes, and repeats no key.
func (l LLM) Models() (Configured, error) {
	c := Configured{Budgets: defaultBudgets, Sources: map[string]string{}}
	c.Providers = map[string]llm.Provider{}
	c.Config.Models = map[string]llm.Definition{}
	err := errors.Join(l.readFile(&c), l.environment(&c))
	if l.Budgets.over(&c.Budgets); err != nil {
		return Configured{}, err
	}
	return c, errors.Join(c.Config.Validate(), c.Budgets.check())
}

// Validate reads everything, the files of the keys included.
func (l LLM) Validate() error {
	_, err := l.Models()
	_, registryErr := l.Load()
	return errors.Join(err, registryErr)
}

// Asked returns the name of the model that the environment asks for, "" for none: by its name or by an address, and not
// only by a key, which may be there for another program.
func (l LLM) Asked() (string, error) {
	c, err := l.Models()
	if l.Summary == "" && l.OpenAI.BaseURL == "" && l.Anthropic.BaseURL == "" {
		return "", err
	}
	for _, name := range c.ModelNames() {
		if c.Sources["/models/"+name] == Environment {
			return name, err
		}
	}
	return "", err
}

// readFile reads the file of models and the files of keys that it names.
func (l LLM) readFile(c *Configured) error {
	if l.File == "" {
		return nil
	}
	const setting = "--llm (VARVE_LLM)"
	document, err := os.ReadFile(l.File)
	if err != nil {
		return fmt.Errorf("%s: %w", setting, err)
	}
	var file llmFile
	if err := readStrict(document, &file); err != nil {
		return fmt.Errorf("%s names %s, in which\n%w", setting, l.File, err)
	}
	var problems []error
	for name, provider := range file.Providers {
		provider.Key, err = secretOf("/providers/"+name+"/key", "_file", provider.Key, provider.KeyFile)
		problems = append(problems, err)
		c.Providers[name] = provider
		c.Sources["/providers/"+name] = l.File
	}
	for name, model := range file.Models {
		c.Config.Models[name] = model
		c.Sources["/models/"+name] = l.File
	}
	file.Budgets.over(&c.Budgets)
	if err := errors.Join(append(problems, c.Config.Validate(), c.Budgets.check())...); err != nil {
		return fmt.Errorf("%s names %s, in which\n%w", setting, l.File, err)
	}
	return nil
}

// llmFile is the document of VARVE_LLM.
type llmFile struct {
	Providers map[string]llm.Provider   `json:"providers"`
	Models    map[string]llm.Definition `json:"models"`
	Budgets   Budgets                   `json:"budgets"`
}

// secretOf returns a key that is given as it is or in a file, by settings with this name, and this ending for the file.
func secretOf(name, ending string, key llm.Key, file string) (llm.Key, error) {
	if file == "" {
		return key, nil
	}
	if key.Set() {
		return key, fmt.Errorf("%s and %s%s are both given: leave one out", name, name, ending)
	}
	text, err := os.ReadFile(file)
	key = llm.NewKey(string(text))
	if err == nil && !key.Set() {
		err = fmt.Errorf("%s has no key in it", file)
	}
	if err != nil {
		return key, fmt.Errorf("%s%s: %w", name, ending, err)
	}
	return key, nil
}

// environment adds the providers whose variables are set, and their model.
func (l LLM) environment(c *Configured) error {
	var set []own
	var problems []error
	for _, o := range l.owns() {
		if !o.isSet() {
			continue
		}
		set = append(set, o)
		if _, there := c.Providers[o.name]; there {
			continue
		}
		provider, err := l.provider(o)
		problems = append(problems, err)
		c.Providers[o.name] = provider
		c.Sources["/providers/"+o.name] = Environment
	}
	name, model, err := l.model(set)
	if _, there := c.Config.Models[name]; err == nil && name != "" && !there {
		c.Config.Models[name] = model
		c.Sources["/models/"+name] = Environment
	}
	return errors.Join(append(problems, err)...)
}

// provider returns the provider that variables configure.
func (l LLM) provider(o own) (llm.Provider, error) {
	key, err := secretOf(o.prefix+"_API_KEY", "_FILE", o.key, o.keyFile)
	p := llm.Provider{Kind: o.kind, BaseURL: o.baseURL, Key: key, KeyFile: o.keyFile, AllowPrivate: l.AllowPrivate}
	if err == nil && !l.AllowPrivate && isPrivate(o.baseURL) {
		err = fmt.Errorf("%s_BASE_URL is an address of this machine or of a private network, or has no https: such a "+
			"server is asked only with VARVE_LLM_ALLOW_PRIVATE=true (--llm-allow-private)", o.prefix)
	}
	if err == nil {
		err = inVariables(o, llm.Config{Providers: map[string]llm.Provider{o.name: p}}.Validate())
	}
	return p, err
}

// inVariables returns an error about a provider with the names of its variables in the places of its members.
func inVariables(o own, err error) error {
	if err == nil {
		return nil
	}
	at := "/providers/" + o.name
	return errors.New(strings.NewReplacer(at+"/base_url", o.prefix+"_BASE_URL", at+"/key", o.prefix+"_API_KEY").
		Replace(err.Error()))
}

// isPrivate reports whether a URL is without TLS, or has a host that is visibly private. Where a name leads shows when
// it is asked.
func isPrivate(base string) bool {
	parsed, err := url.Parse(base)
	if err != nil || parsed.Host == "" {
		return false // what is wrong with it is said elsewhere
	}
	host := strings.TrimSuffix(parsed.Hostname(), ".")
	addr, err := netip.ParseAddr(host)
	return parsed.Scheme == "http" || strings.EqualFold(host, "localhost") ||
		err == nil && (addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast())
}

// A model that variables name has this window if nobody knows it.
const unknownWindow = 32_768

var modelName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// model returns the model of the providers that are set: the one that VARVE_SUMMARY_MODEL names as [NAME=]MODEL or
// [NAME=]PROVIDER/MODEL, or the provider's usual one.
func (l LLM) model(set []own) (name string, d llm.Definition, err error) {
	if len(set) == 0 {
		return "", d, check(l.Summary == "" || l.File != "", "--summary-model (VARVE_SUMMARY_MODEL)", l.Summary,
			"left out, or accompanied by a provider: OPENAI_BASE_URL, OPENAI_API_KEY, ANTHROPIC_BASE_URL or "+
				"ANTHROPIC_API_KEY")
	}
	name, id, named := strings.Cut(l.Summary, "=")
	if !named {
		name, id = "", l.Summary
	}
	of := set[0]
	if len(set) > 1 && strings.HasPrefix(id, "claude") {
		of = set[1]
	}
	for _, o := range set {
		if rest, ok := strings.CutPrefix(id, o.name+"/"); ok {
			of, id = o, rest
		}
	}
	id = cmp.Or(id, of.model)
	if name = cmp.Or(name, id); !modelName.MatchString(name) {
		return "", d, fmt.Errorf("--summary-model (VARVE_SUMMARY_MODEL) is %q: policies cannot name the model so: "+
			"write NAME=%s with a NAME of letters, digits, '.', '_' and '-'", l.Summary, id)
	}
	known, _ := models.Current().Find(id)
	d = llm.Definition{Provider: of.name, Model: id, Window: cmp.Or(l.Window, known.Window(), unknownWindow)}
	if id == of.model {
		d.Price = of.price
	}
	return name, d, check(l.Window == 0 || l.Window >= 1000 && l.Window <= 10_000_000,
		"--summary-window (VARVE_SUMMARY_WINDOW)", l.Window, "1000 to 10000000")
}

// ProviderNames returns the names of all providers, sorted.
func (c Configured) ProviderNames() []string { return slices.Sorted(maps.Keys(c.Providers)) }

// ModelNames returns the names of all models, sorted.
func (c Configured) ModelNames() []string { return slices.Sorted(maps.Keys(c.Config.Models)) }
