package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

type tenantsCommand struct {
	Create tenantsCreateCommand `cmd:"" help:"Create a tenant."`
	List   tenantsListCommand   `cmd:"" help:"List tenants."`
}

type tenantsCreateCommand struct {
	config.Database `embed:""`
	Name            tenantName `arg:"" help:"The tenant's name, 1 to 255 bytes."`
}

// tenantName is the name of a tenant on the command line.
type tenantName string

// Validate refuses a name that the database does not take or a table cannot show.
func (n tenantName) Validate() error {
	if n == "" || len(n) > maxTenantName || strings.ContainsFunc(string(n), unicode.IsControl) {
		return fmt.Errorf("a tenant's name must have 1 to %d bytes and no control characters, %.40q does not", maxTenantName, string(n))
	}
	return nil
}

const maxTenantName = 255 // bytes

// tenantJSON is a tenant in the form that --json prints.
type tenantJSON struct {
	ID        uuid.UUID `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
}

// Run creates the tenant and prints its id.
func (c *tenantsCreateCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	return withStore(ctx, settings, c.Database, func(store *postgres.Store) error {
		tenant, err := store.CreateTenant(ctx, string(c.Name), policy.StoredDefault())
		if err != nil {
			return err
		}
		if settings.JSON {
			return writeJSON(out, tenantJSON(tenant))
		}
		_, err = fmt.Fprintln(out, tenant.ID)
		return err
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
		return writeTenants(out, tenants, settings.JSON)
	})
}

func writeTenants(out io.Writer, tenants []session.Tenant, asJSON bool) error {
	if asJSON {
		list := make([]tenantJSON, len(tenants))
		for i, t := range tenants {
			list[i] = tenantJSON(t)
		}
		return writeJSON(out, list)
	}
	rows := make([][]any, len(tenants))
	for i, t := range tenants {
		rows[i] = []any{t.ID, t.Name, t.CreatedAt}
	}
	return writeTable(out, "ID\tNAME\tCREATED", rows)
}
