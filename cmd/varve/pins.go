package main

import (
	"context"
	"fmt"
	"os"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/protocol"
)

type pinsCommand struct {
	List       pinsListCommand       `cmd:"" help:"List what callers have pinned."`
	Add        pinsAddCommand        `cmd:"" help:"Pin a message, a part of one, or a result."`
	Rm         pinsRmCommand         `cmd:"" help:"Unpin it."`
	Candidates pinsCandidatesCommand `cmd:"" help:"List the user's standing instructions, which may be worth a pin."`
}

// Help returns what is shown below the flags.
func (c *pinsCommand) Help() string { return helpText("pins") }

type pinsListCommand struct {
	Session string `arg:"" help:"Session id."`
}

// Run lists the session's pins.
func (c *pinsListCommand) Run(ctx context.Context, to *command.Console) error {
	return show(ctx, to, "pins", client.ListPins, client.Options{}, c.Session)
}

type pinsAddCommand struct {
	Session string `arg:"" help:"Session id."`
	Ref     string `arg:"" help:"What to pin: a message (m17), a part of one (m17.2) or a result (r17.2-9f3a)."`
	Note    string `help:"Why, for those who read the list."`
}

// Run pins and prints the pin. Pinning the same again replaces its note.
func (c *pinsAddCommand) Run(ctx context.Context, to *command.Console) error {
	o := client.Options{Body: protocol.PinRequest{Note: c.Note}}
	return show(ctx, to, "pin", client.PutPin, o, c.Session, c.Ref)
}

type pinsRmCommand struct {
	Session string `arg:"" help:"Session id."`
	Ref     string `arg:"" help:"The pin's ref, as pins list shows it."`
}

// Run unpins.
func (c *pinsRmCommand) Run(ctx context.Context, to *command.Console) error {
	if err := client.DeletePin.Call(ctx, to.API, c.Session, c.Ref); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "unpinned: the next compaction may change it")
	return nil
}

type pinsCandidatesCommand struct {
	Session string `arg:"" help:"Session id."`
}

// Run lists the candidates of the whole log.
func (c *pinsCandidatesCommand) Run(ctx context.Context, to *command.Console) error {
	found := []protocol.PinCandidate{}
	from := int64(1)
	for {
		o := client.Options{Query: client.Query{"from_seq": from}}
		page, err := client.ListPinCandidates.With(ctx, to.API, o, c.Session)
		if err != nil {
			return err
		}
		found = append(found, page.Value.Data...)
		if page.Value.NextSeq == nil {
			return printValue(to.Out, to.JSON, "pin candidates", found)
		}
		from = *page.Value.NextSeq
	}
}
