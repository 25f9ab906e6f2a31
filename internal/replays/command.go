package replays

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/schollz/progressbar/v3"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/replay"
	"github.com/varve-dev/varve/internal/terminal"
)

// The routes of replays, as commands call them.
const (
	createRoute   client.Route[Replay]            = "POST admin/replays"
	readRoute     client.Route[Replay]            = "GET admin/replays/{replay}"
	reportRoute   client.Route[json.RawMessage]   = "GET admin/replays/{replay}/report"
	cancelRoute   client.Route[Replay]            = "POST admin/replays/{replay}/cancel"
	listRoute     client.ListRoute[Replay]        = "admin/replays"
	sessionsRoute client.ListRoute[ReplaySession] = "admin/replays/{replay}/sessions"
)

// The views of what is printed for a person.
var (
	listView = command.View(`{{row "REPLAY" "CREATED" "STATE" "DONE" "TOTAL" "FAILED" "MEASUREMENTS" "POLICIES"}}
{{- range .}}{{$p := .Progress}}
{{row .ID .CreatedAt .State $p.Done $p.Total $p.Failed $p.Outcomes (len .Policies)}}
{{- end}}
`)
	view = command.View(`{{row "replay" .ID}}
{{row "state" .State}}
{{row "created" .CreatedAt}}
{{row "finished" .FinishedAt}}
{{- with .Progress}}
{{row "found" (printf "%d sessions, %d of them too short" .Matched .TooShort)}}
{{row "sample" (printf "%d of %d: %d measured, %d failed" .Done .Total .Measured .Failed)}}
{{- range .Skipped}}
{{row "skipped" (printf "%d: %s" .Sessions .Reason)}}
{{- end}}
{{row "measurements" .Outcomes}}
{{- end}}
{{- range .Policies}}
{{row .Source .Name}}
{{- end}}
{{- if .Error}}
{{row "error" .Error}}
{{- end}}
`)
	sessionsView = command.View(`{{row "SESSION" "STATE" "MEASUREMENTS" "REASON"}}
{{- range .}}
{{row .Session .State .Outcomes .Reason}}
{{- end}}
`)
)

// commands are the commands of replays.
type commands struct {
	Replay replayCommand `cmd:"" help:"Measure what policies keep of conversations or stored sessions."`
}

type replayCommand struct {
	Run    runCommand    `cmd:"" default:"withargs" help:"Measure a folder, or the tenant's stored sessions."`
	List   listCommand   `cmd:"" help:"List replays of stored sessions, newest first."`
	Show   showCommand   `cmd:"" help:"Print a replay of stored sessions, and what became of them."`
	Report reportCommand `cmd:"" help:"Print the tables of a replay of stored sessions."`
	Cancel cancelCommand `cmd:"" help:"Let no further measurement begin; the tables cover what was measured."`
}

// storedSessions are the flags of a replay of stored sessions.
type storedSessions struct {
	Tenant         string `help:"The name or id that the key's tenant must have, whose sessions are measured."`
	command.Filter `embed:""`
	Sample         int   `placeholder:"N" help:"Measure N of the sessions at most; 200 by default, up to 1,000."`
	Seed           int64 `placeholder:"N" help:"Another seed is another sample; 1 by default."`
	MaxMessages    int64 `placeholder:"N" help:"Skip sessions with more messages; 10,000 by default."`
	MaxBytes       int64 `placeholder:"N" help:"Skip sessions with more bytes of messages; 16 MiB by default."`
	Detach         bool  `help:"Do not wait for the end."`
}

// check returns an error if the flags do not fit together: a replay is either of a folder or of stored sessions.
func (c *runCommand) check() error {
	ofTenant := !reflect.ValueOf(c.storedSessions).IsZero()
	switch {
	case len(c.ModelPrice) != 0 && len(c.ModelPrice) != 2:
		return command.Usage("--model-price takes two numbers: of a token that is read, and of one that is written")
	case c.Dir == "" && len(c.ModelPrice) > 0:
		return command.Usage("--model-price is for a folder")
	case c.Dir != "" && ofTenant:
		return command.Usage("--tenant and the flags that select stored sessions do not go with a folder")
	case c.Dir == "" && (c.Only != "" || c.Half != "" || c.Without):
		return command.Usage(
			"--only, --half and --without are for a folder: select stored sessions with --session or --metadata")
	}
	return nil
}

// ofTenant measures stored sessions on the server, with a bar on a terminal, and prints the tables. An interrupt leaves
// the replay running.
func (c *runCommand) ofTenant(ctx context.Context, to *command.Console) error {
	request, err := c.request()
	if err != nil {
		return err
	}
	// Sent again because its answer was lost, it is still one replay.
	a, err := createRoute.With(ctx, to.API, client.Options{Body: request, Key: uuid.NewString()})
	if err != nil {
		return err
	}
	if c.Detach {
		return to.Print(view, a.Raw, &a.Value)
	}
	id := a.Value.ID.String()
	if a, err = follow(ctx, to.API, id, os.Stderr); err != nil {
		return err
	}
	if r := &a.Value; r.State == Failed {
		return fmt.Errorf("replay %s failed: %s", id, terminal.Cell(r.Error))
	}
	if !to.JSON {
		if err := to.Print(view, a.Raw, &a.Value); err != nil {
			return err
		}
	}
	return c.print(ctx, to, id)
}

