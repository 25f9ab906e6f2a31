package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/client"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

type rolloutCommand struct {
	Start   rolloutStartCommand   `cmd:"" help:"Give a new version of the tenant's policy to a share of its sessions."`
	List    rolloutListCommand    `cmd:"" help:"List the rollouts, newest first."`
	Show    rolloutShowCommand    `cmd:"" help:"Print a rollout: the new version beside the default."`
	Share   rolloutShareCommand   `cmd:"" help:"Change the share of sessions."`
	Change  rolloutChangeCommand  `cmd:"" help:"Change the guard, or how many sessions a promotion takes."`
	Promote rolloutPromoteCommand `cmd:"" help:"Make the version the tenant's default."`
	Back    rolloutBackCommand    `cmd:"" help:"Give all sessions the tenant's default again."`
}

// ifMatch is the revision that whoever changes something knows.
type ifMatch struct {
	IfMatch int `placeholder:"N" help:"Do nothing unless the rollout (at the start, the default) has this revision."`
}

// rolloutShare is a share of the tenant's sessions.
type rolloutShare struct {
	Percent float64 `required:"" placeholder:"P" help:"Of the sessions without a policy of their own, 0.1 to 100."`
}

// perMille returns the share in thousandths.
func (s *rolloutShare) perMille() (int, error) {
	thousandths := math.Round(10 * s.Percent)
	if thousandths < 1 || thousandths > session.MaxShare || math.Abs(thousandths-10*s.Percent) > 1e-6 {
		return 0, usageError(fmt.Sprintf("--percent is %v: it must be 0.1 to 100, in steps of 0.1", s.Percent))
	}
	return int(thousandths), nil
}

type rolloutStartCommand struct {
	File string `arg:"" optional:"" help:"JSON file with the new policy; - is standard input."`
	rolloutShare
	ifMatch
	FromVersion    int     `placeholder:"N" help:"The layer of this earlier version, instead of a file."`
	MinSessions    int     `placeholder:"N" help:"It is promoted only when N sessions were compacted under it."`
	GuardFactor    float64 `placeholder:"F" help:"It goes back by itself if a rate is more than F times the default's."`
	MinCompactions int64   `default:"100" placeholder:"N" help:"Under each version, before the guard looks."`
	Replay         bool    `help:"Also measure both versions over a sample of the tenant's sessions."`
}

// Run starts the rollout, and with --replay the replay that measures its versions.
func (c *rolloutStartCommand) Run(ctx context.Context, to *console) error {
	body, err := c.request()
	if err != nil {
		return err
	}
	o := client.Options{Body: body, Key: uuid.NewString(), IfMatch: c.IfMatch}
	a, err := client.StartRollout.With(ctx, to.api, o)
	if err != nil {
		return err
	}
	if err := to.print("rollout", a.Raw, &a.Value); err != nil || !c.Replay {
		return err
	}
	r := &a.Value
	_, err = client.BeginReplay.With(ctx, to.api, client.Options{Key: uuid.NewString(), Body: protocol.ReplayRequest{
		Policies: []protocol.ReplayPolicy{
			{Name: fmt.Sprintf("tenant@%d", r.BaseVersion)}, {Name: fmt.Sprintf("tenant@%d", r.Version)},
		},
	}})
	return err
}

// request returns what the flags ask for.
func (c *rolloutStartCommand) request() (r protocol.RolloutRequest, err error) {
	if (c.File == "") == (c.FromVersion == 0) {
		return r, usageError("name either a file with the new policy, or an earlier version with --from-version")
	}
	r.Version, r.MinSessions = c.FromVersion, c.MinSessions
	if c.GuardFactor > 0 {
		r.Guard = &session.RolloutGuard{Factor: c.GuardFactor, MinCompactions: c.MinCompactions}
	}
	if r.PerMille, err = c.perMille(); err != nil || c.File == "" {
		return r, err
	}
	r.Policy, err = policyFile(c.File)
	if err == nil && !json.Valid(r.Policy) {
		err = usageError(c.File + " is not JSON")
	}
	return r, err
}

type rolloutListCommand struct {
	Limit int `default:"20" help:"How many, newest first."`
}

// Run lists the tenant's rollouts.
func (c *rolloutListCommand) Run(ctx context.Context, to *console) error {
	return showList(ctx, to, "rollouts", client.Rollouts, c.Limit)
}

type rolloutShowCommand struct {
	ID string `arg:"" help:"The rollout's id."`
}

// Run prints the rollout with its comparison.
func (c *rolloutShowCommand) Run(ctx context.Context, to *console) error {
	return show(ctx, to, "rollout comparison", client.GetRollout, client.Options{}, c.ID)
}

type rolloutShareCommand struct {
	ID string `arg:"" help:"The rollout's id."`
	rolloutShare
	ifMatch
}

// Run changes the share.
func (c *rolloutShareCommand) Run(ctx context.Context, to *console) error {
	perMille, err := c.perMille()
	if err != nil {
		return err
	}
	o := client.Options{Body: protocol.RolloutChange{PerMille: perMille}, IfMatch: c.IfMatch}
	return show(ctx, to, "rollout", client.ChangeRollout, o, c.ID)
}

type rolloutChangeCommand struct {
	ID string `arg:"" help:"The rollout's id."`
	ifMatch
	MinSessions    *int    `placeholder:"N" help:"It is promoted only when N sessions were compacted under it."`
	GuardFactor    float64 `placeholder:"F" xor:"guard" help:"It goes back by itself above F times the default."`
	MinCompactions int64   `default:"100" placeholder:"N" help:"Under each version, before the guard looks."`
	NoGuard        bool    `xor:"guard" help:"Nobody but a caller ends it."`
}

// Run changes the rollout and prints it.
func (c *rolloutChangeCommand) Run(ctx context.Context, to *console) (err error) {
	change := protocol.RolloutChange{MinSessions: c.MinSessions}
	switch {
	case c.NoGuard:
		change.Guard = json.RawMessage("null")
	case c.GuardFactor > 0:
		change.Guard, err = json.Marshal(session.RolloutGuard{Factor: c.GuardFactor, MinCompactions: c.MinCompactions})
	case c.MinSessions == nil:
		err = usageError("give --min-sessions, --guard-factor or --no-guard")
	}
	if err != nil {
		return err
	}
	o := client.Options{Body: change, IfMatch: c.IfMatch}
	return show(ctx, to, "rollout", client.ChangeRollout, o, c.ID)
}

type rolloutPromoteCommand struct {
	ID string `arg:"" help:"The rollout's id."`
	ifMatch
}

// Run ends the rollout with the version as the default.
func (c *rolloutPromoteCommand) Run(ctx context.Context, to *console) error {
	o := client.Options{Key: uuid.NewString(), IfMatch: c.IfMatch}
	return show(ctx, to, "rollout", client.PromoteRollout, o, c.ID)
}

type rolloutBackCommand struct {
	ifMatch
	ID       string `arg:"" help:"The rollout's id."`
	RollBack bool   `help:"Also take back what compactions under the version did."`
}

// Run ends the rollout with the default as it was.
func (c *rolloutBackCommand) Run(ctx context.Context, to *console) error {
	o := client.Options{
		Body: protocol.RolloutBack{RollBack: c.RollBack}, Key: uuid.NewString(), IfMatch: c.IfMatch,
	}
	return show(ctx, to, "rollout", client.BackRollout, o, c.ID)
}

// rateOf prints a rate, or that there is nothing to divide by.
func rateOf(rate *float64) string {
	if rate == nil {
		return "-"
	}
	return fmt.Sprintf("%.4g", *rate)
}
