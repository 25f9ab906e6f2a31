package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/varve-dev/varve/internal/client"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/terminal"
	"golang.org/x/term"
)

type recompactCommand struct {
	Start  recompactStartCommand  `cmd:"" default:"withargs" help:"Compact many sessions again, from their logs, and wait for the end."`
	List   recompactListCommand   `cmd:"" help:"List recompactions, newest first."`
	Show   recompactShowCommand   `cmd:"" help:"Print a recompaction, and what became of its sessions."`
	Cancel recompactCancelCommand `cmd:"" help:"Let the running compactions end, and start no others."`
}

// recompactFilter selects sessions; all, without any flag.
type recompactFilter struct {
	Session            []string          `sep:"none" help:"Only this session; repeat it for more."`
	Metadata           map[string]string `mapsep:"none" placeholder:"KEY=VALUE" help:"Only sessions with this metadata; repeat it for more."`
	CreatedBefore      *time.Time        `placeholder:"TIME" help:"Only sessions made before, e.g. 2026-01-31T00:00:00Z."`
	CreatedAfter       *time.Time        `placeholder:"TIME" help:"Only sessions made after."`
	MinTokens          *int64            `placeholder:"N" help:"Only sessions whose view has at least this many tokens."`
	PolicyVersionBelow *int64            `placeholder:"N" help:"Only sessions whose newest checkpoint is older than this version of the tenant's policy."`
	EngineVersionBelow *int64            `placeholder:"N" help:"Only sessions whose newest checkpoint an older engine made."`
}

type recompactStartCommand struct {
	recompactFilter `embed:""`
	Policy          string `xor:"policy" help:"Changes to the sessions' policies, for this recompaction: JSON, or a file of it (- is standard input). Without one, each session's own policy."`
	Profile         string `xor:"policy" help:"A profile for the policy, for this recompaction: default, tool-compaction, cortex, falai, llm-proxy or codelia."`
	MaxRunning      int    `default:"2" help:"How many sessions are compacted at once, 1 to 32."`
	DryRun          bool   `help:"Only count, and estimate what would be saved."`
	Detach          bool   `help:"Do not wait for the end."`
}

// Run recompacts, with a bar on a terminal, and prints how it ended. An interrupt leaves the recompaction running.
func (c *recompactStartCommand) Run(ctx context.Context, api *client.Client, settings *config.Client, out io.Writer) error {
	request, err := c.request()
	if err != nil {
		return err
	}
	if c.DryRun {
		plan, err := api.PlanRecompaction(ctx, request)
		if err != nil {
			return err
		}
		return writeAnswer(out, settings.JSON, plan, writeRecompactionPlan)
	}
	r, err := api.Recompact(ctx, request)
	if err == nil && !c.Detach {
		r, err = follow(ctx, api, r.Value.ID.String(), os.Stderr)
	}
	if err != nil {
		return err
	}
	return reportRecompaction(out, settings.JSON, r)
}

func (c *recompactStartCommand) request() (r protocol.RecompactionRequest, err error) {
	f := &c.recompactFilter
	r.MaxRunning = c.MaxRunning
	r.Filter = protocol.RecompactionFilter{
		Sessions: f.Session, CreatedBefore: f.CreatedBefore, CreatedAfter: f.CreatedAfter,
		MinTokens: f.MinTokens, PolicyVersionBelow: f.PolicyVersionBelow, EngineVersionBelow: f.EngineVersionBelow,
	}
	if len(f.Metadata) > 0 {
		if r.Filter.Metadata, err = json.Marshal(f.Metadata); err != nil {
			return r, err
		}
	}
	r.Policy, err = policyOrProfile(c.Policy, c.Profile)
	return r, err
}

func writeRecompactionPlan(out io.Writer, p *protocol.RecompactionPlan) error {
	table := newTable(out)
	fmt.Fprintf(table, "sessions\t%d\nmessages\t%d\ntokens of the logs\t%d\ntokens of the views\t%d\n",
		p.Sessions, p.Messages, p.TotalTokens, p.ContextTokens)
	fmt.Fprintf(table, "sample\t%d sessions, %d failed, %d → %d tokens\n",
		p.Sample.Sessions, p.Sample.Failed, p.Sample.TokensBefore, p.Sample.TokensAfter)
	fmt.Fprintf(table, "estimate\t%d sessions change, %d → %d tokens\n", p.Estimate.Changed, p.Estimate.TokensBefore, p.Estimate.TokensAfter)
	for _, e := range p.Sample.Errors {
		fmt.Fprintf(table, "%s\t%s\n", terminal.Printable(e.Session), terminal.Printable(e.Error))
	}
	return table.Flush()
}

// followEvery is how often a recompaction that is followed is read.
const followEvery = 500 * time.Millisecond

