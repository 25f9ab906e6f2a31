package main

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/protocol"
)

type erasuresCommand struct {
	Start erasuresStartCommand `cmd:"" help:"Erase all sessions of a person, and their forks."`
	List  erasuresListCommand  `cmd:"" help:"List erasures, newest first."`
	Show  erasuresShowCommand  `cmd:"" help:"Print an erasure with its receipt, as JSON."`
}

type erasuresStartCommand struct {
	Metadata map[string]string `required:"" mapsep:"none" placeholder:"KEY=VALUE" help:"What sessions have; repeat it."`
	Yes      bool              `required:"" help:"Confirm: nothing brings the sessions back."`
}

// Run begins the erasure and prints it. Sent again because its answer was lost, it is still one erasure.
func (c *erasuresStartCommand) Run(ctx context.Context, to *command.Console) error {
	metadata, err := json.Marshal(c.Metadata)
	if err != nil {
		return err
	}
	o := client.Options{Body: protocol.ErasureRequest{Metadata: metadata}, Key: uuid.NewString()}
	return show(ctx, to, "erasure", client.CreateErasure, o)
}

type erasuresListCommand struct {
	Limit int `default:"100" help:"How many to list."`
}

// Run prints the erasures.
func (c *erasuresListCommand) Run(ctx context.Context, to *command.Console) error {
	return showList(ctx, to, "erasures", client.ListErasures, c.Limit)
}

type erasuresShowCommand struct {
	Erasure string `arg:"" help:"Id of the erasure."`
}

// Run prints the erasure.
func (c *erasuresShowCommand) Run(ctx context.Context, to *command.Console) error {
	return showJSON(ctx, to, client.ReadErasure, client.Options{}, c.Erasure)
}
