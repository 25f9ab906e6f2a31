package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/terminal"
)

type previewCommand struct {
	Session        string `arg:"" help:"Session id."`
	command.Policy `embed:""`
	From           string `enum:",checkpoint,log" default:"" help:"Where to start: checkpoint or log."`
	All            bool   `help:"Every part, also those that stay, with the reason why."`
}

// maxParts is how many parts are printed, those that save the most.
const maxParts = 25

// Run prints what a compaction of the session would do. Nothing is written.
func (c *previewCommand) Run(ctx context.Context, to *command.Console) (err error) {
	request := protocol.PreviewRequest{From: c.From}
	if request.Policy, err = c.Document(); err != nil {
		return err
	}
	o := client.Options{Body: request}
	if c.All {
		o.Query = client.Query{"actions": "all"}
	}
	found, err := client.PreviewSession.With(ctx, to.API, o, c.Session)
	if err != nil {
		return err
	}
	if to.JSON {
		return to.PrintRaw(found.Raw)
	}
	limit := maxParts
	if c.All {
		limit = len(found.Value.Actions)
	}
	return writePlan(to.Out, &found.Value, c.Session, limit, terminal.Width(os.Stdout, 100))
}

// writePlan writes a preview: its effect, stage by stage, then at most limit parts, the largest savings first.
func writePlan(out io.Writer, p *protocol.Preview, id string, limit, width int) error {
	shown := struct {
		*protocol.Preview
		Session string
	}{p, id}
	var sentences strings.Builder
	if err := writeView(&sentences, "effect", shown); err != nil {
		return err
	}
	for line := range strings.Lines(sentences.String()) {
		fmt.Fprintln(out, terminal.Fold(strings.TrimSuffix(line, "\n"), width))
	}
	if !p.WouldChange {
		return nil
	}
	fmt.Fprintln(out)
	if err := writeAligned(out, "stages", p.Stages, tabwriter.AlignRight); err != nil {
		return err
	}
	return writeParts(out, p.Actions, limit, width)
}

// writeParts writes the parts in columns, the reason last, each line cut to the width.
func writeParts(out io.Writer, actions []compact.Action, limit, width int) error {
	parts := slices.SortedStableFunc(slices.Values(actions), func(a, b compact.Action) int {
		return cmp.Compare(b.TokensBefore-b.TokensAfter, a.TokensBefore-a.TokensAfter)
	})
	var text strings.Builder
	if err := writeView(&text, "parts", parts[:min(limit, len(parts))]); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for line := range strings.Lines(text.String()) {
		fmt.Fprintln(out, strings.TrimRight(terminal.Cut(strings.TrimSuffix(line, "\n"), width), " "))
	}
	if more := len(parts) - limit; more > 0 {
		fmt.Fprintf(out, "and %s more: --all shows them\n", terminal.Thousands(int64(more)))
	}
	return nil
}

// fewer returns in words how much of a number of tokens is saved.
func fewer(saved, of int64) string {
	switch {
	case saved == 0 || of == 0:
		return "unchanged"
	case saved < 0:
		return terminal.Thousands(-saved) + " more"
	}
	return fmt.Sprintf("%s fewer, %s", terminal.Thousands(saved), percent(float64(saved)/float64(of)))
}
