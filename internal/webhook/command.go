package webhook

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// The routes of webhooks, as commands call them.
const (
	createRoute client.Route[Created] = "POST webhooks"
	getRoute    client.Route[Webhook] = "GET webhooks/{webhook}"
	changeRoute client.Route[Webhook] = "PATCH webhooks/{webhook}"
	rotateRoute client.Route[Created] = "POST webhooks/{webhook}/rotate"
	enableRoute client.Route[Webhook] = "POST webhooks/{webhook}/enable"
	testRoute   client.Effect         = "POST webhooks/{webhook}/test"
	deleteRoute client.Effect         = "DELETE webhooks/{webhook}"

	deliveriesRoute client.ListRoute[Delivery] = "webhooks/{webhook}/deliveries"
)

var (
	secretView = command.View("{{.Secret}}\n")
	table      = command.View(`
{{- row "ID" "NAME" "URL" "TYPES" "DELIVERED" "PENDING" "DROPPED" "FAILURES" "DISABLED" "WHY"}}
{{- range .}}
{{row .ID (or .Name "-") .URL (joined .Types "all") .Delivered .Pending .Dropped .Failures .DisabledAt .DisabledReason}}
{{- end}}
`)
	deliveriesTable = command.View(`
{{- row "N" "TYPE" "AT" "SESSION" "ATTEMPTS" "NEXT" "ERROR"}}
{{- range .}}
{{row .N .Type .At .Session .Attempts .NextTryAt .Error}}
{{- end}}
`)
)

// commands are the commands of webhooks.
type commands struct {
	Webhooks webhooks `cmd:"" help:"List, make, change and delete webhooks."`
}

type webhooks struct {
	List   listCommand   `cmd:"" help:"List webhooks, with what was delivered and what waits."`
	Show   showCommand   `cmd:"" help:"Print a webhook, as JSON."`
	Create createCommand `cmd:"" help:"Send events to a URL, and print the secret that signs them, once."`
	Set    setCommand    `cmd:"" help:"Change a webhook."`
	Rotate rotateCommand `cmd:"" help:"Sign with another secret, and print it, once."`
	Enable enableCommand `cmd:"" help:"Enable a webhook that was disabled because nothing was delivered."`
	Test   testCommand   `cmd:"" help:"Send a test event."`
	Delete deleteCommand `cmd:"" help:"Delete a webhook with what waits for it."`

	Deliveries deliveriesCommand `cmd:"" help:"List the events that a webhook has not got yet, with why."`
}

type listCommand struct{}

// Run prints the webhooks.
func (c *listCommand) Run(ctx context.Context, to *command.Console) error {
	return command.List(ctx, to, table, client.ListRoute[Webhook]("webhooks"))
}

type showCommand struct {
	Webhook string `arg:"" help:"Id of the webhook."`
}

// Run prints the webhook.
func (c *showCommand) Run(ctx context.Context, to *command.Console) error {
	found, err := getRoute.Call(ctx, to.API, c.Webhook)
	if err != nil {
		return err
	}
	return to.PrintRaw(found.Raw)
}

type createCommand struct {
	URL   string              `arg:"" help:"Where events are sent, e.g. https://hooks.example/varve."`
	Name  *string             `help:"What the webhook is for."`
	Types []session.EventType `help:"Which events, e.g. session.due,session.compacted; all if not given."`
}

// Run prints the secret on standard output, alone.
func (c *createCommand) Run(ctx context.Context, to *command.Console) error {
	wanted := Request{URL: c.URL, Name: c.Name}
	if len(c.Types) > 0 {
		wanted.Types = &c.Types
	}
	made, err := createRoute.With(ctx, to.API, client.Options{Body: wanted})
	return printSecret(to, made, err)
}

// printSecret prints a secret on standard output, alone.
func printSecret(to *command.Console, made client.Answer[Created], err error) error {
	if err != nil {
		return err
	}
	if err := to.Print(secretView, made.Raw, &made.Value); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "secret of webhook %s; it will not be shown again\n", made.Value.ID)
	return nil
}

type setCommand struct {
	Webhook string               `arg:"" help:"Id of the webhook."`
	URL     string               `name:"to" help:"Where events are sent."`
	Name    *string              `help:"What the webhook is for."`
	Types   *[]session.EventType `help:"Which events; an empty list for all."`
}

// Run changes the webhook and prints it.
func (c *setCommand) Run(ctx context.Context, to *command.Console) error {
	change := Request{URL: c.URL, Name: c.Name, Types: c.Types}
	return showWebhook(ctx, to, changeRoute, client.Options{Body: change}, c.Webhook)
}

func showWebhook(ctx context.Context, to *command.Console, r client.Route[Webhook], o client.Options, id string) error {
	found, err := r.With(ctx, to.API, o, id)
	if err != nil {
		return err
	}
	return to.Print(table, found.Raw, []Webhook{found.Value})
}

type rotateCommand struct {
	Webhook string         `arg:"" help:"Id of the webhook."`
	Overlap *time.Duration `help:"How long the old secret signs, too; a day if not given."`
}

// Run prints the new secret on standard output, alone.
func (c *rotateCommand) Run(ctx context.Context, to *command.Console) error {
	var body protocol.RotateRequest
	if c.Overlap != nil {
		body.OverlapSeconds = new(int64(*c.Overlap / time.Second))
	}
	made, err := rotateRoute.With(ctx, to.API, client.Options{Body: body}, c.Webhook)
	return printSecret(to, made, err)
}

type enableCommand struct {
	Webhook string `arg:"" help:"Id of the webhook."`
}

// Run enables the webhook and prints it.
func (c *enableCommand) Run(ctx context.Context, to *command.Console) error {
	return showWebhook(ctx, to, enableRoute, client.Options{}, c.Webhook)
}

type testCommand struct {
	Webhook string `arg:"" help:"Id of the webhook."`
}

// Run sends the event.
func (c *testCommand) Run(ctx context.Context, to *command.Console) error {
	err := testRoute.Call(ctx, to.API, c.Webhook)
	if err == nil {
		fmt.Fprintln(os.Stderr, "an event webhook.test is on its way: webhooks show says what became of it")
	}
	return err
}

type deliveriesCommand struct {
	Webhook string `arg:"" help:"Id of the webhook."`
	Limit   int    `help:"How many, at most." default:"100"`
}

// Run prints the deliveries.
func (c *deliveriesCommand) Run(ctx context.Context, to *command.Console) error {
	return command.Find(ctx, to, deliveriesTable, deliveriesRoute, client.Query{}, c.Limit, c.Webhook)
}

type deleteCommand struct {
	Webhook string `arg:"" help:"Id of the webhook."`
}

// Run deletes the webhook.
func (c *deleteCommand) Run(ctx context.Context, to *command.Console) error {
	return deleteRoute.Call(ctx, to.API, c.Webhook)
}
