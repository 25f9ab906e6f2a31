package main

import (
	"context"

	"github.com/varve-dev/varve/internal/client"
	"github.com/varve-dev/varve/internal/protocol"
)

type forkCommand struct {
	Session string `arg:"" help:"Id of the session to fork."`
	ID      string `name:"id" help:"Id of the new session; one is made if not given."`
	Seq     int64  `help:"The last seq that both have; all if not given."`
}

// Run makes the fork and prints its id, or the session as the API has it with --json.
func (c *forkCommand) Run(ctx context.Context, to *console) error {
	o := client.Options{Body: protocol.ForkRequest{ID: c.ID, Seq: c.Seq}}
	return show(ctx, to, "fork", client.Fork, o, c.Session)
}
