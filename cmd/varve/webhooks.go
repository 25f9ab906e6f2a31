package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/varve-dev/varve/internal/client"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

type webhooksCommand struct {
	List   webhooksListCommand   `cmd:"" help:"List webhooks, with what was delivered and what waits."`
	Show   webhooksShowCommand   `cmd:"" help:"Print a webhook, as JSON."`
	Create webhooksCreateCommand `cmd:"" help:"Send events to a URL, and print the secret that signs them, once."`
	Set    webhooksSetCommand    `cmd:"" help:"Change a webhook."`
	Rotate webhooksRotateCommand `cmd:"" help:"Sign with another secret, and print it, once."`
	Enable webhooksEnableCommand `cmd:"" help:"Enable a webhook that was disabled because nothing was delivered."`
	Test   webhooksTestCommand   `cmd:"" help:"Send a test event."`
	Delete webhooksDeleteCommand `cmd:"" help:"Delete a webhook with what waits for it."`
}

type webhooksListCommand struct{}

// Run prints the webhooks.
func (c *webhooksListCommand) Run(ctx context.Context, to *console) error {
	return showList(ctx, to, "webhooks", client.Webhooks, math.MaxInt)
}

type webhooksShowCommand struct {
	Webhook string `arg:"" help:"Id of the webhook."`
}

// Run prints the webhook.
func (c *webhooksShowCommand) Run(ctx context.Context, to *console) error {
	found, err := client.GetWebhook.Call(ctx, to.api, c.Webhook)
	if err != nil {
		return err
	}
	return to.printRaw(found.Raw)
}

type webhooksCreateCommand struct {
	URL   string              `arg:"" help:"Where events are sent, e.g. https://hooks.example/varve."`
	Name  *string             `help:"What the webhook is for."`
	Types []session.EventType `help:"Which events, e.g. session.due,session.compacted; all if not given."`
}

// Run prints the secret on standard output, alone.
func (c *webhooksCreateCommand) Run(ctx context.Context, to *console) error {
	wanted := protocol.WebhookRequest{URL: c.URL, Name: c.Name}
	if len(c.Types) > 0 {
		wanted.Types = &c.Types
	}
	made, err := client.CreateWebhook.With(ctx, to.api, client.Options{Body: wanted})
	return printSecret(to, made, err)
}

// printSecret prints a secret on standard output, alone.
func printSecret(to *console, made client.Answer[protocol.NewWebhook], err error) error {
	if err != nil {
		return err
	}
	if err := to.print("new secret", made.Raw, &made.Value); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "secret of webhook %s; it will not be shown again\n", made.Value.ID)
	return nil
}

type webhooksSetCommand struct {
	Webhook string               `arg:"" help:"Id of the webhook."`
	URL     string               `name:"to" help:"Where events are sent."`
	Name    *string              `help:"What the webhook is for."`
	Types   *[]session.EventType `help:"Which events; an empty list for all."`
}

// Run changes the webhook and prints it.
func (c *webhooksSetCommand) Run(ctx context.Context, to *console) error {
	change := protocol.WebhookRequest{URL: c.URL, Name: c.Name, Types: c.Types}
	return showWebhook(ctx, to, client.ChangeWebhook, client.Options{Body: change}, c.Webhook)
}

func showWebhook(
	ctx context.Context, to *console, r client.Route[session.Webhook], o client.Options, id string,
) error {
	found, err := r.With(ctx, to.api, o, id)
	if err != nil {
		return err
	}
	return to.print("webhooks", found.Raw, []session.Webhook{found.Value})
}

type webhooksRotateCommand struct {
	Webhook string         `arg:"" help:"Id of the webhook."`
	Overlap *time.Duration `help:"How long the old secret signs, too; a day if not given."`
}

// Run prints the new secret on standard output, alone.
func (c *webhooksRotateCommand) Run(ctx context.Context, to *console) error {
	o := client.Options{Body: protocol.RotateRequest{OverlapSeconds: seconds(c.Overlap)}}
	made, err := client.RotateWebhook.With(ctx, to.api, o, c.Webhook)
	return printSecret(to, made, err)
}

// seconds returns a duration in seconds, nil for none.
func seconds(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	return new(int64(*d / time.Second))
}

type webhooksEnableCommand struct {
	Webhook string `arg:"" help:"Id of the webhook."`
}

// Run enables the webhook and prints it.
func (c *webhooksEnableCommand) Run(ctx context.Context, to *console) error {
	return showWebhook(ctx, to, client.EnableWebhook, client.Options{}, c.Webhook)
}

type webhooksTestCommand struct {
	Webhook string `arg:"" help:"Id of the webhook."`
}

// Run sends the event.
func (c *webhooksTestCommand) Run(ctx context.Context, to *console) error {
	err := client.TestWebhook.Call(ctx, to.api, c.Webhook)
	if err == nil {
		fmt.Fprintln(os.Stderr, "an event webhook.test is on its way: webhooks show says what became of it")
	}
	return err
}

type webhooksDeleteCommand struct {
	Webhook string `arg:"" help:"Id of the webhook."`
}

// Run deletes the webhook.
func (c *webhooksDeleteCommand) Run(ctx context.Context, to *console) error {
	return client.DeleteWebhook.Call(ctx, to.api, c.Webhook)
}
