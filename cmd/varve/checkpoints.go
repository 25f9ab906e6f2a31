package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/varve-dev/varve/internal/client"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/terminal"
)

type checkpointsCommand struct {
	Session  string `arg:"" help:"Session id."`
	Number   *int   `arg:"" optional:"" help:"A checkpoint's number; lists all checkpoints if not given."`
	Manifest string `enum:"own,all" default:"own" help:"What left the view: by this checkpoint alone (own), or up to it (all)."`
	Diff     *int   `help:"Show what differs in the view of this other checkpoint."`
	View     bool   `help:"Print the view as it was when the checkpoint was made, as JSON."`
	Restore  bool   `help:"Roll the session back to the checkpoint; all messages after it are in the view again."`
	Limit    int    `default:"20" help:"How many checkpoints to list, newest first."`
}

// Validate refuses flags that have no meaning together.
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
func (c *checkpointsCommand) Run(ctx context.Context, api *client.Client, settings *config.Client, out io.Writer) error {
	switch {
	case c.Number == nil:
		return c.list(ctx, api, settings.JSON, out)
	case c.View:
		view, err := api.CheckpointContext(ctx, c.Session, *c.Number)
		if err != nil {
			return err
		}
		return writeRaw(out, view.Raw)
	case c.Diff != nil:
		found, err := api.DiffCheckpoints(ctx, c.Session, *c.Number, *c.Diff)
		if err != nil {
			return err
		}
		return writeAnswer(out, settings.JSON, found, writeDiff)
	case c.Restore:
		made, err := api.RestoreCheckpoint(ctx, c.Session, *c.Number)
		if err != nil {
			return err
		}
		return writeAnswer(out, settings.JSON, made, writeRestored)
	}
	found, err := api.Checkpoint(ctx, c.Session, *c.Number, c.Manifest)
	if err != nil {
		return err
	}
	return writeAnswer(out, settings.JSON, found, writeCheckpoint)
}

func (c *checkpointsCommand) list(ctx context.Context, api *client.Client, asJSON bool, out io.Writer) error {
	found, err := api.Checkpoints(ctx, c.Session, c.Limit)
	if err != nil {
		return err
	}
	const header = "CHECKPOINT\tCREATED\tBASE\tRESTORED\tTHROUGH\tTOKENS\tBODY\tENGINE\tPOLICY"
	return writeList(out, asJSON, found, header, func(r *protocol.Checkpoint) []any {
		body := "kept"
		if !r.HasBody {
			body = "pruned"
		}
		digest := fmt.Sprintf("%.8s", r.PolicyDigest)
		return []any{r.N, r.CreatedAt, r.Base, r.RestoredFrom, r.Through, r.Tokens, body, r.EngineVersion, digest}
	})
}

func writeRestored(out io.Writer, r *protocol.Checkpoint) error {
	_, err := fmt.Fprintf(out, "checkpoint %s is restored as checkpoint %d: compacted through message %d, all messages after it as they came\n",
		deref(r.RestoredFrom), r.N, r.Through)
	return err
}

// writeCheckpoint writes a checkpoint and its manifest.
func writeCheckpoint(out io.Writer, c *protocol.CheckpointDetail) error {
	m := &c.Manifest
	table := newTable(out)
	fmt.Fprintf(table, "checkpoint\t%d through message %d, made %s by run %s\nbase\t%d\nrestored from\t%s\n",
		c.N, c.Through, cellText(c.CreatedAt), c.Run, c.Base, deref(c.RestoredFrom))
	fmt.Fprintf(table, "tokens\t%d → %d (%d saved, %s)\n", m.TokensBefore, m.TokensAfter, m.TokensSaved, m.Of)
	for _, stage := range m.Stages {
		fmt.Fprintf(table, "%s\t%d entries, %d tokens saved\n", stage.Stage, stage.Entries, stage.TokensSaved)
	}
	if err := table.Flush(); err != nil || len(m.Entries) == 0 {
		return err
	}
	rows := make([][]any, len(m.Entries))
	for i, e := range m.Entries {
		rows[i] = []any{
			place(e.Seq, e.LastSeq, e.Part), orDash(e.Tool), orDash(e.Ref), e.Do, e.TokensBefore, e.TokensAfter, e.Reason,
		}
	}
	fmt.Fprintln(out)
	return writeTable(out, "PART\tTOOL\tREF\tACTION\tBEFORE\tAFTER\tREASON", rows)
}

// place names a part by its message and number, or the messages from one to another.
func place(seq, lastSeq int64, part int) string {
	switch {
	case lastSeq > seq:
		return fmt.Sprintf("%d-%d", seq, lastSeq)
	case part < 0:
		return strconv.FormatInt(seq, 10)
	}
	return fmt.Sprintf("%d.%d", seq, part)
}

func orDash(text string) string { return cmp.Or(terminal.Printable(text), "-") }

func writeDiff(out io.Writer, d *protocol.CheckpointDiff) error {
	table := newTable(out)
	for _, side := range []protocol.CheckpointSide{d.From, d.To} {
		fmt.Fprintf(table, "checkpoint %d\tthrough message %d\t%d tokens\n", side.N, side.Through, side.Tokens)
	}
	fmt.Fprintf(table, "messages between\t\t%+d tokens\n%d changes\t\t%+d tokens\n", d.TokensCovered, len(d.Changes), d.TokensChanged)
	if err := table.Flush(); err != nil || len(d.Changes) == 0 {
		return err
	}
	rows := make([][]any, len(d.Changes))
	for i, c := range d.Changes {
		rows[i] = []any{
			place(c.Seq, c.LastSeq, c.Part), orDash(c.Tool), orDash(c.Ref), c.Kind, c.From.Do, c.To.Do,
			fmt.Sprintf("%d → %d", c.From.Tokens, c.To.Tokens),
		}
	}
	fmt.Fprintln(out)
	return writeTable(out, "PART\tTOOL\tREF\tCHANGE\tFROM\tTO\tTOKENS", rows)
}
