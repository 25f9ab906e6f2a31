package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/process"
)

// configCommand has the settings of every process, and so takes the flags of varve up.
type configCommand struct {
	everything    `embed:""`
	config.Memory `embed:""`
	config.Log    `embed:""`
}

// Validate reports everything that is wrong at once, as varve up does.
func (c *configCommand) Validate() error {
	return (&upCommand{everything: c.everything, Memory: c.Memory, Log: c.Log}).Validate()
}

// Run prints the settings and the language models.
func (c *configCommand) Run(parsed *kong.Context, settings *config.Client, out io.Writer) error {
	models, err := c.LLM.Models()
	if err != nil {
		return err
	}
	processes, err := processesBySetting()
	if err != nil {
		return err
	}
	shown := configJSON{Settings: []settingJSON{}, Providers: []providerJSON{}, Models: []modelJSON{}}
	for _, flag := range parsed.Selected().Flags {
		if of := processes[flag.Name]; of != nil && len(flag.Envs) > 0 {
			shown.Settings = append(shown.Settings, settingOf(parsed, flag, of))
		}
	}
	shown.models(models)
	return printValue(out, settings.JSON, "config", shown)
}

// configJSON are the settings in force.
type configJSON struct {
	Settings  []settingJSON          `json:"settings"`
	Providers []providerJSON         `json:"providers"`
	Models    []modelJSON            `json:"models"`
	Budgets   map[string]budgetsJSON `json:"budgets"`
}

// settingJSON is a setting: its value, "set" or "not set" for a key, and where that comes from.
type settingJSON struct {
	Name      string   `json:"name"` // of the variable
	Flag      string   `json:"flag"`
	Processes []string `json:"processes"`
	Value     string   `json:"value"`
	Source    string   `json:"source"` // flag, environment or default
}

type providerJSON struct {
	Name         string   `json:"name"`
	Kind         llm.Kind `json:"kind"`
	BaseURL      string   `json:"base_url"`
	Key          llm.Key  `json:"key"`
	Headers      []string `json:"headers"`
	AllowPrivate bool     `json:"allow_private"`
	Source       string   `json:"source"` // environment, or the name of the file
}

type modelJSON struct {
	Name     string    `json:"name"`
	Provider string    `json:"provider"`
	Model    string    `json:"model"`
	Window   int       `json:"window_tokens"`
	Price    llm.Price `json:"price"`
	Source   string    `json:"source"`
}

type budgetsJSON struct {
	Calls  int64   `json:"calls"`
	Tokens int64   `json:"tokens"`
	Cost   float64 `json:"cost"`
}

// models adds the language models.
func (c *configJSON) models(of config.Configured) {
	for _, name := range of.ProviderNames() {
		p := of.Providers[name]
		one := providerJSON{
			Name: name, Kind: p.Kind, BaseURL: p.BaseURL, Key: p.Key, Headers: []string{}, AllowPrivate: p.AllowPrivate,
			Source: of.Sources["/providers/"+name],
		}
		for header := range p.Headers {
			one.Headers = append(one.Headers, header)
		}
		slices.Sort(one.Headers)
		c.Providers = append(c.Providers, one)
	}
	for _, name := range of.ModelNames() {
		m := of.Config.Models[name]
		c.Models = append(c.Models, modelJSON{
			Name: name, Provider: m.Provider, Model: m.Model, Window: m.Window, Price: m.Price,
			Source: of.Sources["/models/"+name],
		})
	}
	c.Budgets = map[string]budgetsJSON{}
	for name, b := range map[string]config.Budget{"run": of.Budgets.Run, "day": of.Budgets.Day} {
		c.Budgets[name] = budgetsJSON{Calls: *b.Calls, Tokens: *b.Tokens, Cost: *b.Cost}
	}
}

// processesBySetting returns the processes that have a setting, by the name of its flag.
func processesBySetting() (map[string][]string, error) {
	found := map[string][]string{}
	for _, p := range []struct {
		name     string
		settings any
	}{
		{"api", &process.APICommand{}},
		{"worker", &process.WorkerCommand{}},
		{"varve up", &upCommand{}},
	} {
		parser, err := kong.New(p.settings)
		if err != nil {
			return nil, err
		}
		for _, flag := range parser.Model.Flags {
			found[flag.Name] = append(found[flag.Name], p.name)
		}
	}
	return found, nil
}

// settingOf returns a setting with its source.
func settingOf(parsed *kong.Context, flag *kong.Flag, processes []string) settingJSON {
	s := settingJSON{
		Name: flag.Envs[0], Flag: "--" + flag.Name, Processes: processes, Value: shownValue(flag), Source: "default",
	}
	if _, set := os.LookupEnv(s.Name); set {
		s.Source = config.Environment
	}
	for _, element := range parsed.Path {
		if element.Flag == flag && !element.Resolved {
			s.Source = "flag"
		}
	}
	return s
}

// shownValue returns a setting's value as it may be shown: of what is or may hold a key, whether it is set.
func shownValue(flag *kong.Flag) string {
	value := fmt.Sprint(flag.Target.Interface())
	if list, ok := flag.Target.Interface().([]string); ok {
		value = strings.Join(list, ",")
	}
	switch {
	case flag.Hidden && (value == "" || value == "not set"):
		return "not set"
	case flag.Hidden:
		return "set"
	case strings.HasSuffix(flag.Name, "database-url") || flag.Name == "owner-url":
		return shownDatabase(value)
	case flag.Target.Kind() == reflect.Struct: // quotas or budgets
		if flag.Target.IsZero() {
			return ""
		}
		document, _ := json.Marshal(flag.Target.Interface()) // has only numbers
		return string(document)
	}
	return value
}

// shownDatabase returns which database a URL names, and as whom: a URL may hold passwords in several places.
func shownDatabase(url string) string {
	if url == "" {
		return ""
	}
	parsed, err := pgxpool.ParseConfig(url)
	if err != nil {
		return "set"
	}
	to := parsed.ConnConfig
	return fmt.Sprintf("host=%s port=%d dbname=%s user=%s", to.Host, to.Port, to.Database, to.User)
}
