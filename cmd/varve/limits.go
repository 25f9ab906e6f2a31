package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

type tenantsLimitsCommand struct {
	config.Database `embed:""`
	Name            tenantName `arg:"" help:"The tenant's name or id."`
	Set             string     `help:"JSON of quotas, e.g. {\"sessions\":100}; {} for those of the processes."`
}

// Validate returns an error for quotas that no process would read.
func (c *tenantsLimitsCommand) Validate() error {
	return errors.Join(c.Database.Validate(), validQuotas(c.Set))
}

// validQuotas returns an error for quotas that no process would read; "" is none.
func validQuotas(text string) error {
	if text == "" {
		return nil
	}
	return new(config.Quotas).UnmarshalText([]byte(text))
}

// Run sets the quotas, if there are any to set, and prints those that the tenant has of its own; processes notice
// within a quarter of a minute.
func (c *tenantsLimitsCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	if settings.Key != "" {
		return c.overHTTP(ctx, settings, out)
	}
	return withStore(ctx, settings, c.Database, func(store *postgres.Store) error {
		tenant, err := store.TenantNamed(ctx, string(c.Name))
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

func (c *tenantsLimitsCommand) overHTTP(ctx context.Context, settings *config.Client, out io.Writer) error {
	to, err := connectOperator(settings, out)
	if err != nil {
		return err
	}
	id, err := client.TenantID(ctx, to.API, string(c.Name))
	if err != nil {
		return err
	}
	var found client.Answer[session.TenantDetails]
	if c.Set == "" {
		found, err = client.ReadTenant.Call(ctx, to.API, id)
	} else {
		o := client.Options{Body: protocol.TenantChange{Quotas: json.RawMessage(c.Set)}}
		found, err = client.ChangeTenant.With(ctx, to.API, o, id)
	}
	if err != nil {
		return err
	}
	return to.PrintRaw(found.Value.Quotas)
}
