package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"github.com/varve-dev/varve/internal/client"
	"github.com/varve-dev/varve/internal/compact"
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
func (c *compactCommand) Run(ctx context.Context, to *console) error {
	run, err := c.compact(ctx, to.api)
	if err != nil {
		return err
	}
	r := &run.Value
	err = to.print(run.Raw, func(out io.Writer) error { return writeRun(out, r) })
	if err == nil && r.State == session.RunFailed {
		return fmt.Errorf("run %s failed: %s", r.ID, cellText(r.Error))
	}
	return err
}

// compact compacts and returns the run as it is at the end of --wait.
func (c *compactCommand) compact(ctx context.Context, api *client.Client) (run client.Answer[session.Run], err error) {
	wait := time.Duration(c.Wait)
	ends := time.Now().Add(wait)
	o := client.Options{Query: client.Query{}}
	if wait > 0 {
		o.Query["wait"] = math.Ceil(min(wait, maxServerWait).Seconds())
	}
	run, err = client.Compact.With(ctx, api, o, c.Session)
	for err == nil && !run.Value.State.Ended() && time.Now().Before(ends) {
		if err = api.Sleep(ctx, 500*time.Millisecond); err != nil {
			break
		}
		run, err = client.GetRun.Call(ctx, api, c.Session, run.Value.ID)
	}
	return run, err
}

// writeRun writes a run, with a line for each stage that it entered.
func writeRun(out io.Writer, r *session.Run) error {
	table := newTable(out)
	fmt.Fprintf(table, "run\t%s\nstate\t%s\ntrigger\t%s\n", r.ID, r.State, r.Cause)
	if r.Reason != "" {
		fmt.Fprintf(table, "reason\t%s\n", terminal.Printable(r.Reason))
	}
	if r.Checkpoint != nil {
		fmt.Fprintf(table, "checkpoint\t%s through message %s\n", cellText(r.Checkpoint), cellText(r.Through))
	}
	if r.State.Ended() {
		fmt.Fprintf(table, "tokens\t%s → %s\nresults persisted\t%s\n",
			cellText(r.TokensBefore), cellText(r.TokensAfter), cellText(r.ResultsPersisted))
	}
	var stages []compact.StageReport
	if r.Stages != nil {
		if err := json.Unmarshal(r.Stages, &stages); err != nil {
			return err
		}
	}
	for _, s := range stages {
		if s.Entered {
			fmt.Fprintf(table, "%s\t%d actions, %d tokens saved\n", s.Stage, s.Actions, s.TokensSaved)
		}
	}
	return table.Flush()
}

type runsCommand struct {
	Session string `arg:"" help:"Session id."`
	Limit   int    `default:"20" help:"How many, newest first."`
}

// Run lists the session's compactions.
func (c *runsCommand) Run(ctx context.Context, to *console) error {
	const header = "RUN\tTRIGGERED\tTRIGGER\tSTATE\tCHECKPOINT\tTHROUGH\tBEFORE\tAFTER\tRESULTS\tERROR"
	return showList(ctx, to, header, func(r *session.Run) []any {
		return []any{
			r.ID, r.TriggeredAt, r.Cause, r.State, r.Checkpoint, r.Through,
			r.TokensBefore, r.TokensAfter, r.ResultsPersisted, r.Error,
		}
	}, client.Runs, c.Limit, c.Session)
}
