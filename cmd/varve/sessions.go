package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/protocol"
)

type sessionsCommand struct {
	List sessionsListCommand `cmd:"" help:"List sessions: all, or those for which all conditions hold."`
	All  sessionsAllCommand  `cmd:"" help:"List sessions of all tenants, with an operator's key."`

	Show      sessionsShowCommand      `cmd:"" help:"Print a session with its policy, as JSON."`
	Archive   sessionsArchiveCommand   `cmd:"" help:"Archive a session: it is away until it is restored."`
	Unarchive sessionsUnarchiveCommand `cmd:"" help:"Restore an archived session."`
	Archived  sessionsArchivedCommand  `cmd:"" help:"List the archived sessions."`

	Rm sessionsRmCommand `cmd:"" help:"Erase a session and all that belongs to it."`
}

type sessionsListCommand struct {
	Metadata     map[string]string `help:"Members that the metadata have, like user=u1;app=x."`
	Model        string            `help:"The model of the session."`
	Format       string            `help:"The format of the session."`
	ForkedFrom   string            `help:"The forks of the session with this id."`
	UpdatedAfter time.Time         `help:"Something was appended after this time, like 2026-01-31T12:00:00Z."`
	MinTokens    *int              `help:"The view has at least this number of tokens."`
	OverWindow   bool              `help:"The view does not fit into the window."`
	Failing      bool              `help:"The compaction of the session fails."`
	Quarantined  bool              `help:"It has failed too often, and the session is quarantined."`
	Due          bool              `help:"It waits to be compacted."`
	Order        string            `enum:"created,last_append" default:"created" help:"Newest or last append first."`
	Limit        int               `default:"100" help:"How many to list."`
}

// Run prints the sessions.
func (c *sessionsListCommand) Run(ctx context.Context, to *command.Console) error {
	query := client.Query{"model": c.Model, "format": c.Format, "forked_from": c.ForkedFrom, "min_tokens": c.MinTokens}
	if len(c.Metadata) > 0 {
		metadata, err := json.Marshal(c.Metadata)
		if err != nil {
			return err
		}
		query["metadata"] = string(metadata)
	}
	if !c.UpdatedAfter.IsZero() {
		query["updated_after"] = c.UpdatedAfter.UTC().Format(time.RFC3339)
	}
	if c.OverWindow {
		query["over_window"] = true
	}
	if c.Order != "created" {
		query["order"] = c.Order
	}
	if c.Failing {
		query["failing"] = true
	}
	if c.Quarantined {
		query["quarantined"] = true
	}
	if c.Due {
		query["due"] = true
	}
	return command.Find(ctx, to, named("sessions"), client.ListSessions, query, c.Limit)
}

type sessionsAllCommand struct {
	Order  string `enum:"tokens,bytes,idle,unread,over_window,failing,quarantined" default:"tokens" help:"${enum}."`
	Tenant string `help:"Name or id of the tenant whose sessions to list; of all if not given."`
	Limit  int    `default:"100" help:"How many to list."`
}

// Run prints the sessions.
func (c *sessionsAllCommand) Run(ctx context.Context, to command.Operators) error {
	query := client.Query{"order": c.Order}
	if c.Tenant != "" {
		id, err := client.TenantID(ctx, to.API, c.Tenant)
		if err != nil {
			return err
		}
		query["tenant"] = id
	}
	return command.Find(ctx, to.Console, named("sessions of tenants"), client.ListAllSessions, query, c.Limit)
}

type sessionsShowCommand struct {
	Session string `arg:"" help:"Session id."`
}

// Run prints the session.
func (c *sessionsShowCommand) Run(ctx context.Context, to *command.Console) error {
	return showJSON(ctx, to, client.ReadSession, client.Options{}, c.Session)
}

type sessionsRmCommand struct {
	Session string `arg:"" help:"Session id."`
	Yes     bool   `required:"" help:"Confirm: nothing brings the session back."`
}

// Run erases the session.
func (c *sessionsRmCommand) Run(ctx context.Context, to *command.Console) error {
	if err := client.DeleteSession.Call(ctx, to.API, c.Session); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "erased")
	return nil
}

type forkCommand struct {
	Session string `arg:"" help:"Id of the session to fork."`
	ID      string `name:"id" help:"Id of the new session; one is made if not given."`
	Seq     int64  `help:"The last seq that both have; all if not given."`
}

// Run prints the fork's id, or the session as the API has it with --json.
func (c *forkCommand) Run(ctx context.Context, to *command.Console) error {
	o := client.Options{Body: protocol.ForkRequest{ID: c.ID, Seq: c.Seq}}
	return show(ctx, to, "fork", client.ForkSession, o, c.Session)
}
