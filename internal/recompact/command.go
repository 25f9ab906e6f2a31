package recompact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/template"
	"time"

	"github.com/google/uuid"
	"github.com/schollz/progressbar/v3"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/terminal"
)

// The routes of recompactions, as commands call them.
const (
	createRoute   client.Route[Recompaction]            = "POST admin/recompactions"
	planRoute     client.Route[RecompactionPlan]        = "POST admin/recompactions" // the same with DryRun
	readRoute     client.Route[Recompaction]            = "GET admin/recompactions/{recompaction}"
	compareRoute  client.Route[Comparison]              = "GET admin/recompactions/{recompaction}/comparison"
	pauseRoute    client.Route[Recompaction]            = "POST admin/recompactions/{recompaction}/pause"
	resumeRoute   client.Route[Recompaction]            = "POST admin/recompactions/{recompaction}/resume"
	cancelRoute   client.Route[Recompaction]            = "POST admin/recompactions/{recompaction}/cancel"
	rollBackRoute client.Route[Recompaction]            = "POST admin/recompactions/{recompaction}/rollback"
	listRoute     client.ListRoute[Recompaction]        = "admin/recompactions"
	sessionsRoute client.ListRoute[RecompactionSession] = "admin/recompactions/{recompaction}/sessions"
)

// The views of what is printed for a person.
var (
	listView = command.View(`{{row "RECOMPACTION" "CREATED" "STATE" "DONE" "TOTAL" "CHANGED" "FAILED" "BEFORE" "AFTER"}}
{{- range .}}{{$p := .Progress}}
{{row .ID .CreatedAt .State $p.Done $p.Total $p.Changed $p.Failed .TokensBefore .TokensAfter}}
{{- end}}
`)
	view = command.View(`{{row "recompaction" .ID}}
{{row "state" .State}}
{{row "created" .CreatedAt}}
{{row "finished" .FinishedAt}}
{{- with .NextStartAt}}
{{row "next session from" .}}
{{- end}}
{{row "sessions" (printf "%d of %d: %s" .Progress.Done .Progress.Total .Progress.Outcomes)}}
{{row "tokens" (print .TokensBefore " → " .TokensAfter)}}
{{- if or .Progress.RolledBack .Progress.Excepted}}
{{row "rolled back" (printf "%d, %d excepted" .Progress.RolledBack .Progress.Excepted)}}
{{- end}}
{{- range .Errors}}
{{row (print "failed: " (cell .Session)) .Error}}
{{- end}}
`)
	comparisonView = command.View(`{{row "" "BEFORE" "SINCE" "OTHERS SINCE"}}
{{row "sessions changed" .Sessions "" ""}}
{{- with .Before}}{{$b := .}}{{with $.After}}{{$o := $.Others}}
{{row "tokens of the views" $b.ViewTokens .ViewTokens ""}}
{{row "views served" $b.Views .Views $o.Views}}
{{row "tokens for each view" (rate $b.TokensPerView) (rate .TokensPerView) (rate $o.TokensPerView)}}
{{row "read back" $b.ReadBacks .ReadBacks $o.ReadBacks}}
{{row "read back for 1,000 views" (rate $b.ReadsPerViews) (rate .ReadsPerViews) (rate $o.ReadsPerViews)}}
{{- end}}{{end}}
`)
	sessionsView = command.View(`{{row "SESSION" "STATE" "BEFORE" "AFTER" "RUN" "ERROR"}}
{{- range .}}
{{row .Session .State .TokensBefore .TokensAfter .Run (or .Reason .Error)}}
{{- end}}
`)
	planView = command.View(`{{row "sessions" .Sessions}}
{{row "messages" .Messages}}
{{row "tokens of the logs" .TotalTokens}}
{{row "tokens of the views" .ContextTokens}}
{{- with .Sample}}
{{row "sample" (printf "%d sessions, %d failed, %d → %d tokens" .Sessions .Failed .TokensBefore .TokensAfter)}}
{{- with .Models}}{{if .Summaries}}
{{row "models in the sample" .Said}}
{{- end}}{{end}}
{{- end}}
{{- with .Estimate}}
{{row "estimate" (printf "%d sessions change, %d → %d tokens" .Changed .TokensBefore .TokensAfter)}}
{{- end}}
{{- range .Sample.Errors}}
{{row .Session .Error}}
{{- end}}
`)
)

