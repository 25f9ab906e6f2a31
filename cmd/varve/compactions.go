package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/uuid"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/terminal"
)

type compactCommand struct {
	Session string   `arg:"" help:"Session id."`
	Wait    waitFlag `help:"Wait for the end: 60 seconds, or as long as --wait=5m or --wait=90 (seconds) names."`
}

// waitFlag is how long to wait. It is a flag that may have a value, but only after =.
type waitFlag time.Duration

// IsBool tells kong that the next argument is not the flag's value.
func (*waitFlag) IsBool() bool { return true }

// Decode reads the flag.
func (w *waitFlag) Decode(ctx *kong.DecodeContext) error {
	*w = waitFlag(maxServerWait)
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		return nil
	}
	value := ctx.Scan.Pop().String()
	d, err := time.ParseDuration(value)
	if seconds, notWhole := strconv.ParseUint(value, 10, 31); notWhole == nil {
		d, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || d < 0 {
		return fmt.Errorf("%q is not a time to wait: it must be like --wait=30s or --wait=90 (seconds)", value)
	}
	*w = waitFlag(d)
	return nil
}

// maxServerWait is how long the API waits at most in one request.
const maxServerWait = 60 * time.Second

// Run compacts and prints the run: how it ended if that happened within --wait, else that it is queued.
func (c *compactCommand) Run(ctx context.Context, to *command.Console) error {
	run, err := c.compact(ctx, to.API)
	if err != nil {
		return err
	}
	return printRun(to, run)
}

// printRun prints a run, and returns an error for one that has failed.
func printRun(to *command.Console, run client.Answer[session.Run]) error {
	r := &run.Value
	if err := to.Print(named("run"), run.Raw, r); err != nil {
		return err
	}
	if r.State == session.RunFailed {
		return fmt.Errorf("run %s failed: %s", r.ID, terminal.Cell(r.Error))
	}
	return nil
}

// compact compacts and returns the run as it is at the end of --wait.
func (c *compactCommand) compact(ctx context.Context, api *client.Client) (run client.Answer[session.Run], err error) {
	wait := time.Duration(c.Wait)
	ends := time.Now().Add(wait)
	o := client.Options{Query: client.Query{}, Key: uuid.NewString()}
	if wait > 0 {
		o.Query["wait"] = math.Ceil(min(wait, maxServerWait).Seconds())
	}
	run, err = client.CompactSession.With(ctx, api, o, c.Session)
	for err == nil && !run.Value.State.Ended() && time.Now().Before(ends) {
		if err = api.Sleep(ctx, 500*time.Millisecond); err != nil {
			break
		}
		run, err = client.ReadRun.Call(ctx, api, c.Session, run.Value.ID)
	}
	return run, err
}

type runsCommand struct {
	Session string `arg:"" help:"Session id."`
	Limit   int    `default:"20" help:"How many, newest first."`
}

// Run lists the session's compactions.
func (c *runsCommand) Run(ctx context.Context, to *command.Console) error {
	return showList(ctx, to, "runs", client.ListRuns, c.Limit, c.Session)
}

type checkpointsCommand struct {
	Session  string            `arg:"" help:"Session id."`
	Number   *checkpointNumber `arg:"" optional:"" help:"A checkpoint's number; all are listed without one."`
	Manifest string            `enum:"own,all" default:"own" help:"What this one removed (own), or all up to it (all)."`
	Diff     *checkpointNumber `help:"Show what differs in the view of this other checkpoint."`
	View     bool              `help:"Print the view as it was when the checkpoint was made, as JSON."`
	Restore  bool              `help:"Roll the session back; all messages after the checkpoint are in the view again."`
	Limit    int               `default:"20" help:"How many checkpoints to list, newest first."`
}

// checkpointNumber is the number of a checkpoint on the command line.
type checkpointNumber int64

// UnmarshalText reads a number.
func (n *checkpointNumber) UnmarshalText(text []byte) error {
	number, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return fmt.Errorf("%.40q is not the number of a checkpoint: leave it out to list them", text)
	}
	*n = checkpointNumber(number)
	return nil
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
func (c *checkpointsCommand) Run(ctx context.Context, to *command.Console) error {
	if c.Number == nil {
		return showList(ctx, to, "checkpoints", client.ListCheckpoints, c.Limit, c.Session)
	}
	o := client.Options{}
	switch {
	case c.View:
		return showJSON(ctx, to, client.ReadCheckpointContext, o, c.Session, *c.Number)
	case c.Diff != nil:
		o.Query = client.Query{"to": *c.Diff}
		return show(ctx, to, "diff", client.DiffCheckpoints, o, c.Session, *c.Number)
	case c.Restore:
		return show(ctx, to, "restored", client.RestoreCheckpoint, o, c.Session, *c.Number)
	}
	o.Query = client.Query{"manifest": c.Manifest}
	return show(ctx, to, "checkpoint", client.ReadCheckpoint, o, c.Session, *c.Number)
}
