package main

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

	"github.com/varve-dev/varve/internal/client"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/replay"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/terminal"
)

type replayCommand struct {
	Run    replayRunCommand    `cmd:"" default:"withargs" help:"Measure a folder, or stored sessions of a tenant."`
	List   replayListCommand   `cmd:"" help:"List replays of stored sessions, newest first."`
	Show   replayShowCommand   `cmd:"" help:"Print a replay of stored sessions, and what became of them."`
	Report replayReportCommand `cmd:"" help:"Print the tables of a replay of stored sessions."`
	Cancel replayCancelCommand `cmd:"" help:"Let no further measurement begin; the tables cover what was measured."`
}

// storedSessions are the flags of a replay of stored sessions.
type storedSessions struct {
	Tenant          string `placeholder:"ID" help:"Measure stored sessions of the key's tenant, which has this id."`
	recompactFilter `embed:""`
	Sample          int   `placeholder:"N" help:"Measure N of the sessions at most; 200 by default, up to 1,000."`
	Seed            int64 `placeholder:"N" help:"Another seed is another sample; 1 by default."`
	MaxMessages     int64 `placeholder:"N" help:"Skip sessions with more messages; 10,000 by default."`
	MaxBytes        int64 `placeholder:"N" help:"Skip sessions with more bytes of messages; 16 MiB by default."`
	Detach          bool  `help:"Do not wait for the end."`
}

// check returns an error if the flags do not fit together: a replay is either of a folder or of stored sessions.
func (c *replayRunCommand) check() error {
	ofTenant := !reflect.ValueOf(c.storedSessions).IsZero()
	switch {
	case c.Dir == "" && c.Tenant == "":
		return usageError("name a folder of conversations, or a tenant with --tenant")
	case len(c.ModelPrice) != 0 && len(c.ModelPrice) != 2:
		return usageError("--model-price takes two numbers: of a token that is read, and of one that is written")
	case c.Dir == "" && len(c.ModelPrice) > 0:
		return usageError("--model-price is for a folder")
	case c.Dir != "" && ofTenant:
		return usageError("--tenant and the flags that select stored sessions do not go with a folder")
	case c.Dir == "" && (c.Only != "" || c.Half != ""):
		return usageError("--only and --half are for a folder: select stored sessions with --session or --metadata")
	}
	return nil
}

// ofTenant measures stored sessions on the server, with a bar on a terminal, and prints the tables. An interrupt leaves
// the replay running.
func (c *replayRunCommand) ofTenant(ctx context.Context, to *console) error {
	request, err := c.request()
	if err != nil {
		return err
	}
	// Sent again because its answer was lost, it is still one replay.
	a, err := client.CreateReplay.With(ctx, to.api, client.Options{Body: request, Key: uuid.NewString()})
	if err != nil {
		return err
	}
	if c.Detach {
		return to.print("replay", a.Raw, &a.Value)
	}
	id := a.Value.ID.String()
	if a, err = followReplay(ctx, to.api, id, os.Stderr); err != nil {
		return err
	}
	if r := &a.Value; r.State == session.ReplayFailed {
		return fmt.Errorf("replay %s failed: %s", id, terminal.Cell(r.Error))
	}
	if !to.JSON {
		if err := writeView(to.out, "replay", &a.Value); err != nil {
			return err
		}
	}
	return c.print(ctx, to, id)
}

// request returns what the flags ask for. The first policy is the one that the others are compared with.
func (c *replayRunCommand) request() (r protocol.ReplayRequest, err error) {
	r = protocol.ReplayRequest{
		Tenant: c.Tenant, Windows: c.Windows, Sample: c.Sample, Seed: c.Seed, MaxMessages: c.MaxMessages,
		MaxBytes: c.MaxBytes,
	}
	if r.Filter, err = c.filter(); err != nil {
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
		r.Policies = append(r.Policies, protocol.ReplayPolicy{Name: name})
	}
	if len(r.Policies) == 0 {
		return r, usageError("name what to measure: --policy, --profiles or --yardsticks")
	}
	return r, nil
}

// policyOf returns the policy that the nth flag names: the tenant's default or a version of it, a file, or JSON.
func policyOf(text string, n int) (p protocol.ReplayPolicy, err error) {
	if name, _, _ := strings.Cut(text, "@"); name == "tenant" {
		return protocol.ReplayPolicy{Name: text}, nil
	}
	p.Name = fileName(text)
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		p.Name = fmt.Sprintf("policy-%d", n)
	}
	p.Policy, err = readPolicy(text)
	return p, err
}

// followReplay waits for the end of a replay and shows its progress.
func followReplay(
	ctx context.Context, api *client.Client, id string, out *os.File,
) (a client.Answer[protocol.Replay], err error) {
	shown := newMeter(out, -1, progressbar.OptionShowCount())
	defer shown.finish()
	for {
		if a, err = client.ReadReplay.Call(ctx, api, id); err != nil || a.Value.State.Ended() {
			break
		}
		p := a.Value.Progress
		text := fmt.Sprintf("%s, %d measurements", terminal.Cell(p.Contender), p.Outcomes)
		line := fmt.Sprintf("%s: %d of %d sessions, %s", a.Value.State, p.Done, p.Total, text)
		shown.update(p.Done, p.Total, text, line)
		if err = api.Sleep(ctx, followEvery); err != nil {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("replay %s continues without this command (varve replay show, report, or cancel): %w", id, err)
	}
	return a, err
}

// print writes the files that the flags name, and prints the tables of a replay that has ended.
func (f *reportFiles) print(ctx context.Context, to *console, id string) error {
	a, err := client.ReplayReport.Call(ctx, to.api, id)
	if err != nil {
		return err
	}
	var report replay.Report
	if err := json.Unmarshal(a.Value, &report); err != nil {
		return err
	}
	return f.write(&report, to.JSON, to.out)
}

type replayListCommand struct {
	Limit int `default:"20" help:"How many, newest first."`
}

// Run lists the tenant's replays.
func (c *replayListCommand) Run(ctx context.Context, to *console) error {
	return showList(ctx, to, "replays", client.ListReplays, c.Limit)
}

type replayShowCommand struct {
	ID       string `arg:"" help:"The replay's id."`
	Sessions bool   `help:"What became of each session of the sample."`
	Limit    int    `default:"1000" help:"How many sessions."`
}

// Run prints the replay or, with --sessions, its sessions.
func (c *replayShowCommand) Run(ctx context.Context, to *console) error {
	if !c.Sessions {
		return show(ctx, to, "replay", client.ReadReplay, client.Options{}, c.ID)
	}
	return showList(ctx, to, "replay sessions", client.ListReplaySessions, c.Limit, c.ID)
}

type replayReportCommand struct {
	ID          string `arg:"" help:"The replay's id."`
	reportFiles `embed:""`
}

// Run prints the tables of the replay.
func (c *replayReportCommand) Run(ctx context.Context, to *console) error {
	return c.print(ctx, to, c.ID)
}

type replayCancelCommand struct {
	ID string `arg:"" help:"The replay's id."`
}

// Run cancels the replay; cancelling it twice changes nothing.
func (c *replayCancelCommand) Run(ctx context.Context, to *console) error {
	return show(ctx, to, "replay", client.CancelReplay, client.Options{}, c.ID)
}
