package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"
)

type compactCommand struct {
	Session string   `arg:"" help:"Session id."`
	Wait    waitFlag `help:"Wait for the end: --wait for 60 seconds, --wait=5m or --wait=90 (seconds) for another time."`
}

// waitFlag is how long to wait. It is a flag that may have a value, but only behind =.
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
		return fmt.Errorf("%q is no time to wait: --wait=30s, --wait=5m and --wait=90 (seconds) are possible", value)
	}
	*w = waitFlag(d)
	return nil
}

// compaction is a run as the API tells of it.
type compaction struct {
	ID               string  `json:"id"`
	Trigger          string  `json:"trigger"`
	State            string  `json:"state"`
	Checkpoint       *int64  `json:"checkpoint"` // null unless the run made one
	ThroughSeq       *int64  `json:"through_seq"`
	TokensBefore     int64   `json:"tokens_before"`
	TokensAfter      int64   `json:"tokens_after"`
	ResultsPersisted int     `json:"results_persisted"`
	Reason           string  `json:"reason"`
	TriggeredAt      string  `json:"triggered_at"`
	Error            *string `json:"error"`
	Stages           []struct {
		Name        string `json:"stage"`
		Entered     bool   `json:"entered"`
		Actions     int    `json:"actions"`
		TokensSaved int64  `json:"tokens_saved"`
	} `json:"stages"`
}

func (r *compaction) ended() bool { return r.State != "queued" && r.State != "running" }

// maxServerWait is how long the API waits at most in one request.
const maxServerWait = 60 * time.Second

// Run compacts and prints the run: how it ended if that came within --wait, else that it is queued.
func (c *compactCommand) Run(ctx context.Context, g *Globals) error {
	client, err := g.Client()
	if err != nil {
		return err
	}
	run, raw, err := c.compact(ctx, client)
	if err != nil {
		return err
	}
	if g.JSON {
		_, err = os.Stdout.Write(append(raw, '\n'))
	} else {
		err = run.write(os.Stdout)
	}
	if err == nil && run.State == "failed" {
		return fmt.Errorf("run %s failed: %s", run.ID, text(run.Error))
	}
	return err
}

func (c *compactCommand) compact(ctx context.Context, client *Client) (run compaction, raw []byte, err error) {
	wait := time.Duration(c.Wait)
	ends := time.Now().Add(wait)
	query := url.Values{}
	if wait > 0 {
		query.Set("wait", strconv.Itoa(int(min(wait, maxServerWait).Seconds()+0.999)))
	}
	k := call{method: http.MethodPost, path: []string{"sessions", c.Session, "compact"}, query: query, ok: []int{http.StatusOK, http.StatusAccepted}}
	raw, err = client.decode(ctx, k, &run)
	for err == nil && !run.ended() && time.Now().Before(ends) {
		if err = client.sleep(ctx, 500*time.Millisecond); err != nil {
			break
		}
		raw, err = client.decode(ctx, call{method: http.MethodGet, path: []string{"sessions", c.Session, "runs", run.ID}}, &run)
	}
	return run, raw, err
}

func (r *compaction) write(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "run\t%s\nstate\t%s\ntrigger\t%s\n", r.ID, r.State, r.Trigger)
	if r.Reason != "" {
		fmt.Fprintf(table, "reason\t%s\n", printable(r.Reason))
	}
	if r.Checkpoint != nil {
		fmt.Fprintf(table, "checkpoint\t%s through message %s\n", number(r.Checkpoint), number(r.ThroughSeq))
	}
	if r.ended() {
		fmt.Fprintf(table, "tokens\t%d → %d\nresults persisted\t%d\n", r.TokensBefore, r.TokensAfter, r.ResultsPersisted)
	}
	for _, s := range r.Stages {
		if s.Entered {
			fmt.Fprintf(table, "%s\t%d actions, %d tokens saved\n", s.Name, s.Actions, s.TokensSaved)
		}
	}
	return table.Flush()
}

type runsCommand struct {
	Session string `arg:"" help:"Session id."`
	Limit   int    `default:"20" help:"How many, newest first."`
}

// Run lists the session's compactions.
func (c *runsCommand) Run(ctx context.Context, g *Globals) error {
	client, err := g.Client()
	if err != nil {
		return err
	}
	if g.JSON {
		return listJSON(ctx, client, os.Stdout, c.Limit, "sessions", c.Session, "runs")
	}
	runs, err := list[compaction](ctx, client, c.Limit, "sessions", c.Session, "runs")
	if err != nil {
		return err
	}
	return writeRuns(os.Stdout, runs)
}

func writeRuns(out io.Writer, runs []compaction) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RUN\tTRIGGERED\tTRIGGER\tSTATE\tCHECKPOINT\tTHROUGH\tBEFORE\tAFTER\tRESULTS\tERROR")
	for _, r := range runs {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\n", r.ID, toSecond(r.TriggeredAt), r.Trigger, r.State, number(r.Checkpoint), number(r.ThroughSeq),
			r.TokensBefore, r.TokensAfter, r.ResultsPersisted, text(r.Error))
	}
	return table.Flush()
}

// toSecond is a time of the API to the second, as a table has room for it; what is no time stays.
func toSecond(at string) string {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return at
	}
	return t.Format(time.RFC3339)
}

func text(s *string) string {
	if s == nil {
		return "-"
	}
	return printable(*s)
}

func number(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}
