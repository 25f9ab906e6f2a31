package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/process"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/terminal"
)

type migrateCommand struct {
	config.Database `embed:""`
	config.Owner    `embed:""`
	GrantTo         []grant `placeholder:"LOGIN[:ROLE]" help:"Logins to let serve as an api, worker, admin or backup."`
}

// Validate reports everything that is wrong at once.
func (m *migrateCommand) Validate() error {
	return errors.Join(m.Database.Validate(), m.Owner.Validate())
}

// Run migrates the database. Several migrations at once do not harm each other.
func (m *migrateCommand) Run(ctx context.Context) error {
	url := m.OwnerURL
	if url == "" {
		url = m.URL
	}
	if err := (config.Database{URL: url}).Required(); err != nil {
		return err
	}
	if err := postgres.Migrate(ctx, url); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "the schema is up to date")
	for _, g := range m.GrantTo {
		if err := postgres.GrantTo(ctx, url, postgres.Grant(g)); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "login %s has the rights of role %s\n", g.Login, g.Role)
	}
	return nil
}

// grant is a login with what it may serve as on the command line: LOGIN or LOGIN:ROLE.
type grant postgres.Grant

// UnmarshalText reads a login and its role, which is the API's if it is left out.
func (g *grant) UnmarshalText(text []byte) error {
	login, role, named := strings.Cut(string(text), ":")
	roles := map[string]string{
		"api": postgres.AppRole, "worker": postgres.WorkerRole, "admin": postgres.AdminRole,
		"backup": postgres.BackupRole,
	}
	if !named {
		role = "api"
	}
	if login == "" || roles[role] == "" {
		return fmt.Errorf("%.80q must be a login, or a login with what it serves as: "+
			"LOGIN:api, LOGIN:worker, LOGIN:admin or LOGIN:backup", text)
	}
	*g = grant{Login: login, Role: roles[role]}
	return nil
}

// withStore calls do with the database that a command works on: the one that DATABASE_URL names, or the private one of
// a varve up that runs on the data directory.
func withStore(
	ctx context.Context, settings *config.Client, db config.Database, do func(*postgres.Store) error,
) error {
	url, err := urlFor(settings, db, adminLogin)
	if err != nil {
		return err
	}
	db.URL = url
	store, err := process.OpenStore(ctx, db)
	if err != nil {
		return err
	}
	defer store.Pool().Close()
	return do(store)
}

// urlFor returns the URL of the database that a command works on: its own setting, or that of a login of the private
// cluster of a varve up that runs.
func urlFor(settings *config.Client, db config.Database, login string) (string, error) {
	if db.URL != "" {
		return db.URL, nil
	}
	url, err := embedded.Running(settings.Data, login)
	if err != nil {
		none := fmt.Errorf("and no varve up runs on %s: %w", filepath.Clean(settings.Data), err)
		return "", errors.Join(db.Required(), none)
	}
	return url, nil
}

type tenantsCommand struct {
	Create tenantsCreateCommand `cmd:"" help:"Create a tenant."`
	List   tenantsListCommand   `cmd:"" help:"List tenants."`
	Limits tenantsLimitsCommand `cmd:"" help:"Show or set a tenant's quotas."`
}

// tenantName is the name of a tenant on the command line.
type tenantName string

// Validate returns an error for a name that the database does not take or a table cannot show.
func (n tenantName) Validate() error { return session.CheckTenantName(string(n)) }

type tenantsCreateCommand struct {
	config.Database `embed:""`
	Name            tenantName `arg:"" help:"The tenant's name, 1 to 255 bytes."`
}

// Run creates the tenant and prints its id.
func (c *tenantsCreateCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	return withStore(ctx, settings, c.Database, func(store *postgres.Store) error {
		tenant, err := store.CreateTenant(ctx, string(c.Name), policy.StoredDefault())
		if err != nil {
			return err
		}
		return printValue(out, settings.JSON, "tenant", tenant)
	})
}

type tenantsListCommand struct {
	config.Database `embed:""`
}

// Run prints all tenants.
func (c *tenantsListCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	return withStore(ctx, settings, c.Database, func(store *postgres.Store) error {
		tenants, err := store.Tenants(ctx)
		if err != nil {
			return err
		}
		return printValue(out, settings.JSON, "tenants", tenants)
	})
}

type keysCommand struct {
	Create keysCreateCommand `cmd:"" help:"Create a key and print it, once."`
	List   keysListCommand   `cmd:"" help:"List a tenant's keys."`
	Revoke keysRevokeCommand `cmd:"" help:"Revoke a key."`
}

// tenantFlags choose a database and a tenant in it.
type tenantFlags struct {
	config.Database `embed:""`
	Tenant          tenantName `default:"default" help:"The tenant's name."`
}

