package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/protocol"
)

type holdsCommand struct {
	List  holdsListCommand  `cmd:"" help:"List the legal holds of the tenant and its sessions, newest first."`
	Show  holdsShowCommand  `cmd:"" help:"Show the legal hold of a session or a tenant."`
	Place holdsPlaceCommand `cmd:"" help:"Keep a session, or all of a tenant, from being erased."`
	Lift  holdsLiftCommand  `cmd:"" help:"Lift a legal hold."`
}

// held is what a legal hold is on: a session, with a key of its tenant, or a tenant, with an operator's.
type held struct {
	Session string `arg:"" optional:"" xor:"held" help:"Session id."`
	Tenant  string `xor:"held" help:"Name or id of a tenant instead, which takes an operator's key."`
}

// Validate returns an error unless the hold is on something.
func (h *held) Validate() error {
	if (h.Session == "") == (h.Tenant == "") {
		return fmt.Errorf("a hold is on a session or, with --tenant, on a tenant: name one of them")
	}
	return nil
}

// on calls one of two functions, with the session, or with the id of the tenant.
func (h *held) on(ctx context.Context, settings *config.Client, out io.Writer,
	onSession, onTenant func(to *command.Console, id string) error) error {
	if h.Tenant == "" {
		to, err := connect(settings, out)
		if err != nil {
			return err
		}
		return onSession(to, h.Session)
	}
	to, err := connectOperator(settings, out)
	if err != nil {
		return err
	}
	id, err := client.TenantID(ctx, to.API, h.Tenant)
	if err != nil {
		return err
	}
	return onTenant(to.Console, id.String())
}

type holdsListCommand struct {
	Tenant string `help:"Name or id of another tenant, which takes an operator's key."`
	Limit  int    `default:"100" help:"How many to list."`
}

// Run prints the holds.
func (c *holdsListCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	of := held{Tenant: c.Tenant}
	return of.on(ctx, settings, out,
		func(to *command.Console, _ string) error {
			return showList(ctx, to, "holds", client.ListHolds, c.Limit)
		},
		func(to *command.Console, id string) error {
			return showList(ctx, to, "holds", client.OperatorListHolds, c.Limit, id)
		})
}

type holdsShowCommand struct {
	held `embed:""`
}

// Run prints the hold.
func (c *holdsShowCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	return c.on(ctx, settings, out,
		func(to *command.Console, id string) error {
			return show(ctx, to, "hold", client.ReadHold, client.Options{}, id)
		},
		func(to *command.Console, id string) error {
			return show(ctx, to, "hold", client.OperatorReadHold, client.Options{}, id)
		})
}

type holdsPlaceCommand struct {
	held   `embed:""`
	Reason string `required:"" help:"Why nothing may be erased, e.g. 'case 7 of 2026'."`
}

// Run places the hold, or gives the one that there is another reason.
func (c *holdsPlaceCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	o := client.Options{Body: protocol.HoldRequest{Reason: c.Reason}}
	return c.on(ctx, settings, out,
		func(to *command.Console, id string) error { return show(ctx, to, "hold", client.PutHold, o, id) },
		func(to *command.Console, id string) error {
			return show(ctx, to, "hold", client.OperatorPutHold, o, id)
		})
}

type holdsLiftCommand struct {
	held `embed:""`
}

// Run lifts the hold, if there is one.
func (c *holdsLiftCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	err := c.on(ctx, settings, out,
		func(to *command.Console, id string) error { return client.DeleteHold.Call(ctx, to.API, id) },
		func(to *command.Console, id string) error { return client.OperatorDeleteHold.Call(ctx, to.API, id) })
	if err == nil {
		fmt.Fprintln(os.Stderr, "there is no hold on it any more")
	}
	return err
}
