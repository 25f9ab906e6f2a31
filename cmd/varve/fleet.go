package main

import (
	"context"

	"github.com/varve-dev/varve/internal/client"
)

type fleetCommand struct {
	List   string `enum:"tokens,bytes,idle,unread,over_window,failing,quarantined" default:"tokens" help:"${enum}."`
	Tenant string `help:"Id of the tenant whose sessions to list; of all if not given."`
	Limit  int    `default:"100" help:"How many to list."`
}

// Run prints the sessions.
func (c *fleetCommand) Run(ctx context.Context, to *console) error {
	return showFound(ctx, to, "fleet", client.Fleet, client.Query{"list": c.List, "tenant": c.Tenant}, c.Limit)
}
