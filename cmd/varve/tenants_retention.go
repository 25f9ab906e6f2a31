package main

import (
	"context"
	"errors"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

type tenantsRetentionCommand struct {
	Tenant      string `arg:"" help:"Name or id."`
	expiryFlags `embed:""`
	Unbounded   bool `help:"The tenant may keep its sessions for ever."`
	Yes         bool `required:"" help:"Confirm: what is older is erased, and nothing brings it back."`
}

// Validate returns an error for a bound without a time, unless there is to be none.
func (c *tenantsRetentionCommand) Validate() error {
	if c.Unbounded == (c.Idle > 0 || c.Age > 0) {
		return errors.New("give --idle, --age or both, or --unbounded alone")
	}
	return c.expiryFlags.Validate()
}

// Run bounds the retention of the tenant and prints the tenant.
func (c *tenantsRetentionCommand) Run(ctx context.Context, to operators) error {
	return to.changeTenant(ctx, c.Tenant, protocol.TenantChange{MostKept: new(session.RetentionBound(c.times()))})
}
