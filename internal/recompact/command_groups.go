package recompact

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/session"
)

// The routes of the recompactions of many tenants, as commands call them.
const (
	createGroup   client.Route[RecompactionGroup]     = "POST admin/tenants/recompactions"
	planGroup     client.Route[RecompactionPlan]      = "POST admin/tenants/recompactions" // the same with DryRun
	oneGroup      client.Route[RecompactionGroup]     = "GET admin/tenants/recompactions/{group}"
	compareGroup  client.Route[Comparison]            = "GET admin/tenants/recompactions/{group}/comparison"
	pauseGroup    client.Route[RecompactionGroup]     = "POST admin/tenants/recompactions/{group}/pause"
	resumeGroup   client.Route[RecompactionGroup]     = "POST admin/tenants/recompactions/{group}/resume"
	cancelGroup   client.Route[RecompactionGroup]     = "POST admin/tenants/recompactions/{group}/cancel"
	rollBackGroup client.Route[RecompactionGroup]     = "POST admin/tenants/recompactions/{group}/rollback"
	listGroups    client.ListRoute[RecompactionGroup] = "admin/tenants/recompactions"

	readPart     client.Route[Recompaction]            = "GET admin/tenants/{tenant}/recompactions/{recompaction}"
	partSessions client.ListRoute[RecompactionSession] = "admin/tenants/{tenant}/recompactions/{recompaction}/sessions"
)

// The views of recompactions of many tenants.
var (
	groupsView = command.View(`{{row "RECOMPACTION" "CREATED" "TENANTS"}}
{{- range .}}
{{row .ID .CreatedAt .Tenants}}
{{- end}}
`)
	groupView = command.View(`{{row "recompaction" .ID}}
{{row "created" .CreatedAt}}
{{row "tenants" .Said}}
{{- with .Progress}}
{{row "sessions" (printf "%d of %d: %s" .Done .Total .Outcomes)}}
{{- end}}
{{row "tokens" (print .TokensBefore " → " .TokensAfter)}}
{{- range .Recompactions}}
{{row (print "tenant " .Tenant) (printf "%s: %d of %d" .State .Progress.Done .Progress.Total)}}
{{- end}}
`)
)

// Said returns how many tenants there are, and how many of their recompactions are in which state.
func (g RecompactionGroup) Said() string {
	text := fmt.Sprint(g.Tenants)
	for _, state := range slices.Sorted(maps.Keys(g.States)) {
		text += fmt.Sprintf(", %d %s", g.States[state], state)
	}
	return text
}

func (g RecompactionGroup) at() (state string, p RecompactionProgress, ended bool) {
	ended = !slices.ContainsFunc(g.Recompactions, func(p RecompactionPart) bool { return !p.State.Ended() })
	return g.Said() + " tenants", *g.Progress, ended
}

type tenantsCommand struct {
	Start  tenantsStartCommand   `cmd:"" help:"Compact sessions of many tenants again, and wait for the end."`
	List   tenantsListCommand    `cmd:"" help:"List the recompactions of many tenants, newest first."`
	Show   tenantsShowCommand    `cmd:"" help:"Print one, or that of one of its tenants."`
	Pause  tenantsControlCommand `cmd:"" help:"Let the running compactions end, and start no others for now."`
	Resume tenantsControlCommand `cmd:"" help:"End a pause."`
	Cancel tenantsControlCommand `cmd:"" help:"Let the running compactions end, and start no others."`

	Compare  tenantsCompareCommand `cmd:"" help:"Print what the changed sessions served before and since."`
	Rollback tenantsControlCommand `cmd:"" help:"Bring each session back to what it served before."`
}

type tenantsStartCommand struct {
	Tenant       []string `sep:"none" help:"Name or id of a tenant; repeat it for more. All tenants if not given."`
	startCommand `embed:""`
}

// Run recompacts as the command for one tenant does.
func (c *tenantsStartCommand) Run(ctx context.Context, to command.Operators) error {
	one, err := c.request()
	if err != nil {
		return err
	}
	request := struct {
		ID      *uuid.UUID  `json:"id,omitempty"` // sent again because its answer was lost, it is still one
		Tenants []uuid.UUID `json:"tenants,omitempty"`
		Request
	}{Request: one}
	for _, named := range c.Tenant {
		id, err := client.TenantID(ctx, to.API, named)
		if err != nil {
			return err
		}
		request.Tenants = append(request.Tenants, id)
	}
	if c.DryRun {
		return show(ctx, to.Console, planView, planGroup, client.Options{Body: request})
	}
	request.ID = new(uuid.Must(uuid.NewV7()))
	a, err := createGroup.With(ctx, to.API, client.Options{Body: request})
	if err == nil && !c.Detach {
		a, err = follow(ctx, to.API, oneGroup, a.Value.ID.String(), os.Stderr)
	}
	if err != nil {
		return err
	}
	return errors.Join(to.Print(groupView, a.Raw, &a.Value), failedIn(a.Value.ID, *a.Value.Progress))
}

type tenantsListCommand struct {
	Limit int `default:"20" help:"How many, newest first."`
}

// Run lists the recompactions.
func (c *tenantsListCommand) Run(ctx context.Context, to command.Operators) error {
	return command.Find(ctx, to.Console, groupsView, listGroups, client.Query{}, c.Limit)
}

type tenantsShowCommand struct {
	ID       string `arg:"" help:"The recompaction's id."`
	Tenant   string `help:"Name or id of one of its tenants."`
	Sessions bool   `help:"What became of each session of the tenant."`
	Limit    int    `default:"1000" help:"How many sessions."`
}

// Validate returns an error for sessions of no tenant.
func (c *tenantsShowCommand) Validate() error {
	if c.Sessions && c.Tenant == "" {
		return errors.New("--sessions needs --tenant")
	}
	return nil
}

// Run prints the recompaction, or the tenant's part of it.
func (c *tenantsShowCommand) Run(ctx context.Context, to command.Operators) error {
	if c.Tenant == "" {
		return show(ctx, to.Console, groupView, oneGroup, client.Options{}, c.ID)
	}
	tenant, err := client.TenantID(ctx, to.API, c.Tenant)
	if err != nil {
		return err
	}
	whole, err := oneGroup.Call(ctx, to.API, c.ID)
	if err != nil {
		return err
	}
	parts := whole.Value.Recompactions
	at := slices.IndexFunc(parts, func(p RecompactionPart) bool { return p.Tenant == tenant })
	switch {
	case at < 0:
		return fmt.Errorf("tenant %q in recompaction %s: %w", c.Tenant, c.ID, session.ErrNotFound)
	case c.Sessions:
		id := parts[at].Recompaction
		return command.Find(ctx, to.Console, sessionsView, partSessions, client.Query{}, c.Limit, tenant, id)
	}
	return show(ctx, to.Console, view, readPart, client.Options{}, tenant, parts[at].Recompaction)
}

type tenantsCompareCommand struct {
	ID string `arg:"" help:"The recompaction's id."`
}

// Run prints the comparison.
func (c *tenantsCompareCommand) Run(ctx context.Context, to command.Operators) error {
	return show(ctx, to.Console, comparisonView, compareGroup, client.Options{}, c.ID)
}

// tenantsControlCommand changes a recompaction of many tenants. Doing it twice changes nothing.
type tenantsControlCommand struct {
	ID    string `arg:"" help:"The recompaction's id."`
	route client.Route[RecompactionGroup]
}

// Run calls the route and prints the recompaction.
func (c *tenantsControlCommand) Run(ctx context.Context, to command.Operators) error {
	return show(ctx, to.Console, groupView, c.route, client.Options{}, c.ID)
}
