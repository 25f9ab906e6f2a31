package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/schollz/progressbar/v3"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

type tenantsCommand struct {
	Create   tenantsCreateCommand   `cmd:"" help:"Create a tenant."`
	List     tenantsListCommand     `cmd:"" help:"List tenants."`
	Show     tenantsShowCommand     `cmd:"" help:"Print a tenant with its quotas and what it has, as JSON."`
	Rename   tenantsRenameCommand   `cmd:"" help:"Give a tenant another name."`
	Suspend  tenantsSuspendCommand  `cmd:"" help:"Refuse requests of a tenant."`
	Resume   tenantsResumeCommand   `cmd:"" help:"End the suspension of a tenant."`
	Delete   tenantsDeleteCommand   `cmd:"" help:"Delete a tenant with all that it has, and write the receipt."`
	Deletion tenantsDeletionCommand `cmd:"" help:"Print how far the deletion of a tenant is, and its receipt, as JSON."`
	Limits   tenantsLimitsCommand   `cmd:"" help:"Show or set a tenant's quotas."`
	Policy   tenantsPolicyCommand   `cmd:"" help:"Show or set a tenant's default policy."`

	Retention tenantsRetentionCommand `cmd:"" help:"Bound how long a tenant may keep its sessions."`
}

// Help says when which command needs what.
func (c *tenantsCommand) Help() string { return helpText("tenants") }

// connectOperator returns a console with an operator's key: that of the settings, or else the one in DATA/operator-key.
func connectOperator(settings *config.Client, out io.Writer) (to command.Operators, err error) {
	own := *settings
	if own.Key == "" {
		file := filepath.Join(own.Data, operatorKeyFile)
		if own.Key, err = readKey(file); err != nil {
			return to, &failure{exitAuth, fmt.Sprintf("no operator's key: set VARVE_KEY to one (vop_…), or "+
				"point --data at the data directory of a varve up (%s)", err)}
		}
	}
	to.Console, err = connect(&own, out)
	return to, err
}

// changeTenant changes a tenant and prints it.
func changeTenant(ctx context.Context, to command.Operators, named string, change protocol.TenantChange) error {
	id, err := client.TenantID(ctx, to.API, named)
	if err != nil {
		return err
	}
	return show(ctx, to.Console, "tenant details", client.ChangeTenant, client.Options{Body: change}, id)
}

type tenantsCreateCommand struct {
	config.Database `embed:""`
	Name            tenantName   `arg:"" help:"The tenant's name, 1 to 255 bytes."`
	ID              *uuid.UUID   `help:"Its id, the same in every cell; a new one if not given."`
	Quotas          string       `placeholder:"JSON" help:"Quotas of its own. This and the next two take a key."`
	Policy          string       `placeholder:"FILE" help:"Its default policy; - for standard input."`
	Role            session.Role `help:"Make its first key with the scopes of viewer, operator or admin, and print it."`
}

// Validate returns an error for quotas that no process would read.
func (c *tenantsCreateCommand) Validate() error {
	return errors.Join(c.Database.Validate(), validQuotas(c.Quotas))
}

// Run creates the tenant and prints its id, and the text of its first key.
func (c *tenantsCreateCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	asks := c.Quotas != "" || c.Policy != "" || c.Role != "" // for what only the API does
	switch {
	case settings.Key != "", asks && c.Database.URL == "": // the key may be that of a varve up
		return c.overHTTP(ctx, settings, out)
	case asks:
		return command.Usage("--quotas, --policy and --role take an operator's key: set VARVE_KEY")
	}
	wanted := session.NewTenant{ID: uuid.Must(uuid.NewV7()), Name: string(c.Name), Policy: policy.StoredDefault()}
	if c.ID != nil {
		wanted.ID = *c.ID
	}
	return withStore(ctx, settings, c.Database, func(store *postgres.Store) error {
		made, _, err := store.ProvisionTenant(ctx, wanted)
		if err != nil {
			return err
		}
		return printValue(out, settings.JSON, "tenant", made.Tenant)
	})
}

func (c *tenantsCreateCommand) overHTTP(ctx context.Context, settings *config.Client, out io.Writer) error {
	to, err := connectOperator(settings, out)
	if err != nil {
		return err
	}
	wanted := protocol.TenantRequest{ID: c.ID, Name: string(c.Name)}
	if c.Quotas != "" {
		wanted.Quotas = json.RawMessage(c.Quotas)
	}
	if c.Policy != "" {
		if wanted.Policy, err = command.ReadFile(c.Policy); err != nil {
			return err
		}
	}
	if c.Role != "" {
		wanted.Key = &protocol.KeyRequest{Role: c.Role}
	}
	return show(ctx, to.Console, "new tenant", client.CreateTenant, client.Options{Body: wanted})
}

type tenantsListCommand struct {
	config.Database `embed:""`
}

// Run prints all tenants.
func (c *tenantsListCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	if settings.Key != "" {
		to, err := connectOperator(settings, out)
		if err != nil {
			return err
		}
		return showList(ctx, to.Console, "tenants in full", client.ListTenants, math.MaxInt)
	}
	return withStore(ctx, settings, c.Database, func(store *postgres.Store) error {
		tenants, err := store.Tenants(ctx)
		if err != nil {
			return err
		}
		return printValue(out, settings.JSON, "tenants", tenants)
	})
}

type tenantsShowCommand struct {
	Tenant string `arg:"" help:"Name or id."`
}

// Run prints the tenant.
func (c *tenantsShowCommand) Run(ctx context.Context, to command.Operators) error {
	id, err := client.TenantID(ctx, to.API, c.Tenant)
	if err != nil {
		return err
	}
	return showJSON(ctx, to.Console, client.ReadTenant, client.Options{}, id)
}

