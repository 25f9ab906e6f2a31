package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/schollz/progressbar/v3"

	"github.com/varve-dev/varve/internal/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/terminal"
)

type recompactCommand struct {
	Start  recompactStartCommand  `cmd:"" default:"withargs" help:"Compact many sessions again, and wait for the end."`
	List   recompactListCommand   `cmd:"" help:"List recompactions, newest first."`
	Show   recompactShowCommand   `cmd:"" help:"Print a recompaction, and what became of its sessions."`
	Pause  recompactPauseCommand  `cmd:"" help:"Let the running compactions end, and start no others for now."`
	Resume recompactResumeCommand `cmd:"" help:"End a pause."`
	Cancel recompactCancelCommand `cmd:"" help:"Let the running compactions end, and start no others."`

	Compare  recompactCompareCommand  `cmd:"" help:"Print what the changed sessions served before and since."`
	Rollback recompactRollbackCommand `cmd:"" help:"Bring each session back to what it served before."`
}

// recompactPace says when sessions begin.
type recompactPace struct {
	MaxRunning int        `default:"2" help:"How many sessions are compacted at once, 1 to 32."`
	PerMinute  *int       `placeholder:"N" help:"How many sessions begin in a minute, at most."`
	StartAt    *time.Time `placeholder:"TIME" help:"No session begins before."`
	Hours      string     `placeholder:"FROM-TO" help:"Hours of the day in which sessions begin, e.g. 22:00-06:00."`
	TimeZone   string     `default:"UTC" help:"Of the hours, e.g. Europe/Berlin."`
}

// set sets what the flags say about when sessions begin.
func (p *recompactPace) set(r *protocol.RecompactionRequest) {
	r.MaxRunning, r.PerMinute = p.MaxRunning, p.PerMinute
	r.StartAt = p.StartAt
	if p.Hours != "" {
		from, to, _ := strings.Cut(p.Hours, "-")
		r.Hours = &session.Hours{From: from, To: to, TimeZone: p.TimeZone}
	}
}

type recompactStartCommand struct {
	command.Filter `embed:""`
	command.Policy `embed:""`
	recompactPace  `embed:""`
	Ask            bool `help:"Have language models asked for summaries that are not kept."`
	DryRun         bool `help:"Only count, and estimate what would be saved."`
	Detach         bool `help:"Do not wait for the end."`
}

// Run recompacts, with a bar on a terminal, and prints how it ended. An interrupt leaves the recompaction running.
func (c *recompactStartCommand) Run(ctx context.Context, to *console) error {
	request, err := c.request()
	if err != nil {
		return err
	}
	if c.DryRun {
		return show(ctx, to, "recompaction plan", client.PlanRecompaction, client.Options{Body: request})
	}
	// Sent again because its answer was lost, it is still one recompaction.
	a, err := client.CreateRecompaction.With(ctx, to.api, client.Options{Body: request, Key: uuid.NewString()})
	if err == nil && !c.Detach {
		a, err = follow(ctx, to.api, a.Value.ID.String(), os.Stderr)
	}
	if err != nil {
		return err
	}
	r := &a.Value
	err = to.print("recompaction", a.Raw, r)
	switch {
	case err != nil:
		return err
	case r.State == "failed":
		return fmt.Errorf("recompaction %s failed: %s", r.ID, terminal.Cell(r.Error))
	case r.Progress.Failed > 0:
		return fmt.Errorf("recompaction %s: %d sessions failed", r.ID, r.Progress.Failed)
	}
	return nil
}

// request returns what the flags ask for.
func (c *recompactStartCommand) request() (r protocol.RecompactionRequest, err error) {
	c.set(&r)
	r.Ask, r.DryRun = c.Ask, c.DryRun
	if r.Filter, err = c.Selected(); err != nil {
		return r, err
	}
	r.Policy, err = c.Document()
	return r, err
}

// followEvery is how often a recompaction that is followed is read.
const followEvery = 500 * time.Millisecond

