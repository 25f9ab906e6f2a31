package main

import (
	"context"
	"io"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

type failuresCommand struct {
	List  failuresListCommand  `cmd:"" default:"withargs" help:"List the sessions whose compaction fails."`
	Retry failuresRetryCommand `cmd:"" help:"Compact such a session now."`
}

// listedFailures is how many sessions of a tenant are listed, the newest first.
const listedFailures = 1000

// failing is a session whose compaction fails, with its tenant.
type failing struct {
	Tenant string `json:"tenant"`
	session.Failing
}

type failuresListCommand struct {
	config.Database `embed:""`
}

// Run prints the sessions: with a key those of its tenant or, with an operator's, of all; else tenant by tenant.
func (c *failuresListCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	if settings.Key != "" {
		return listedOverHTTP(ctx, settings, out)
	}
	return withStore(ctx, settings, c.Database, func(store *postgres.Store) error {
		found, err := allFailures(ctx, store)
		if err != nil {
			return err
		}
		return printValue(out, settings.JSON, "failures", found)
	})
}

func listedOverHTTP(ctx context.Context, settings *config.Client, out io.Writer) error {
	to, err := connect(settings, out)
	if err != nil {
		return err
	}
	if wellFormedOperator(to.API.Key) {
		failing := client.Query{"order": "failing"}
		return command.Find(ctx, to, named("sessions of tenants"), client.ListAllSessions, failing, listedFailures)
	}
	return showList(ctx, to, "failures of a tenant", client.ListFailures, listedFailures)
}

func allFailures(ctx context.Context, store *postgres.Store) ([]failing, error) {
	tenants, err := store.Tenants(ctx)
	if err != nil {
		return nil, err
	}
	found := []failing{}
	for _, tenant := range tenants {
		sessions, err := store.Failures(ctx, tenant.ID, session.Page{Limit: listedFailures})
		if err != nil {
			return nil, err
		}
		for _, s := range sessions {
			found = append(found, failing{tenant.Name, s})
		}
	}
	return found, nil
}

type failuresRetryCommand struct {
	tenantFlags `embed:""`
	Session     string `arg:"" help:"The session's id."`
}

// Run asks for a compaction of the session and prints its run.
func (c *failuresRetryCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	if settings.Key != "" {
		return c.overHTTP(ctx, settings, out)
	}
	return c.with(ctx, settings, func(store *postgres.Store, tenant session.Tenant) error {
		at := session.Address{Tenant: tenant.ID, ID: c.Session}
		if _, err := store.Failing(ctx, at); err != nil {
			return err
		}
		run, _, err := store.Retry(ctx, at, nil)
		if err != nil {
			return err
		}
		return command.WriteJSON(out, run)
	})
}

func (c *failuresRetryCommand) overHTTP(ctx context.Context, settings *config.Client, out io.Writer) error {
	to, err := connect(settings, out)
	if err != nil {
		return err
	}
	if wellFormedOperator(to.API.Key) {
		return command.Usage("failures retry takes a key of the session's tenant (vk_…) in VARVE_KEY, or none and " +
			"the database: an operator's key compacts no session")
	}
	if err := c.ownTenant(); err != nil {
		return err
	}
	return showJSON(ctx, to, client.RetryFailure, client.Options{Key: uuid.NewString()}, c.Session)
}
