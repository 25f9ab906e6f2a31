package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

type retentionCommand struct {
	Show    retentionShowCommand    `cmd:"" help:"Print when the tenant's sessions expire."`
	Preview retentionPreviewCommand `cmd:"" help:"Count what would happen now, and name the first sessions."`
	Set     retentionSetCommand     `cmd:"" help:"Let sessions expire: they are erased or archived within an hour."`
}

// expiryFlags say when sessions expire; 0 is never.
type expiryFlags struct {
	Idle time.Duration `help:"After the last append, e.g. 720h."`
	Age  time.Duration `help:"After the creation."`
}

// Validate returns an error for a time that no retention has.
func (f *expiryFlags) Validate() error {
	return checkTimes(map[string]time.Duration{"--idle": f.Idle, "--age": f.Age})
}

func (f *expiryFlags) times() (t session.RetentionBound) {
	if f.Idle > 0 {
		t.IdleSeconds = new(int64(f.Idle.Seconds()))
	}
	if f.Age > 0 {
		t.AgeSeconds = new(int64(f.Age.Seconds()))
	}
	return t
}

func checkTimes(times map[string]time.Duration) error {
	const shortest = time.Duration(session.MinRetention) * time.Second
	for name, d := range times {
		if d != 0 && (d < shortest || int64(d/time.Second) > session.MaxRetention || d%time.Second != 0) {
			return fmt.Errorf("%s is %s: it must be whole seconds from %s on", name, d, shortest)
		}
	}
	return nil
}

// retentionFlags are a retention.
type retentionFlags struct {
	expiryFlags `embed:""`
	Archive     bool          `help:"Expired sessions are archived, not erased."`
	ArchivesFor time.Duration `help:"How long archives are kept; for ever if not given."`
}

// Validate returns an error for a time that no retention has, and for one of archives if there are none.
func (f *retentionFlags) Validate() error {
	if f.ArchivesFor != 0 && !f.Archive {
		return errors.New("--archives-for needs --archive")
	}
	return errors.Join(f.expiryFlags.Validate(), checkTimes(map[string]time.Duration{"--archives-for": f.ArchivesFor}))
}

func (f *retentionFlags) retention() (r session.Retention) {
	times := f.times()
	r.IdleSeconds, r.AgeSeconds = times.IdleSeconds, times.AgeSeconds
	if f.Archive {
		r.Then = session.ThenArchive
	}
	if f.ArchivesFor > 0 {
		r.ArchiveSeconds = new(int64(f.ArchivesFor.Seconds()))
	}
	return r
}

type retentionShowCommand struct{}

// Run prints the retention.
func (c *retentionShowCommand) Run(ctx context.Context, to *command.Console) error {
	return show(ctx, to, "retention", client.ReadRetention, client.Options{})
}

type retentionPreviewCommand struct {
	retentionFlags `embed:""`
}

// Run prints what would happen by the flags or, without any, by the tenant's retention.
func (c *retentionPreviewCommand) Run(ctx context.Context, to *command.Console) error {
	query := client.Query{}
	wanted := c.retention()
	if wanted.IdleSeconds != nil {
		query["idle_seconds"] = *wanted.IdleSeconds
	}
	if wanted.AgeSeconds != nil {
		query["max_age_seconds"] = *wanted.AgeSeconds
	}
	if wanted.Archives() {
		query["then"] = string(wanted.Then)
	}
	if wanted.ArchiveSeconds != nil {
		query["archive_max_age_seconds"] = *wanted.ArchiveSeconds
	}
	return show(ctx, to, "retention preview", client.PreviewRetention, client.Options{Query: query})
}

type retentionSetCommand struct {
	retentionFlags `embed:""`
	Never          bool `help:"Nothing expires any more."`
	Yes            bool `required:"" help:"Confirm: nothing brings expired sessions back."`
}

// Validate returns an error for a retention without a time, unless nothing is to expire.
func (c *retentionSetCommand) Validate() error {
	if c.Never == (c.retention() != session.Retention{}) {
		return errors.New("give --idle, --age or both, or --never alone")
	}
	return c.retentionFlags.Validate()
}

// Run changes the retention and prints it.
func (c *retentionSetCommand) Run(ctx context.Context, to *command.Console) error {
	return show(ctx, to, "retention", client.PutRetention, client.Options{Body: c.retention()})
}

type tenantsRetentionCommand struct {
	Tenant      string `arg:"" help:"Name or id."`
	expiryFlags `embed:""`
	Unbounded   bool `help:"The tenant may keep its sessions for ever."`
	Yes         bool `required:"" help:"Confirm: what is older is erased, and nothing brings it back."`
}

// Validate returns an error for a bound without a time, unless there is to be none.
func (c *tenantsRetentionCommand) Validate() error {
	if c.Unbounded == (c.Idle > 0 || c.Age > 0) {
		return errors.New("give --idle, --age or both, or --unbounded alone")
	}
	return c.expiryFlags.Validate()
}

// Run bounds the retention of the tenant and prints the tenant.
func (c *tenantsRetentionCommand) Run(ctx context.Context, to command.Operators) error {
	return changeTenant(ctx, to, c.Tenant, protocol.TenantChange{MostKept: new(session.RetentionBound(c.times()))})
}

// lasting returns a time of a retention, in seconds, as a table shows it; nil is none.
func lasting(seconds *int64) string {
	if seconds == nil {
		return "never expires"
	}
	return (time.Duration(*seconds) * time.Second).String()
}
