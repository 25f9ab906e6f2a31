package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

type tenantsLimitsCommand struct {
	config.Database `embed:""`
	Name            tenantName `arg:"" help:"The tenant's name."`
	Set             string     `help:"JSON of quotas, e.g. {\"sessions\":100}; {} for those of the processes."`
}

// Validate returns an error for quotas that no process would read.
func (c *tenantsLimitsCommand) Validate() error {
	var problem error
	if c.Set != "" {
		problem = new(config.Quotas).UnmarshalText([]byte(c.Set))
	}
	return errors.Join(c.Database.Validate(), problem)
}

// Run sets the quotas, if there are any to set, and prints those that the tenant has of its own; processes notice
// within a quarter of a minute.
func (c *tenantsLimitsCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	return withStore(ctx, settings, c.Database, func(store *postgres.Store) error {
		tenant, err := store.TenantByName(ctx, string(c.Name))
		if err != nil {
			return err
		}
		if c.Set != "" {
			if err := store.SetQuotas(ctx, tenant.ID, json.RawMessage(c.Set)); err != nil {
				return err
			}
		}
		quotas, err := store.Quotas(ctx, tenant.ID, session.Quotas{})
		if err != nil {
			return err
		}
		own, err := json.Marshal(quotas)
		if err == nil {
			_, err = fmt.Fprintf(out, "%s\n", own)
		}
		return err
	})
}