type tenantsRenameCommand struct {
	Tenant string     `arg:"" help:"Name or id."`
	Name   tenantName `arg:"" help:"The new name."`
}

// Run renames the tenant.
func (c *tenantsRenameCommand) Run(ctx context.Context, to command.Operators) error {
	return changeTenant(ctx, to, c.Tenant, protocol.TenantChange{Name: string(c.Name)})
}

type tenantsSuspendCommand struct {
	Tenant string `arg:"" help:"Name or id."`
	Refuse string `default:"all" enum:"reads,writes,all" help:"What is refused: reads, writes or all."`
}

// Run suspends the tenant; processes notice within 3 seconds.
func (c *tenantsSuspendCommand) Run(ctx context.Context, to command.Operators) error {
	refused, err := json.Marshal(c.Refuse)
	if err != nil {
		return err
	}
	return changeTenant(ctx, to, c.Tenant, protocol.TenantChange{Suspended: refused})
}

type tenantsResumeCommand struct {
	Tenant string `arg:"" help:"Name or id."`
}

// Run ends the suspension; processes notice within 3 seconds.
func (c *tenantsResumeCommand) Run(ctx context.Context, to command.Operators) error {
	return changeTenant(ctx, to, c.Tenant, protocol.TenantChange{Suspended: json.RawMessage("null")})
}

type tenantsPolicyCommand struct {
	Tenant string `arg:"" help:"Name or id."`
	Set    string `placeholder:"FILE" help:"Make this file the tenant's layer; - for standard input."`
	Merge  bool   `help:"Merge the file into the layer instead of replacing it."`
	All    bool   `help:"Also the values that are the profile's."`
}

// Run sets the policy if there is one to set, and prints it.
func (c *tenantsPolicyCommand) Run(ctx context.Context, to command.Operators) error {
	id, err := client.TenantID(ctx, to.API, c.Tenant)
	if err != nil {
		return err
	}
	if c.Set != "" {
		document, err := command.ReadFile(c.Set)
		if err != nil {
			return err
		}
		method := "PUT"
		if c.Merge {
			method = "PATCH"
		}
		_, err = client.TenantPolicy(method).With(ctx, to.API, client.Options{Body: document}, id)
		if err != nil {
			return err
		}
	}
	return showPolicy(ctx, to.Console, c.All, client.TenantPolicy("GET"), client.Options{}, id)
}

type tenantsDeleteCommand struct {
	Tenant  string `arg:"" help:"Name or id."`
	Confirm string `required:"" placeholder:"ID" help:"The tenant's id: nothing brings back what it has."`
	Receipt string `placeholder:"FILE" help:"Where the receipt is written at the end; nowhere if not given."`
	Detach  bool   `help:"Do not wait for the end."`
}

// Validate returns an error for a receipt that nobody waits for.
func (c *tenantsDeleteCommand) Validate() error {
	if c.Detach && c.Receipt != "" {
		return errors.New("--receipt with --detach: there is no receipt before the end; tenants deletion prints it")
	}
	return nil
}

// Run deletes the tenant, and shows how far that is. Interrupted, the deletion continues, and the same command waits
// again.
func (c *tenantsDeleteCommand) Run(ctx context.Context, to command.Operators) error {
	id, err := client.TenantID(ctx, to.API, c.Tenant)
	if err != nil {
		return err
	}
	begun, err := client.DeleteTenant.With(ctx, to.API, client.Options{Query: client.Query{"confirm": c.Confirm}}, id)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "erasure %s deletes tenant %s\n", begun.Value.ID, id)
	if !c.Detach {
		if begun, err = waitForDeletion(ctx, to.API, begun.Value.ID); err != nil {
			return err
		}
	}
	if c.Receipt != "" {
		text, err := json.Marshal(begun.Value.Receipt)
		if err != nil {
			return err
		}
		if err := os.WriteFile(c.Receipt, append(text, '\n'), 0o600); err != nil {
			return err
		}
	}
	return to.Print(named("erasure"), begun.Raw, &begun.Value)
}

// pollEvery is how often a command asks how far a deletion is.
const pollEvery = time.Second

// waitForDeletion shows how far a deletion is until it has ended.
func waitForDeletion(ctx context.Context, api *client.Client, id uuid.UUID) (client.Answer[session.Erasure], error) {
	m := command.NewMeter(os.Stderr, -1, progressbar.OptionShowCount())
	defer m.Finish()
	for {
		found, err := client.ReadTenantErasure.Call(ctx, api, id)
		if err != nil || found.Value.State == session.ErasureDone {
			return found, err
		}
		e := &found.Value
		text := "erased"
		if e.StoppedBy != nil {
			text = fmt.Sprintf("stopped by a legal hold: %q", e.StoppedBy.Reason)
		}
		m.Update(e.Sessions, *e.TotalSessions, text,
			fmt.Sprintf("%d of %d sessions %s", e.Sessions, *e.TotalSessions, text))
		if err := api.Sleep(ctx, pollEvery); err != nil {
			return found, err
		}
	}
}

type tenantsDeletionCommand struct {
	Erasure string `arg:"" optional:"" help:"Id of the erasure; the deletions of all tenants are listed without one."`
	Limit   int    `default:"100" help:"How many to list."`
}

// Run prints the erasure, or all.
func (c *tenantsDeletionCommand) Run(ctx context.Context, to command.Operators) error {
	if c.Erasure == "" {
		return showList(ctx, to.Console, "erasures", client.ListTenantErasures, c.Limit)
	}
	return showJSON(ctx, to.Console, client.ReadTenantErasure, client.Options{}, c.Erasure)
}
