package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/terminal"
)

type summariesCommand struct {
	Show    summariesShowCommand    `cmd:"" default:"withargs" help:"Print a checkpoint's summaries, and writers."`
	Rebuild summariesRebuildCommand `cmd:"" help:"Delete what models have answered, and compact from the log."`
}

// Help returns what is shown below the flags.
func (c *summariesCommand) Help() string { return helpText("summaries") }

type summariesShowCommand struct {
	Session    string `arg:"" help:"Session id."`
	Checkpoint *int   `help:"The checkpoint's number; the newest if not given."`
	Text       bool   `help:"Print the texts, too."`
}

// Run prints the summaries.
func (c *summariesShowCommand) Run(ctx context.Context, to *command.Console) error {
	o := client.Options{Query: client.Query{"checkpoint": c.Checkpoint}}
	found, err := client.ListSummaries.With(ctx, to.API, o, c.Session)
	if err != nil {
		return err
	}
	if err := to.Print(named("summaries"), found.Raw, &found.Value); err != nil || !c.Text || to.JSON {
		return err
	}
	for i := range found.Value.Summaries {
		s := &found.Value.Summaries[i]
		if _, err := fmt.Fprintf(to.Out, "\n%s:\n%s\n", s.Ref, terminal.Plain(s.Text)); err != nil {
			return err
		}
	}
	return nil
}

// spentOn returns what a model's answer took and cost, "-" for a summary that no model has written.
func spentOn(s protocol.Summary) string {
	if s.Provenance == nil {
		return "-"
	}
	p := &s.Provenance.Spent
	return fmt.Sprintf("%s, cost %.4f", terminal.Count(int(p.Calls), "call"), float64(p.CostMicros)/1e6)
}

// flagsOf returns flags as a cell shows them.
func flagsOf(flags []string) string { return cmp.Or(strings.Join(flags, ", "), "-") }

type summariesRebuildCommand struct {
	Session string `arg:"" help:"Session id."`
}

// Run has the summaries made anew and prints the run: how it ended if that happened within a minute.
func (c *summariesRebuildCommand) Run(ctx context.Context, to *command.Console) error {
	o := client.Options{Query: client.Query{"wait": maxServerWait.Seconds()}, Key: uuid.NewString()}
	run, err := client.RebuildSummaries.With(ctx, to.API, o, c.Session)
	if err != nil {
		return err
	}
	return printRun(to, run)
}
