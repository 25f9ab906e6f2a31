package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/doctor"
)

// doctorCommand has the settings of every process, as varve config has them.
type doctorCommand struct {
	configCommand `embed:""`
}

// Help returns what is shown below the flags.
func (c *doctorCommand) Help() string { return helpText("doctor") }

// Validate returns nil: what is wrong with the settings is printed with the rest.
func (c *doctorCommand) Validate() error { return nil }

// Run prints what it has looked at.
func (c *doctorCommand) Run(ctx context.Context, parsed *kong.Context, settings *config.Client, out io.Writer) error {
	at := doctor.Installation{
		Settings: c.configCommand.Validate(), Unknown: unknownSettings(parsed.Kong, os.Environ()),
		Database: c.Database, Data: settings.Data, AdminURL: c.AdminURL, Language: c.LLM, API: apiAddress(settings),
		Named: settings.URL != "", Unsealed: c.Console != "off" && c.Secret == "",
	}
	if running, err := urlFor(settings, c.Database, adminLogin); err == nil && c.Database.URL == "" {
		at.Database.URL, at.Private = running, true
	}
	found := doctor.Examine(ctx, at)
	if err := printValue(out, settings.JSON, "doctor", found); err != nil {
		return err
	}
	return wrong(doctor.Failures(found))
}

// apiAddress returns where an API is said to be, "" if nothing says it.
func apiAddress(settings *config.Client) string {
	if settings.URL != "" {
		return strings.TrimSuffix(settings.URL, "/")
	}
	if _, err := os.Stat(filepath.Join(settings.Data, urlFile)); err != nil {
		return ""
	}
	return upURL(settings.Data)
}

// ownVariables are variables that no flag has.
var ownVariables = []string{"VARVE_PG_BIN"}

// unknownSettings returns the variables that have the name of a setting that there is not, mostly misspelt ones.
func unknownSettings(parser *kong.Kong, environment []string) (unknown []string) {
	known := slices.Clone(ownVariables)
	_ = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error { // no error of ours
		if flag, ok := node.(*kong.Flag); ok {
			known = append(known, flag.Envs...)
		}
		return next(nil)
	})
	for _, variable := range environment {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "VARVE_") && !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

type readyCommand struct {
	Address string `arg:"" optional:"" default:"http://127.0.0.1:8080" help:"Of an API, or of a worker's metrics."`
}

// probePatience bounds how long a healthcheck waits.
const probePatience = 3 * time.Second

// Run asks the process. It needs no key.
func (c *readyCommand) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	if err := doctor.Ready(ctx, strings.TrimSuffix(c.Address, "/")); err != nil {
		return &failure{exitUnavailable, err.Error()}
	}
	return nil
}
