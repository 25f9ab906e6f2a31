package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
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

// Validate holds the name to what the database takes and a table can show.
func (n tenantName) Validate() error {
	if n == "" || len(n) > maxTenantName || strings.ContainsFunc(string(n), unicode.IsControl) {
		return fmt.Errorf("a tenant has a name of 1 to %d bytes and no control characters, not %.40q", maxTenantName, string(n))
	}
	return nil
}

const maxTenantName = 255 // bytes

// tenantJSON is a tenant as --json prints it.
type tenantJSON struct {
	ID        uuid.UUID `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
}

// Run creates the tenant and prints its id.
func (c *tenantsCreateCommand) Run(ctx context.Context, g *Globals) error {
	return withStore(ctx, g, c.Database, func(store *postgres.Store) error {
		tenant, err := store.CreateTenant(ctx, string(c.Name), policy.StoredDefault())
		if err != nil {
			return err
		}
		if g.JSON {
			return writeJSON(os.Stdout, tenantJSON(tenant))
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
		return writeTenants(os.Stdout, tenants, g.JSON)
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
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tNAME\tCREATED")
	for _, t := range tenants {
		fmt.Fprintf(table, "%s\t%s\t%s\n", t.ID, printable(t.Name), t.CreatedAt.Format(time.RFC3339))
	}
	return table.Flush()
}