// with calls do with the database and the tenant.
func (f *tenantFlags) with(
	ctx context.Context, settings *config.Client, do func(*postgres.Store, session.Tenant) error,
) error {
	return withStore(ctx, settings, f.Database, func(store *postgres.Store) error {
		tenant, err := store.TenantByName(ctx, string(f.Tenant))
		if err != nil {
			return err
		}
		return do(store, tenant)
	})
}

type keyOptions struct {
	Name    string          `help:"What the key is for."`
	Expires *time.Duration  `help:"How long it is valid, e.g. 720h; for ever if not given."`
	Scopes  []session.Scope `xor:"may" help:"What it may do, e.g. sessions:read,results:read; everything if not given."`
	Role    session.Role    `xor:"may" help:"The scopes of viewer, operator or admin."`
}

// scopes returns the scopes that the options name: all, unless they name some.
func (o *keyOptions) scopes() []session.Scope {
	switch {
	case len(o.Scopes) > 0:
		return o.Scopes
	case o.Role != "":
		return o.Role.Scopes()
	}
	return session.KeyScopes()
}

// Validate returns an error for scopes and roles that there are not.
func (o *keyOptions) Validate() error {
	for _, scope := range o.Scopes {
		if !slices.Contains(session.KeyScopes(), scope) {
			return fmt.Errorf("--scopes has %.40q: there are %v", string(scope), session.KeyScopes())
		}
	}
	if o.Role != "" && o.Role.Scopes() == nil {
		return fmt.Errorf("--role is %.40q: there are %v", string(o.Role), session.Roles())
	}
	return nil
}

type keysCreateCommand struct {
	tenantFlags `embed:""`
	keyOptions  `embed:""`
	Operator    bool `xor:"may" help:"Make a key of an operator, who belongs to no tenant."`
}

// Validate returns an error for a key that would have expired.
func (c *keysCreateCommand) Validate() error {
	if c.Expires != nil && *c.Expires <= 0 {
		return fmt.Errorf("--expires is %s: it must be more than 0s", *c.Expires)
	}
	return errors.Join(c.keyOptions.Validate(), c.Database.Validate())
}

// Run prints the new key on standard output, alone.
func (c *keysCreateCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	if c.Operator {
		return c.createOperator(ctx, settings, out)
	}
	return c.with(ctx, settings, func(store *postgres.Store, tenant session.Tenant) error {
		made, err := newKey(ctx, store, tenant, c.keyOptions)
		if err != nil {
			return err
		}
		if err := printValue(out, settings.JSON, "new key", made); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "key %s of tenant %s; it is not stored and will not be shown again\n",
			made.ID, terminal.Printable(tenant.Name))
		return nil
	})
}

func (c *keysCreateCommand) createOperator(ctx context.Context, settings *config.Client, out io.Writer) error {
	return withStore(ctx, settings, c.Database, func(store *postgres.Store) error {
		made := protocol.NewOperatorKey{Text: session.NewOperatorKey()}
		var err error
		made.OperatorKey, err = store.CreateOperatorKey(ctx, c.Name, made.Text, c.Expires)
		if err != nil {
			return err
		}
		if err := printValue(out, settings.JSON, "new key", made); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "key %s of an operator; it is not stored and will not be shown again\n", made.ID)
		return nil
	})
}

// newKey creates a key. The database stores only the digest of its text.
func newKey(
	ctx context.Context, store *postgres.Store, tenant session.Tenant, options keyOptions,
) (made protocol.NewKey, err error) {
	made.Text = session.NewAPIKey(tenant.ID)
	made.APIKey, err = store.CreateKey(ctx, tenant.ID, session.NewKey{
		Name: options.Name, Text: made.Text, Scopes: options.scopes(), Lifetime: options.Expires,
	})
	return made, err
}

// allKeys is a page with every key that a tenant has.
var allKeys = session.Page{Limit: math.MaxInt32}

type keysListCommand struct {
	tenantFlags `embed:""`
}

// Run prints the tenant's keys.
func (c *keysListCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	return c.with(ctx, settings, func(store *postgres.Store, tenant session.Tenant) error {
		keys, err := store.Keys(ctx, tenant.ID, allKeys)
		if err != nil {
			return err
		}
		return printValue(out, settings.JSON, "keys", keys)
	})
}

type keysRevokeCommand struct {
	tenantFlags `embed:""`
	ID          uuid.UUID `arg:"" help:"The key's id, as keys list shows it."`
}

// Run revokes the key; API processes notice within 3 seconds.
func (c *keysRevokeCommand) Run(ctx context.Context, settings *config.Client) error {
	return c.with(ctx, settings, func(store *postgres.Store, tenant session.Tenant) error {
		keys, err := store.Keys(ctx, tenant.ID, allKeys)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if k.ID == c.ID && k.RevokedAt != nil {
				fmt.Fprintf(os.Stderr, "it was revoked before, at %s\n", cell(k.RevokedAt))
				return nil
			}
		}
		if err := store.RevokeKey(ctx, tenant.ID, c.ID); err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, "revoked; API processes refuse it within 3 seconds")
		return nil
	})
}
