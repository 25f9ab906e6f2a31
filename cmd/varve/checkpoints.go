package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/varve-dev/varve/internal/client"
	"github.com/varve-dev/varve/internal/compact/manifest"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/terminal"
)

type checkpointsCommand struct {
	Session  string `arg:"" help:"Session id."`
	Number   *int   `arg:"" optional:"" help:"A checkpoint's number; lists all checkpoints if not given."`
	Manifest string `enum:"own,all" default:"own" help:"What this checkpoint removed (own), or all up to it (all)."`
	Diff     *int   `help:"Show what differs in the view of this other checkpoint."`
	View     bool   `help:"Print the view as it was when the checkpoint was made, as JSON."`
	Restore  bool   `help:"Roll the session back to the checkpoint; all messages after it are in the view again."`
	Limit    int    `default:"20" help:"How many checkpoints to list, newest first."`
}

// Validate returns an error for flags that have no meaning together.
func (c *checkpointsCommand) Validate() error {
	asked := 0
	for _, flag := range []bool{c.Diff != nil, c.View, c.Restore} {
		if flag {
			asked++
		}
	}
	switch {
	case c.Number == nil && asked > 0:
		return errors.New("--diff, --view and --restore need the number of a checkpoint")
	case asked > 1:
		return errors.New("only one of --diff, --view and --restore is possible at a time")
	}
	return nil
}

// Run lists the session's checkpoints, shows one, compares two, or restores one.
func (c *checkpointsCommand) Run(ctx context.Context, to *console) error {
	if c.Number == nil {
		const header = "CHECKPOINT\tCREATED\tBASE\tRESTORED\tTHROUGH\tTOKENS\tBODY\tENGINE\tPOLICY"
		return showList(ctx, to, header, checkpointRow, client.Checkpoints, c.Limit, c.Session)
	}
	o := client.Options{Query: client.Query{"to": c.Diff}}
	switch {
	case c.View:
		view, err := client.CheckpointContext.Call(ctx, to.api, c.Session, *c.Number)
		if err != nil {
			return err
		}
		return to.printRaw(view.Raw)
	case c.Diff != nil:
		return show(ctx, to, writeDiff, client.DiffCheckpoints, o, c.Session, *c.Number)
	case c.Restore:
		return show(ctx, to, writeRestored, client.RestoreCheckpoint, client.Options{}, c.Session, *c.Number)
	}
	o.Query = client.Query{"manifest": c.Manifest}
	return show(ctx, to, writeCheckpoint, client.GetCheckpoint, o, c.Session, *c.Number)
}

// checkpointRow returns a checkpoint's row in the list.
func checkpointRow(r *session.CheckpointRecord) []any {
	body := "kept"
	if !r.HasBody {
		body = "pruned"
	}
	digest := fmt.Sprintf("%.8s", r.PolicyDigest)
	return []any{r.N, r.CreatedAt, r.Base, r.RestoredFrom, r.Through, r.Tokens, body, r.EngineVersion, digest}
}

// writeRestored writes what a rollback made.
func writeRestored(out io.Writer, r *session.CheckpointRecord) error {
	_, err := fmt.Fprintf(out,
		"checkpoint %s is restored as checkpoint %d: compacted through message %d, all later messages as they came\n",
		cellText(r.RestoredFrom), r.N, r.Through)
	return err
}

// writeCheckpoint writes a checkpoint and its manifest.
func writeCheckpoint(out io.Writer, c *protocol.CheckpointDetail) error {
	m := &c.Manifest
	table := newTable(out)
	fmt.Fprintf(table, "checkpoint\t%d through message %d, made %s by run %s\nbase\t%d\nrestored from\t%s\n",
		c.N, c.Through, cellText(c.CreatedAt), c.Run, c.Base, cellText(c.RestoredFrom))
	fmt.Fprintf(table, "tokens\t%d → %d (%d saved, %s)\n", m.TokensBefore, m.TokensAfter, m.TokensSaved, m.Of)
	for _, stage := range m.Stages {
		fmt.Fprintf(table, "%s\t%d entries, %d tokens saved\n", stage.Stage, stage.Entries, stage.TokensSaved)
	}
	if err := table.Flush(); err != nil || len(m.Entries) == 0 {
		return err
	}
	fmt.Fprintln(out)
	const header = "PART\tTOOL\tREF\tACTION\tBEFORE\tAFTER\tREASON"
	return writeTable(out, false, m.Entries, header, func(e *protocol.ManifestEntry) []any {
		return []any{
			place(e.Seq, e.LastSeq, e.Part), orDash(e.Tool), orDash(e.Ref), e.Do,
			e.TokensBefore, e.TokensAfter, e.Reason,
		}
	})
}

// place names a part by its message and number, or the messages from one to another.
func place(seq, lastSeq int64, part int) string {
	switch {
	case lastSeq > seq:
		return fmt.Sprintf("%d–%d", seq, lastSeq)
	case part < 0:
		return strconv.FormatInt(seq, 10)
	}
	return fmt.Sprintf("%d.%d", seq, part)
}

// orDash returns text as a table shows it, "-" for none.
func orDash(text string) string { return cmp.Or(terminal.Printable(text), "-") }

// writeDiff writes what differs between the views of two checkpoints.
func writeDiff(out io.Writer, d *protocol.CheckpointDiff) error {
	table := newTable(out)
	for _, side := range []protocol.CheckpointSide{d.From, d.To} {
		fmt.Fprintf(table, "checkpoint %d\tthrough message %d\t%d tokens\n", side.N, side.Through, side.Tokens)
	}
	fmt.Fprintf(table, "messages between\t\t%+d tokens\n%d changes\t\t%+d tokens\n",
		d.TokensCovered, len(d.Changes), d.TokensChanged)
	if err := table.Flush(); err != nil || len(d.Changes) == 0 {
		return err
	}
	fmt.Fprintln(out)
	const header = "PART\tTOOL\tREF\tCHANGE\tFROM\tTO\tTOKENS"
	return writeTable(out, false, d.Changes, header, func(c *manifest.Change) []any {
		tokens := fmt.Sprintf("%d → %d", c.From.Tokens, c.To.Tokens)
		return []any{
			place(c.Seq, c.LastSeq, c.Part), orDash(c.Tool), orDash(c.Ref), c.Kind, c.From.Do, c.To.Do, tokens,
		}
	})
}