// request returns what the flags ask for. The first policy is the one that the others are compared with.
func (c *runCommand) request() (r Request, err error) {
	r = Request{
		Tenant: c.Tenant, Windows: c.Windows, Sample: c.Sample, Seed: c.Seed, MaxMessages: c.MaxMessages,
		MaxBytes: c.MaxBytes,
	}
	if r.Filter, err = c.Selected(); err != nil {
		return r, err
	}
	for i, text := range c.Policy {
		p, err := policyOf(text, i+1)
		if err != nil {
			return r, err
		}
		r.Policies = append(r.Policies, p)
	}
	for _, name := range slices.Concat(
		listed(c.Profiles, "none", policy.Profiles()), listed(c.Yardsticks, "none", replay.Yardsticks()),
	) {
		r.Policies = append(r.Policies, ReplayPolicy{Name: name})
	}
	if len(r.Policies) == 0 {
		return r, command.Usage("name a folder of conversations or, to measure stored sessions, policies: --policy, " +
			"--profiles or --yardsticks")
	}
	return r, nil
}

// policyOf returns the policy that the nth flag names: the tenant's default or a version of it, a file, or JSON.
func policyOf(text string, n int) (p ReplayPolicy, err error) {
	if name, _, _ := strings.Cut(text, "@"); name == "tenant" {
		return ReplayPolicy{Name: text}, nil
	}
	p.Name = fileName(text)
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		p.Name = fmt.Sprintf("policy-%d", n)
	}
	p.Policy, err = command.ReadPolicy(text)
	return p, err
}

// follow waits for the end of a replay and shows its progress.
func follow(ctx context.Context, api *client.Client, id string, out *os.File) (a client.Answer[Replay], err error) {
	shown := command.NewMeter(out, -1, progressbar.OptionShowCount())
	defer shown.Finish()
	for {
		if a, err = readRoute.Call(ctx, api, id); err != nil || a.Value.State.Ended() {
			break
		}
		p := a.Value.Progress
		text := fmt.Sprintf("%s, %d measurements", terminal.Cell(p.Contender), p.Outcomes)
		line := fmt.Sprintf("%s: %d of %d sessions, %s", a.Value.State, p.Done, p.Total, text)
		shown.Update(p.Done, p.Total, text, line)
		if err = api.Sleep(ctx, command.FollowEvery); err != nil {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("replay %s continues without this command (varve replay show, report, or cancel): %w", id, err)
	}
	return a, err
}

// print writes the files that the flags name, and prints the tables of a replay that has ended.
func (f *reportFiles) print(ctx context.Context, to *command.Console, id string) error {
	a, err := reportRoute.Call(ctx, to.API, id)
	if err != nil {
		return err
	}
	var report replay.Report
	if err := json.Unmarshal(a.Value, &report); err != nil {
		return err
	}
	return f.write(&report, to.JSON, to.Out)
}

type listCommand struct {
	Limit int `default:"20" help:"How many, newest first."`
}

// Run lists the tenant's replays.
func (c *listCommand) Run(ctx context.Context, to *command.Console) error {
	return command.Find(ctx, to, listView, listRoute, client.Query{}, c.Limit)
}

type showCommand struct {
	ID       string `arg:"" help:"The replay's id."`
	Sessions bool   `help:"What became of each session of the sample."`
	Limit    int    `default:"1000" help:"How many sessions."`
}

// Run prints the replay or, with --sessions, its sessions.
func (c *showCommand) Run(ctx context.Context, to *command.Console) error {
	if !c.Sessions {
		return show(ctx, to, readRoute, c.ID)
	}
	return command.Find(ctx, to, sessionsView, sessionsRoute, client.Query{}, c.Limit, c.ID)
}

type reportCommand struct {
	ID          string `arg:"" help:"The replay's id."`
	reportFiles `embed:""`
}

// Run prints the tables of the replay.
func (c *reportCommand) Run(ctx context.Context, to *command.Console) error {
	return c.print(ctx, to, c.ID)
}

// show calls a route of a replay and prints its answer.
func show(ctx context.Context, to *command.Console, r client.Route[Replay], id string) error {
	a, err := r.Call(ctx, to.API, id)
	if err != nil {
		return err
	}
	return to.Print(view, a.Raw, &a.Value)
}

type cancelCommand struct {
	ID string `arg:"" help:"The replay's id."`
}

// Run cancels the replay; cancelling it twice changes nothing.
func (c *cancelCommand) Run(ctx context.Context, to *command.Console) error {
	return show(ctx, to, cancelRoute, c.ID)
}