// follow waits for the end of a recompaction and shows its progress.
func follow(
	ctx context.Context, api *client.Client, id string, out *os.File,
) (a client.Answer[protocol.Recompaction], err error) {
	shown := command.NewMeter(out, -1, progressbar.OptionShowCount())
	defer shown.Finish()
	for {
		if a, err = client.ReadRecompaction.Call(ctx, api, id); err != nil || a.Value.State.Ended() {
			break
		}
		p := a.Value.Progress
		text := outcomes(p)
		line := fmt.Sprintf("%s: %d of %d sessions, %s", a.Value.State, p.Done, p.Total, text)
		shown.Update(p.Done, p.Total, text, line)
		if err = api.Sleep(ctx, followEvery); err != nil {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("recompaction %s continues without this command (varve recompact show, or cancel): %w",
			id, err)
	}
	return a, err
}

// outcomes returns what became of the sessions so far.
func outcomes(p protocol.RecompactionProgress) string {
	return fmt.Sprintf("%d changed, %d unchanged, %d failed, %d skipped", p.Changed, p.Unchanged, p.Failed, p.Skipped)
}

type recompactListCommand struct {
	Limit int `default:"20" help:"How many, newest first."`
}

// Run lists the tenant's recompactions.
func (c *recompactListCommand) Run(ctx context.Context, to *console) error {
	return showList(ctx, to, "recompactions", client.ListRecompactions, c.Limit)
}

type recompactShowCommand struct {
	ID       string `arg:"" help:"The recompaction's id."`
	Sessions bool   `help:"What became of each session."`
	Limit    int    `default:"1000" help:"How many sessions."`
}

// Run prints the recompaction or, with --sessions, its sessions.
func (c *recompactShowCommand) Run(ctx context.Context, to *console) error {
	if !c.Sessions {
		return show(ctx, to, "recompaction", client.ReadRecompaction, client.Options{}, c.ID)
	}
	return showList(ctx, to, "recompaction sessions", client.ListRecompactionSessions, c.Limit, c.ID)
}

type recompactCompareCommand struct {
	ID string `arg:"" help:"The recompaction's id."`
}

// Run prints the comparison.
func (c *recompactCompareCommand) Run(ctx context.Context, to *console) error {
	return show(ctx, to, "recompaction comparison", client.CompareRecompaction, client.Options{}, c.ID)
}

type recompactCancelCommand struct {
	ID string `arg:"" help:"The recompaction's id."`
}

// Run cancels the recompaction; cancelling it twice changes nothing.
func (c *recompactCancelCommand) Run(ctx context.Context, to *console) error {
	return show(ctx, to, "recompaction", client.CancelRecompaction, client.Options{}, c.ID)
}

type recompactPauseCommand struct {
	ID string `arg:"" help:"The recompaction's id."`
}

// Run pauses the recompaction; pausing it twice changes nothing.
func (c *recompactPauseCommand) Run(ctx context.Context, to *console) error {
	return show(ctx, to, "recompaction", client.PauseRecompaction, client.Options{}, c.ID)
}

type recompactResumeCommand struct {
	ID string `arg:"" help:"The recompaction's id."`
}

// Run ends a pause of the recompaction.
func (c *recompactResumeCommand) Run(ctx context.Context, to *console) error {
	return show(ctx, to, "recompaction", client.ResumeRecompaction, client.Options{}, c.ID)
}

type recompactRollbackCommand struct {
	ID string `arg:"" help:"The recompaction's id."`
}

// Run begins to roll the recompaction back; doing it twice changes nothing.
func (c *recompactRollbackCommand) Run(ctx context.Context, to *console) error {
	return show(ctx, to, "recompaction", client.RollBackRecompaction, client.Options{}, c.ID)
}

// rateOf prints a rate, or that there is nothing to divide by.
func rateOf(rate *float64) string {
	if rate == nil {
		return "-"
	}
	return fmt.Sprintf("%.4g", *rate)
}
