package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/process"
	"github.com/varve-dev/varve/internal/session"
)

type keysCommand struct {
	Create keysCreateCommand `cmd:"" help:"Create a key and print it, once."`
	List   keysListCommand   `cmd:"" help:"List a tenant's keys."`
	Revoke keysRevokeCommand `cmd:"" help:"Revoke a key."`
}

type keyOptions struct {
	Name    string         `help:"What the key is for."`
	Expires *time.Duration `help:"How long it is good for, e.g. 720h; for ever if not given."`
}

type keysCreateCommand struct {
	config.Database `embed:""`
	keyOptions      `embed:""`
	Tenant          tenantName `default:"default" help:"The tenant's name."`
}

// Validate refuses a key that would not be good for the time given.
func (c *keysCreateCommand) Validate() error {
	if c.Expires != nil && *c.Expires <= 0 {
		return fmt.Errorf("--expires is %s: more than 0s is needed", *c.Expires)
	}
	return c.Database.Validate()
}

// keyJSON is a key as --json prints it.
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
func (c *keysCreateCommand) Run(ctx context.Context, g *Globals) error {
	return withStore(ctx, g, c.Database, func(store *postgres.Store) error {
		tenant, err := store.TenantByName(ctx, string(c.Tenant))
		if err != nil {
			return err
		}
		text, made, err := newKey(ctx, store, tenant, c.keyOptions)
		if err != nil {
			return err
		}
		if g.JSON {
			err = writeJSON(os.Stdout, jsonOf(made, text))
		} else {
			_, err = fmt.Println(text)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "key %s of tenant %s; it is not stored and will not be shown again\n", made.ID, printable(tenant.Name))
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
func (c *keysListCommand) Run(ctx context.Context, g *Globals) error {
	return withStore(ctx, g, c.Database, func(store *postgres.Store) error {
		tenant, err := store.TenantByName(ctx, string(c.Tenant))
		if err != nil {
			return err
		}
		keys, err := store.Keys(ctx, tenant.ID)
		if err != nil {
			return err
		}
		return writeKeys(os.Stdout, keys, g.JSON)
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
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tENDS IN\tNAME\tCREATED\tEXPIRES\tREVOKED")
	for _, k := range keys {
		fmt.Fprintf(table, "%s\t…%s\t%s\t%s\t%s\t%s\n", k.ID, k.Last4, printable(k.Name), date(&k.CreatedAt), date(k.ExpiresAt), date(k.RevokedAt))
	}
	return table.Flush()
}

func date(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Format(time.RFC3339)
}

type keysRevokeCommand struct {
	config.Database `embed:""`
	Tenant          tenantName `default:"default" help:"The tenant's name."`
	ID              uuid.UUID  `arg:"" help:"The key's id, as keys list shows it."`
}

// Run revokes the key; API processes notice within 5 seconds.
func (c *keysRevokeCommand) Run(ctx context.Context, g *Globals) error {
	return withStore(ctx, g, c.Database, func(store *postgres.Store) error {
		tenant, err := store.TenantByName(ctx, string(c.Tenant))
		if err != nil {
			return err
		}
		keys, err := store.Keys(ctx, tenant.ID)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if k.ID == c.ID && k.RevokedAt != nil {
				fmt.Fprintf(os.Stderr, "it was revoked before, at %s\n", date(k.RevokedAt))
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

func writeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