// commands are the commands of recompactions.
type commands struct {
	Recompact recompactCommand `cmd:"" help:"Compact many sessions again, from their logs."`
}

// newCommands returns the commands, each with its route.
func newCommands() *commands {
	return &commands{recompactCommand{
		Pause:    controlCommand{route: pauseRoute},
		Resume:   controlCommand{route: resumeRoute},
		Cancel:   controlCommand{route: cancelRoute},
		Rollback: controlCommand{route: rollBackRoute},
		Tenants: tenantsCommand{
			Pause:    tenantsControlCommand{route: pauseGroup},
			Resume:   tenantsControlCommand{route: resumeGroup},
			Cancel:   tenantsControlCommand{route: cancelGroup},
			Rollback: tenantsControlCommand{route: rollBackGroup},
		},
	}}
}

type recompactCommand struct {
	Start  startCommand   `cmd:"" default:"withargs" help:"Compact many sessions again, and wait for the end."`
	List   listCommand    `cmd:"" help:"List recompactions, newest first."`
	Show   showCommand    `cmd:"" help:"Print a recompaction, and what became of its sessions."`
	Pause  controlCommand `cmd:"" help:"Let the running compactions end, and start no others for now."`
	Resume controlCommand `cmd:"" help:"End a pause."`
	Cancel controlCommand `cmd:"" help:"Let the running compactions end, and start no others."`

	Compare  compareCommand `cmd:"" help:"Print what the changed sessions served before and since."`
	Rollback controlCommand `cmd:"" help:"Bring each session back to what it served before."`

	Tenants tenantsCommand `cmd:"" help:"The same for sessions of many tenants, with an operator's key."`
}

// pace says when sessions begin.
type pace struct {
	MaxRunning int        `default:"2" help:"How many sessions are compacted at once, 1 to 32."`
	PerMinute  *int       `placeholder:"N" help:"How many sessions begin in a minute, at most."`
	StartAt    *time.Time `placeholder:"TIME" help:"No session begins before."`
	Hours      string     `placeholder:"FROM-TO" help:"Hours of the day in which sessions begin, e.g. 22:00-06:00."`
	TimeZone   string     `default:"UTC" help:"Of the hours, e.g. Europe/Berlin."`
}

// set sets what the flags say about when sessions begin.
func (p *pace) set(r *Request) {
	r.MaxRunning, r.PerMinute = p.MaxRunning, p.PerMinute
	r.StartAt = p.StartAt
	if p.Hours != "" {
		from, to, _ := strings.Cut(p.Hours, "-")
		r.Hours = &Hours{From: from, To: to, TimeZone: p.TimeZone}
	}
}

type startCommand struct {
	command.Filter `embed:""`
	command.Policy `embed:""`
	pace           `embed:""`
	Ask            bool `help:"Have language models asked for summaries that are not kept."`
	DryRun         bool `help:"Only count, and estimate what would be saved."`
	Detach         bool `help:"Do not wait for the end."`
}

// Run recompacts, with a bar on a terminal, and prints how it ended. An interrupt leaves the recompaction running.
func (c *startCommand) Run(ctx context.Context, to *command.Console) error {
	request, err := c.request()
	if err != nil {
		return err
	}
	if c.DryRun {
		return show(ctx, to, planView, planRoute, client.Options{Body: request})
	}
	// Sent again because its answer was lost, it is still one recompaction.
	a, err := createRoute.With(ctx, to.API, client.Options{Body: request, Key: uuid.NewString()})
	if err == nil && !c.Detach {
		a, err = follow(ctx, to.API, readRoute, a.Value.ID.String(), os.Stderr)
	}
	if err != nil {
		return err
	}
	r := &a.Value
	err = to.Print(view, a.Raw, r)
	if err == nil && r.State == Failed {
		return fmt.Errorf("recompaction %s failed: %s", r.ID, terminal.Cell(r.Error))
	}
	return errors.Join(err, failedIn(r.ID, r.Progress))
}

