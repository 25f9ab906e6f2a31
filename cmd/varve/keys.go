package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/process"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/terminal"
)

type keysCommand struct {
	Create keysCreateCommand `cmd:"" help:"Create a key and print it, once."`
	List   keysListCommand   `cmd:"" help:"List a tenant's keys."`
	Revoke keysRevokeCommand `cmd:"" help:"Revoke a key."`
}

type keyOptions struct {
	Name    string         `help:"What the key is for."`
	Expires *time.Duration `help:"How long it is valid, e.g. 720h; for ever if not given."`
}

type keysCreateCommand struct {
	config.Database `embed:""`
	keyOptions      `embed:""`
	Tenant          tenantName `default:"default" help:"The tenant's name."`
}

// Validate refuses a key that would have expired.
func (c *keysCreateCommand) Validate() error {
	if c.Expires != nil && *c.Expires <= 0 {
		return fmt.Errorf("--expires is %s: it must be more than 0s", *c.Expires)
	}
	return c.Database.Validate()
}

// keyJSON is a key in the form that --json prints.
type keyJSON struct {
	ID        uuid.UUID  `json:"id"`
	Key       string     `json:"key,omitempty"` // only of the key that is made
	Name      string     `json:"name"`
	Last4     string     `json:"last4"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	RevokedAt *time.Time `json:"revoked_at"`
}

func jsonOf(k session.APIKey, text string) keyJSON {
	return keyJSON{ID: k.ID, Key: text, Name: k.Name, Last4: k.Last4, CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt, RevokedAt: k.RevokedAt}
}

// Run prints the new key on standard output, alone.
func (c *keysCreateCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	return withTenant(ctx, settings, c.Database, c.Tenant, func(store *postgres.Store, tenant session.Tenant) error {
		text, made, err := newKey(ctx, store, tenant, c.keyOptions)
		if err != nil {
			return err
		}
		if settings.JSON {
			err = writeJSON(out, jsonOf(made, text))
		} else {
			_, err = fmt.Fprintln(out, text)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "key %s of tenant %s; it is not stored and will not be shown again\n",
			made.ID, terminal.Printable(tenant.Name))
		return nil
	})
}

func newKey(ctx context.Context, store *postgres.Store, tenant session.Tenant, options keyOptions) (string, session.APIKey, error) {
	text := session.NewAPIKey(tenant.ID)
	_, digest, err := session.ParseKey(text)
	if err != nil {
		return "", session.APIKey{}, err
	}
	k := postgres.KeyParams{Name: options.Name, Digest: digest, Last4: text[len(text)-4:]}
	if options.Expires != nil {
		at := time.Now().Add(*options.Expires)
		k.ExpiresAt = &at
	}
	made, err := store.CreateKey(ctx, tenant.ID, k)
	return text, made, err
}

type keysListCommand struct {
	config.Database `embed:""`
	Tenant          tenantName `default:"default" help:"The tenant's name."`
}

// Run prints the tenant's keys.
func (c *keysListCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	return withTenant(ctx, settings, c.Database, c.Tenant, func(store *postgres.Store, tenant session.Tenant) error {
		keys, err := store.Keys(ctx, tenant.ID)
		if err != nil {
			return err
		}
		return writeKeys(out, keys, settings.JSON)
	})
}

func writeKeys(out io.Writer, keys []session.APIKey, asJSON bool) error {
	if asJSON {
		list := make([]keyJSON, len(keys))
		for i, k := range keys {
			list[i] = jsonOf(k, "")
		}
		return writeJSON(out, list)
	}
	rows := make([][]any, len(keys))
	for i, k := range keys {
		rows[i] = []any{k.ID, "…" + k.Last4, k.Name, k.CreatedAt, k.ExpiresAt, k.RevokedAt}
	}
	return writeTable(out, "ID\tENDS IN\tNAME\tCREATED\tEXPIRES\tREVOKED", rows)
}

type keysRevokeCommand struct {
	config.Database `embed:""`
	Tenant          tenantName `default:"default" help:"The tenant's name."`
	ID              uuid.UUID  `arg:"" help:"The key's id, as keys list shows it."`
}

// Run revokes the key; API processes notice within 5 seconds.
func (c *keysRevokeCommand) Run(ctx context.Context, settings *config.Client) error {
	return withTenant(ctx, settings, c.Database, c.Tenant, func(store *postgres.Store, tenant session.Tenant) error {
		keys, err := store.Keys(ctx, tenant.ID)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if k.ID == c.ID && k.RevokedAt != nil {
				fmt.Fprintf(os.Stderr, "it was revoked before, at %s\n", deref(k.RevokedAt))
				return nil
			}
		}
		if err := store.RevokeKey(ctx, tenant.ID, c.ID); err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, "revoked; API processes refuse it within 5 seconds")
		return nil
	})
}

// withTenant opens the database for a command about one tenant.
func withTenant(
	ctx context.Context, settings *config.Client, db config.Database, name tenantName, do func(*postgres.Store, session.Tenant) error,
) error {
	return withStore(ctx, settings, db, func(store *postgres.Store) error {
		tenant, err := store.TenantByName(ctx, string(name))
		if err != nil {
			return err
		}
		return do(store, tenant)
	})
}

// withStore opens the database for a command: the one that DATABASE_URL names, or the private one of a varve up that
// runs on the data directory.
func withStore(ctx context.Context, settings *config.Client, db config.Database, do func(*postgres.Store) error) error {
	if db.URL == "" {
		url, err := embedded.Running(settings.Data, "varve")
		if err != nil {
			return errors.Join(db.Required(), fmt.Errorf("and no varve up runs on %s: %w", filepath.Clean(settings.Data), err))
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