// follow waits for the end and reports progress: a bar on a terminal, else a line every ten seconds.
func follow(ctx context.Context, api *client.Client, id string, out *os.File) (r client.Answer[protocol.Recompaction], err error) {
	bar := newRecompactionBar(out)
	defer bar.finish()
	for {
		if r, err = api.Recompaction(ctx, id); err != nil || r.Value.Ended() {
			break
		}
		bar.update(&r.Value)
		if err = api.Sleep(ctx, followEvery); err != nil {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("recompaction %s continues without this command (varve recompact show, or cancel): %w", id, err)
	}
	return r, err
}

// recompactionBar shows the progress of a recompaction.
type recompactionBar struct {
	out     io.Writer
	bar     *progressbar.ProgressBar // nil if out is not a terminal
	printed time.Time
}

func newRecompactionBar(out *os.File) *recompactionBar {
	b := &recompactionBar{out: out, printed: time.Now()}
	if term.IsTerminal(int(out.Fd())) {
		b.bar = newBar(out, -1, progressbar.OptionShowCount())
	}
	return b
}

func (b *recompactionBar) update(r *protocol.Recompaction) {
	p := r.Progress
	text := fmt.Sprintf("%d changed, %d unchanged, %d failed, %d skipped", p.Changed, p.Unchanged, p.Failed, p.Skipped)
	switch {
	case b.bar != nil && r.State != "queued" && p.Total > 0:
		b.bar.ChangeMax64(p.Total)
		b.bar.Describe(text)
		_ = b.bar.Set64(p.Done) // a bar that cannot be drawn does not stop the recompaction
	case b.bar == nil && time.Since(b.printed) >= printEvery:
		b.printed = time.Now()
		fmt.Fprintf(b.out, "%s: %d of %d sessions, %s\n", r.State, p.Done, p.Total, text)
	}
}

func (b *recompactionBar) finish() {
	if b.bar != nil {
		_ = b.bar.Finish()
	}
}

// reportRecompaction prints a recompaction. It returns an error if it failed, or failed for some sessions.
func reportRecompaction(out io.Writer, asJSON bool, a client.Answer[protocol.Recompaction]) error {
	r := &a.Value
	err := writeAnswer(out, asJSON, a, writeRecompaction)
	switch {
	case err != nil:
		return err
	case r.State == "failed":
		return fmt.Errorf("recompaction %s failed: %s", r.ID, deref(r.Error))
	case r.Progress.Failed > 0:
		return fmt.Errorf("recompaction %s: %d sessions failed", r.ID, r.Progress.Failed)
	}
	return nil
}

func writeRecompaction(out io.Writer, r *protocol.Recompaction) error {
	p := r.Progress
	table := newTable(out)
	fmt.Fprintf(table, "recompaction\t%s\nstate\t%s\ncreated\t%s\nfinished\t%s\n", r.ID, r.State, cellText(r.CreatedAt), deref(r.FinishedAt))
	fmt.Fprintf(table, "sessions\t%d of %d: %d changed, %d unchanged, %d failed, %d skipped\n",
		p.Done, p.Total, p.Changed, p.Unchanged, p.Failed, p.Skipped)
	fmt.Fprintf(table, "tokens\t%d → %d\n", r.TokensBefore, r.TokensAfter)
	for _, e := range r.Errors {
		fmt.Fprintf(table, "failed: %s\t%s\n", terminal.Printable(e.Session), terminal.Printable(e.Error))
	}
	return table.Flush()
}

type recompactListCommand struct {
	Limit int `default:"20" help:"How many, newest first."`
}

// Run lists the tenant's recompactions.
func (c *recompactListCommand) Run(ctx context.Context, api *client.Client, settings *config.Client, out io.Writer) error {
	found, err := api.Recompactions(ctx, c.Limit)
	if err != nil {
		return err
	}
	const header = "RECOMPACTION\tCREATED\tSTATE\tDONE\tTOTAL\tCHANGED\tFAILED\tBEFORE\tAFTER"
	return writeList(out, settings.JSON, found, header, func(r *protocol.Recompaction) []any {
		p := &r.Progress
		return []any{r.ID, r.CreatedAt, r.State, p.Done, p.Total, p.Changed, p.Failed, r.TokensBefore, r.TokensAfter}
	})
}

type recompactShowCommand struct {
	ID       string `arg:"" help:"The recompaction's id."`
	Sessions bool   `help:"What became of each session."`
	Limit    int    `default:"1000" help:"How many sessions."`
}

// Run prints the recompaction or, with --sessions, its sessions.
func (c *recompactShowCommand) Run(ctx context.Context, api *client.Client, settings *config.Client, out io.Writer) error {
	if !c.Sessions {
		r, err := api.Recompaction(ctx, c.ID)
		if err != nil {
			return err
		}
		return writeAnswer(out, settings.JSON, r, writeRecompaction)
	}
	found, err := api.RecompactionSessions(ctx, c.ID, c.Limit)
	if err != nil {
		return err
	}
	const header = "SESSION\tSTATE\tBEFORE\tAFTER\tRUN\tERROR"
	return writeList(out, settings.JSON, found, header, func(s *protocol.RecompactionSession) []any {
		return []any{s.Session, s.State, s.TokensBefore, s.TokensAfter, deref(s.Run), s.Error}
	})
}

type recompactCancelCommand struct {
	ID string `arg:"" help:"The recompaction's id."`
}

// Run cancels the recompaction; cancelling it twice changes nothing.
func (c *recompactCancelCommand) Run(ctx context.Context, api *client.Client, settings *config.Client, out io.Writer) error {
	r, err := api.CancelRecompaction(ctx, c.ID)
	if err != nil {
		return err
	}
	return writeAnswer(out, settings.JSON, r, writeRecompaction)
}