// failedIn returns an error if the recompaction of sessions failed.
func failedIn(id uuid.UUID, p RecompactionProgress) error {
	if p.Failed == 0 {
		return nil
	}
	return fmt.Errorf("recompaction %s: %d sessions failed", id, p.Failed)
}

// request returns what the flags ask for.
func (c *startCommand) request() (r Request, err error) {
	c.set(&r)
	r.Ask, r.DryRun = c.Ask, c.DryRun
	if r.Filter, err = c.Selected(); err != nil {
		return r, err
	}
	r.Policy, err = c.Document()
	return r, err
}

// followed is a recompaction of one tenant or of many.
type followed interface {
	at() (state string, p RecompactionProgress, ended bool)
}

func (r Recompaction) at() (state string, p RecompactionProgress, ended bool) {
	return string(r.State), r.Progress, r.State.Ended()
}

// follow waits for the end of a recompaction and shows its progress.
func follow[T followed](
	ctx context.Context, api *client.Client, route client.Route[T], id string, out *os.File,
) (a client.Answer[T], err error) {
	shown := command.NewMeter(out, -1, progressbar.OptionShowCount())
	defer shown.Finish()
	for {
		if a, err = route.Call(ctx, api, id); err != nil {
			break
		}
		state, p, ended := a.Value.at()
		if ended {
			break
		}
		text := p.Outcomes()
		line := fmt.Sprintf("%s: %d of %d sessions, %s", state, p.Done, p.Total, text)
		shown.Update(p.Done, p.Total, text, line)
		if err = api.Sleep(ctx, command.FollowEvery); err != nil {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("recompaction %s continues without this command (varve recompact show, or cancel): %w",
			id, err)
	}
	return a, err
}

// Said returns what models are wanted for, as a sentence.
func (m RecompactionModels) Said() string {
	return fmt.Sprintf("%d summaries, %d kept, %d calls, cost at most %.4f", m.Summaries, m.Kept, m.Calls, m.CostMax)
}

// Outcomes returns what became of the sessions so far.
func (p RecompactionProgress) Outcomes() string {
	return fmt.Sprintf("%d changed, %d unchanged, %d failed, %d skipped", p.Changed, p.Unchanged, p.Failed, p.Skipped)
}

type listCommand struct {
	Limit int `default:"20" help:"How many, newest first."`
}

// Run lists the tenant's recompactions.
func (c *listCommand) Run(ctx context.Context, to *command.Console) error {
	return command.Find(ctx, to, listView, listRoute, client.Query{}, c.Limit)
}

type showCommand struct {
	ID       string `arg:"" help:"The recompaction's id."`
	Sessions bool   `help:"What became of each session."`
	Limit    int    `default:"1000" help:"How many sessions."`
}

// Run prints the recompaction or, with --sessions, its sessions.
func (c *showCommand) Run(ctx context.Context, to *command.Console) error {
	if !c.Sessions {
		return show(ctx, to, view, readRoute, client.Options{}, c.ID)
	}
	return command.Find(ctx, to, sessionsView, sessionsRoute, client.Query{}, c.Limit, c.ID)
}

type compareCommand struct {
	ID string `arg:"" help:"The recompaction's id."`
}

// Run prints the comparison.
func (c *compareCommand) Run(ctx context.Context, to *command.Console) error {
	return show(ctx, to, comparisonView, compareRoute, client.Options{}, c.ID)
}

// controlCommand changes a recompaction. Doing it twice changes nothing.
type controlCommand struct {
	ID    string `arg:"" help:"The recompaction's id."`
	route client.Route[Recompaction]
}

// Run calls the route and prints the recompaction.
func (c *controlCommand) Run(ctx context.Context, to *command.Console) error {
	return show(ctx, to, view, c.route, client.Options{}, c.ID)
}

// show calls a route and prints its answer.
func show[T any](
	ctx context.Context, to *command.Console, view *template.Template, r client.Route[T], o client.Options, id ...any,
) error {
	a, err := r.With(ctx, to.API, o, id...)
	if err != nil {
		return err
	}
	return to.Print(view, a.Raw, &a.Value)
}
