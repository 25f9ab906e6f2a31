package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/uuid"
	"github.com/schollz/progressbar/v3"

	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
)

type resultsCommands struct {
	Read resultsCommand     `cmd:"" default:"withargs" help:"List a session's persisted results, or print one."`
	Stat resultsStatCommand `cmd:"" help:"Print how much lies in which result store (with rights on the database)."`
	Move resultsMoveCommand `cmd:"" help:"Move bodies to another result store (with rights on the database)."`
}

// resultsFilter selects bodies of results: by default, all of all tenants.
type resultsFilter struct {
	config.Database `embed:""`
	Tenant          string `help:"Only of this tenant, by its name or id."`
	Session         string `help:"Only of this session, by its id; with --tenant."`
}

// Validate returns an error for a session without its tenant.
func (f *resultsFilter) Validate() error {
	if f.Session != "" && f.Tenant == "" {
		return errors.New("--session needs --tenant: every tenant may have a session of this id")
	}
	return f.Database.Validate()
}

// selected is what a filter selects of a tenant.
type selected struct {
	tenant session.Tenant
	key    *session.Key // of the one session
}

// sessionKey returns the key of the one session, nil for all.
func (s *selected) sessionKey() *uuid.UUID {
	if s.key == nil {
		return nil
	}
	return &s.key.Key
}

// each calls do with each tenant that is selected.
func (f *resultsFilter) each(
	ctx context.Context, settings *config.Client, do func(*postgres.Store, selected) error,
) error {
	return withStore(ctx, settings, f.Database, func(store *postgres.Store) error {
		if f.Tenant == "" {
			tenants, err := store.Tenants(ctx)
			if err != nil {
				return err
			}
			for _, t := range tenants {
				if err := do(store, selected{tenant: t}); err != nil {
					return err
				}
			}
			return nil
		}
		one := selected{}
		var err error
		if one.tenant, err = store.TenantNamed(ctx, f.Tenant); err != nil {
			return fmt.Errorf("tenant %q: %w", f.Tenant, err)
		}
		if f.Session != "" {
			found, err := store.Session(ctx, session.Address{Tenant: one.tenant.ID, ID: f.Session})
			if err != nil {
				return fmt.Errorf("session %q: %w", f.Session, err)
			}
			one.key = &session.Key{Tenant: one.tenant.ID, Key: found.Key}
		}
		return do(store, one)
	})
}

// resultStat is what a tenant has in a store.
type resultStat struct {
	Tenant string `json:"tenant"`
	Store  string `json:"store"`
	Bodies int64  `json:"bodies"`
	Bytes  int64  `json:"bytes"`
	Stored int64  `json:"stored_bytes"`
}

type resultsStatCommand struct {
	resultsFilter `embed:""`
}

// Validate checks the filter: kong does not ask embedded structs whose names are not exported.
func (c *resultsStatCommand) Validate() error { return c.resultsFilter.Validate() }

// Run prints a line for each tenant and store.
func (c *resultsStatCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	stats := []resultStat{}
	err := c.each(ctx, settings, func(store *postgres.Store, of selected) error {
		found, err := tier.ResultStats(ctx, store, of.tenant.ID, of.sessionKey())
		for _, s := range found {
			stats = append(stats, resultStat{of.tenant.Name, s.Store.String(), s.Bodies, s.Bytes, s.Stored})
		}
		return err
	})
	if err != nil {
		return err
	}
	return printValue(out, settings.JSON, "result stats", stats)
}

type resultsMoveCommand struct {
	resultsFilter `embed:""`
	To            string `required:"" enum:"postgres,file,s3" help:"The store to move to: postgres, file or s3."`
	Rate          int64  `placeholder:"BYTES" help:"At most so many stored bytes a second; no limit if not given."`
}

// Validate checks the filter and the rate.
func (c *resultsMoveCommand) Validate() error {
	if c.Rate < 0 {
		return fmt.Errorf("--rate is %d: it must be 1 or more bytes a second", c.Rate)
	}
	return c.resultsFilter.Validate()
}

// moved counts what a move has done.
type moved struct {
	Bodies int64 `json:"bodies"`
	Bytes  int64 `json:"bytes"`
	Stored int64 `json:"stored_bytes"`
	Failed int64 `json:"failed"`
}

// Run moves, with a bar on a terminal, and prints what was moved. An interrupt loses nothing; the same command again
// continues.
func (c *resultsMoveCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	var done moved
	checked := false
	shown := command.NewMeter(os.Stderr, -1, progressbar.OptionShowBytes(true))
	err := c.each(ctx, settings, func(store *postgres.Store, of selected) error {
		if !checked {
			if err := store.CheckResultStores(ctx); err != nil {
				return err
			}
			checked = true
		}
		return tier.MoveResults(ctx, store, tier.ResultMove{
			Tenant: of.tenant.ID, Session: of.sessionKey(), To: c.kind(), Rate: c.Rate,
			Each: func(body persist.Movable, stored int64, err error) {
				done.add(body, stored, err)
				done.show(&shown)
			},
		})
	})
	shown.Finish()
	if err != nil {
		return fmt.Errorf("%d bodies were moved, the same command continues after them: %w", done.Bodies, err)
	}
	if err := printValue(out, settings.JSON, "moved results", done); err != nil {
		return err
	}
	if done.Failed > 0 {
		return fmt.Errorf("%d bodies were not moved and are where they were", done.Failed)
	}
	return nil
}

// add counts a body, and says on standard error why it was not moved.
func (m *moved) add(body persist.Movable, stored int64, err error) {
	if err != nil {
		m.Failed++
		fmt.Fprintf(os.Stderr, "body %s: %v\n", body.ID, err)
		return
	}
	m.Bodies++
	m.Bytes += body.Bytes
	m.Stored += stored
}

func (m *moved) show(on *command.Meter) {
	line := fmt.Sprintf("%d bodies moved, %d bytes, %d failed", m.Bodies, m.Bytes, m.Failed)
	on.Update(m.Bytes, -1, line, line)
}

// kind returns the store to move to.
func (c *resultsMoveCommand) kind() persist.Kind {
	for _, kind := range []persist.Kind{persist.File, persist.S3} {
		if c.To == kind.String() {
			return kind
		}
	}
	return persist.Postgres
}
