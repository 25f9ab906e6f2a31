package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/cells"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/process"
	"github.com/varve-dev/varve/internal/session"
)

type tenantsMoveCommand struct {
	config.Database `embed:""`
	Tenant          string        `arg:"" help:"Name or id."`
	To              string        `placeholder:"URL" help:"The database of the cluster to which the tenant moves."`
	ToResults       string        `default:"postgres" placeholder:"URL" help:"Its result store."`
	ToObjects       string        `placeholder:"URL" help:"Where its archives go, if not there."`
	ToResultsAlso   []string      `placeholder:"URL" help:"Stores in which its results lie besides."`
	Address         string        `placeholder:"URL" help:"Where that serves, which callers here are told then."`
	Freeze          time.Duration `default:"10s" help:"How long writes are refused at most."`
	Abort           bool          `help:"Give the move up: delete what has been copied."`
	Forget          bool          `help:"Delete what is left here of a tenant that has moved away."`
}

// Help says what it needs, and what happens when it is stopped.
func (c *tenantsMoveCommand) Help() string { return helpText("tenants_move") }

// Validate reports everything that is wrong at once.
func (c *tenantsMoveCommand) Validate() error {
	var to, both, freeze error
	_, err := pgxpool.ParseConfig(c.To)
	switch {
	case c.Forget && (c.To != "" || c.Abort):
		both = errors.New("--forget takes neither --to nor --abort: it deletes what is left here")
	case c.To == "" && !c.Forget:
		to = errors.New("--to is missing: name the database to which the tenant moves")
	case err != nil:
		to = fmt.Errorf("--to: %w", err)
	}
	if c.Freeze < time.Second || c.Freeze > time.Hour {
		freeze = fmt.Errorf("--freeze must be 1s to 1h, not %s", c.Freeze)
	}
	return errors.Join(c.Database.Validate(), to, both, freeze, c.destination().Validate())
}

func (c *tenantsMoveCommand) destination() config.Database {
	to := c.Database
	to.URL, to.Results.URL = c.To, c.ToResults
	to.Results.Objects, to.Results.Also = c.ToObjects, c.ToResultsAlso
	return to
}

// Run moves the tenant, or gives its move up. Interrupted, it gives the move up, too.
func (c *tenantsMoveCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	return withStore(ctx, settings, c.Database, func(from *postgres.Store) error {
		tenant, err := c.tenant(ctx, from)
		if err != nil {
			return err
		}
		if c.Forget {
			return cells.Forget(ctx, from, tenant)
		}
		to, err := process.OpenStore(ctx, c.destination())
		if err != nil {
			return fmt.Errorf("destination: %w", err)
		}
		defer to.Pool().Close()
		m := &cells.Move{From: from, To: to, Tenant: tenant, Address: c.Address, Freeze: c.Freeze, Say: sayThere}
		if c.Abort {
			return m.Abort(ctx)
		}
		done, err := m.Run(ctx)
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			return c.interrupted(ctx, m, err)
		}
		if err != nil {
			return err
		}
		return printValue(out, settings.JSON, "moved tenant", done)
	})
}

func sayThere(text string) { fmt.Fprintln(os.Stderr, text) }

// abortTime bounds how long an interrupted move is given up.
const abortTime = 10 * time.Minute

func (c *tenantsMoveCommand) interrupted(ctx context.Context, m *cells.Move, cause error) error {
	fmt.Fprintln(os.Stderr, "interrupted: the move is given up")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTime)
	defer cancel()
	return errors.Join(cause, m.Abort(ctx))
}

// tenant returns the id of the tenant that is named, also of one that has moved away.
func (c *tenantsMoveCommand) tenant(ctx context.Context, store *postgres.Store) (uuid.UUID, error) {
	if id, err := uuid.Parse(c.Tenant); err == nil {
		return id, nil
	}
	found, err := store.TenantByName(ctx, c.Tenant)
	if errors.Is(err, session.ErrNotFound) {
		return cells.Named(ctx, store, c.Tenant)
	}
	return found.ID, err
}
