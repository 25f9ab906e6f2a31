package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/embedded"
	"github.com/varve-dev/varve/internal/process"
	"github.com/varve-dev/varve/internal/session"
)

type tenantsCommand struct {
	Create tenantsCreateCommand `cmd:"" help:"Create a tenant."`
	List   tenantsListCommand   `cmd:"" help:"List tenants."`
}

type tenantsCreateCommand struct {
	config.Database `embed:""`
	Name            string `arg:"" help:"The tenant's name."`
}

// Run creates the tenant and prints its id.
func (c *tenantsCreateCommand) Run(ctx context.Context, g *Globals) error {
	return withStore(ctx, g, c.Database, func(store *postgres.Store) error {
		tenant, err := store.CreateTenant(ctx, c.Name, process.DefaultPolicy())
		if err != nil {
			return err
		}
		fmt.Println(tenant.ID)
		return nil
	})
}

type tenantsListCommand struct {
	config.Database `embed:""`
}

// Run prints all tenants.
func (c *tenantsListCommand) Run(ctx context.Context, g *Globals) error {
	return withStore(ctx, g, c.Database, func(store *postgres.Store) error {
		tenants, err := store.Tenants(ctx)
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "ID\tNAME\tCREATED")
		for _, t := range tenants {
			fmt.Fprintf(table, "%s\t%s\t%s\n", t.ID, t.Name, t.CreatedAt.Format(time.RFC3339))
		}
		return table.Flush()
	})
}

type keysCommand struct {
	Create keysCreateCommand `cmd:"" help:"Create a key and print it, once."`
	List   keysListCommand   `cmd:"" help:"List a tenant's keys."`
	Revoke keysRevokeCommand `cmd:"" help:"Revoke a key."`
}

type keyOptions struct {
	Name    string        `help:"What the key is for."`
	Expires time.Duration `help:"How long it is good for, e.g. 720h; for ever if not given."`
}

type keysCreateCommand struct {
	config.Database `embed:""`
	keyOptions      `embed:""`
	Tenant          string `default:"default" help:"The tenant's name."`
}

// Run prints the new key on standard output, alone.
func (c *keysCreateCommand) Run(ctx context.Context, g *Globals) error {
	return withStore(ctx, g, c.Database, func(store *postgres.Store) error {
		tenant, err := store.TenantByName(ctx, c.Tenant)
		if err != nil {
			return err
		}
		text, made, err := newKey(ctx, store, tenant, c.keyOptions)
		if err != nil {
			return err
		}
		fmt.Println(text)
		fmt.Fprintf(os.Stderr, "key %s of tenant %s; it is not stored and will not be shown again\n", made.ID, tenant.Name)
		return nil
	})
}

func newKey(ctx context.Context, store *postgres.Store, tenant postgres.Tenant, options keyOptions) (string, postgres.Key, error) {
	text := session.NewKey(tenant.ID)
	_, digest, err := session.ParseKey(text)
	if err != nil {
		return "", postgres.Key{}, err
	}
	k := postgres.NewKey{Name: options.Name, Digest: digest, Last4: text[len(text)-4:]}
	if options.Expires > 0 {
		at := time.Now().Add(options.Expires)
		k.ExpiresAt = &at
	}
	made, err := store.CreateKey(ctx, tenant.ID, k)
	return text, made, err
}

type keysListCommand struct {
	config.Database `embed:""`
	Tenant          string `default:"default" help:"The tenant's name."`
}

// Run prints the tenant's keys.
func (c *keysListCommand) Run(ctx context.Context, g *Globals) error {
	return withStore(ctx, g, c.Database, func(store *postgres.Store) error {
		tenant, err := store.TenantByName(ctx, c.Tenant)
		if err != nil {
			return err
		}
		keys, err := store.Keys(ctx, tenant.ID)
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "ID\tENDS IN\tNAME\tCREATED\tEXPIRES\tREVOKED")
		for _, k := range keys {
			fmt.Fprintf(table, "%s\t…%s\t%s\t%s\t%s\t%s\n", k.ID, k.Last4, k.Name, date(&k.CreatedAt), date(k.ExpiresAt), date(k.RevokedAt))
		}
		return table.Flush()
	})
}

func date(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Format(time.RFC3339)
}

type keysRevokeCommand struct {
	config.Database `embed:""`
	Tenant          string    `default:"default" help:"The tenant's name."`
	ID              uuid.UUID `arg:"" help:"The key's id, as keys list shows it."`
}

// Run revokes the key; API processes notice within 5 seconds.
func (c *keysRevokeCommand) Run(ctx context.Context, g *Globals) error {
	return withStore(ctx, g, c.Database, func(store *postgres.Store) error {
		tenant, err := store.TenantByName(ctx, c.Tenant)
		if err != nil {
			return err
		}
		if err := store.RevokeKey(ctx, tenant.ID, c.ID); err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, "revoked; API processes refuse it within 5 seconds")
		return nil
	})
}

// withStore opens the database for a command: the one that DATABASE_URL names, or the private one of a varve up that
// runs on the data directory.
func withStore(ctx context.Context, g *Globals, db config.Database, do func(*postgres.Store) error) error {
	if db.URL == "" {
		url, err := embedded.Running(g.Data, "varve")
		if err != nil {
			return errors.Join(db.Required(), fmt.Errorf("and no varve up runs on %s: %w", filepath.Clean(g.Data), err))
		}
		db.URL = url
	}
	store, err := process.OpenStore(ctx, db)
	if err != nil {
		return err
	}
	defer store.Pool().Close()
	return do(store)
}
