package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/terminal"
)

type keysCommand struct {
	Create keysCreateCommand `cmd:"" help:"Create a key and print it, once."`
	List   keysListCommand   `cmd:"" help:"List a tenant's keys."`
	Rotate keysRotateCommand `cmd:"" help:"Make a key in the place of one, which lives on for a while, and print it."`
	Revoke keysRevokeCommand `cmd:"" help:"Revoke a key."`
}

// Help says when which command needs what.
func (c *keysCommand) Help() string { return helpText("keys") }

// tenantFlags choose a database and a tenant in it.
type tenantFlags struct {
	config.Database `embed:""`
	Tenant          tenantName `default:"default" help:"The tenant's name or id."`
}

// with calls do with the database and the tenant.
func (f *tenantFlags) with(
	ctx context.Context, settings *config.Client, do func(*postgres.Store, session.Tenant) error,
) error {
	return withStore(ctx, settings, f.Database, func(store *postgres.Store) error {
		tenant, err := store.TenantNamed(ctx, string(f.Tenant))
		if err != nil {
			return err
		}
		return do(store, tenant)
	})
}

// over returns a console and the keys of the tenant that its key manages.
func (f *tenantFlags) over(
	ctx context.Context, settings *config.Client, out io.Writer,
) (to *command.Console, keys client.Keyring, err error) {
	if to, err = connect(settings, out); err != nil {
		return nil, keys, err
	}
	if !wellFormedOperator(to.API.Key) {
		return to, client.Keys(), f.ownTenant()
	}
	id, err := client.TenantID(ctx, to.API, string(f.Tenant))
	return to, client.KeysOf(id.String()), err
}

// ownTenant returns an error if a tenant is named beside a tenant's key.
func (f *tenantFlags) ownTenant() error {
	if f.Tenant != defaultTenant {
		return command.Usage("--tenant takes an operator's key: a tenant's key is of its own tenant")
	}
	return nil
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
	switch {
	case settings.Key != "":
		return c.overHTTP(ctx, settings, out)
	case c.Operator:
		return c.createOperator(ctx, settings, out)
	}
	return c.with(ctx, settings, func(store *postgres.Store, tenant session.Tenant) error {
		made, err := newKey(ctx, store, tenant, c.keyOptions)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("%s of tenant %s", made.ID, terminal.Printable(tenant.Name))
		return printNew(out, settings.JSON, made, what)
	})
}

func (c *keysCreateCommand) overHTTP(ctx context.Context, settings *config.Client, out io.Writer) error {
	wanted := protocol.KeyRequest{Name: c.Name}
	if c.Expires != nil {
		wanted.TTLSeconds = max(1, int64(*c.Expires/time.Second))
	}
	if c.Operator {
		to, err := connectOperator(settings, out)
		if err != nil {
			return err
		}
		return show(ctx, to.Console, "new key", client.CreateOperatorKey, client.Options{Body: wanted})
	}
	to, keys, err := c.over(ctx, settings, out)
	if err != nil {
		return err
	}
	wanted.Scopes = c.scopes()
	made, err := keys.Create(ctx, to.API, wanted)
	return printKey(to, made, err)
}

// printKey prints a new key on standard output, alone.
func printKey(to *command.Console, made client.Answer[protocol.NewKey], err error) error {
	if err != nil {
		return err
	}
	if err := to.Print(named("new key"), made.Raw, &made.Value); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "key %s; it is not stored and will not be shown again\n", made.Value.ID)
	return nil
}

func (c *keysCreateCommand) createOperator(ctx context.Context, settings *config.Client, out io.Writer) error {
	return withStore(ctx, settings, c.Database, func(store *postgres.Store) error {
		made := protocol.NewOperatorKey{Text: session.NewOperatorKey()}
		var err error
		made.OperatorKey, err = store.CreateOperatorKey(ctx, c.Name, made.Text, c.Expires)
		if err != nil {
			return err
		}
		return printNew(out, settings.JSON, made, fmt.Sprintf("%s of an operator", made.ID))
	})
}

// printNew prints a key that was made in the database on standard output, alone.
func printNew(out io.Writer, asJSON bool, made any, which string) error {
	if err := printValue(out, asJSON, "new key", made); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "key %s; it is not stored and will not be shown again\n", which)
	return nil
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
	Operator    bool `help:"List the keys of operators, with the key of one."`
}

// Run prints the tenant's keys.
func (c *keysListCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	if settings.Key != "" {
		return c.overHTTP(ctx, settings, out)
	}
	return c.with(ctx, settings, func(store *postgres.Store, tenant session.Tenant) error {
		keys, err := store.Keys(ctx, tenant.ID, allKeys)
		if err != nil {
			return err
		}
		return printValue(out, settings.JSON, "keys", keys)
	})
}

func (c *keysListCommand) overHTTP(ctx context.Context, settings *config.Client, out io.Writer) error {
	if c.Operator {
		to, err := connectOperator(settings, out)
		if err != nil {
			return err
		}
		return showList(ctx, to.Console, "operators' keys", client.ListOperatorKeys, math.MaxInt)
	}
	to, keys, err := c.over(ctx, settings, out)
	if err != nil {
		return err
	}
	found, err := keys.List(ctx, to.API)
	if err != nil {
		return err
	}
	return command.PrintList(to, named("keys"), found)
}

type keysRotateCommand struct {
	Tenant  tenantName     `default:"default" help:"The tenant's name or id, for an operator's key."`
	ID      uuid.UUID      `arg:"" help:"The key's id, as keys list shows it."`
	Overlap *time.Duration `help:"How long the old key lives on; a day if not given, and 0s for no time."`
}

// Run prints the new key on standard output, alone.
func (c *keysRotateCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	to, keys, err := (&tenantFlags{Tenant: c.Tenant}).over(ctx, settings, out)
	if err != nil {
		return err
	}
	made, err := keys.Rotate(ctx, to.API, c.ID.String(), protocol.RotateRequest{OverlapSeconds: seconds(c.Overlap)})
	return printKey(to, made, err)
}

type keysRevokeCommand struct {
	tenantFlags `embed:""`
	ID          uuid.UUID `arg:"" help:"The key's id, as keys list shows it."`
	Operator    bool      `help:"It is a key of an operator, and so is that of the command."`
}

// Run revokes the key; API processes notice within 3 seconds.
func (c *keysRevokeCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	if settings.Key != "" {
		return c.overHTTP(ctx, settings, out)
	}
	if c.Operator {
		return command.Usage("--operator takes an operator's key: set VARVE_KEY")
	}
	return c.with(ctx, settings, func(store *postgres.Store, tenant session.Tenant) error {
		keys, err := store.Keys(ctx, tenant.ID, allKeys)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if k.ID == c.ID && k.RevokedAt != nil {
				fmt.Fprintf(os.Stderr, "it was revoked before, at %s\n", terminal.Cell(k.RevokedAt))
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

func (c *keysRevokeCommand) overHTTP(ctx context.Context, settings *config.Client, out io.Writer) error {
	var err error
	if c.Operator {
		to, failed := connectOperator(settings, out)
		if failed != nil {
			return failed
		}
		err = client.RevokeOperatorKey.Call(ctx, to.API, c.ID)
	} else {
		to, keys, failed := c.over(ctx, settings, out)
		if failed != nil {
			return failed
		}
		err = keys.Revoke(ctx, to.API, c.ID.String())
	}
	if err == nil {
		fmt.Fprintln(os.Stderr, "revoked; API processes refuse it within 3 seconds")
	}
	return err
}

// seconds returns a duration in seconds, nil for none.
func seconds(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	return new(int64(*d / time.Second))
}
