package main

import (
	"context"
	"errors"

	"github.com/varve-dev/varve/internal/client"
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
		return showList(ctx, to, "checkpoints", client.Checkpoints, c.Limit, c.Session)
	}
	o := client.Options{}
	switch {
	case c.View:
		view, err := client.CheckpointContext.Call(ctx, to.api, c.Session, *c.Number)
		if err != nil {
			return err
		}
		return to.printRaw(view.Raw)
	case c.Diff != nil:
		o.Query = client.Query{"to": c.Diff}
		return show(ctx, to, "diff", client.DiffCheckpoints, o, c.Session, *c.Number)
	case c.Restore:
		return show(ctx, to, "restored", client.RestoreCheckpoint, o, c.Session, *c.Number)
	}
	o.Query = client.Query{"manifest": c.Manifest}
	return show(ctx, to, "checkpoint", client.GetCheckpoint, o, c.Session, *c.Number)
}
