package main

import (
	"context"
	"io"

	"github.com/varve-dev/varve/internal/client"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/terminal"
)

type contextCommand struct {
	Session   string `arg:"" help:"Session id."`
	MaxTokens *int   `help:"Omit whole oldest units until the view has at most this many tokens."`
	Full      bool   `help:"The whole log instead of the compacted view."`
	Pretty    bool   `help:"Text for a person instead of JSON; --json takes precedence."`
}

// Run prints the view as the API sends it, or as text.
func (c *contextCommand) Run(ctx context.Context, api *client.Client, settings *config.Client, out io.Writer) error {
	view, err := api.Context(ctx, c.Session, client.ViewOptions{MaxTokens: c.MaxTokens, Full: c.Full})
	if err != nil {
		return err
	}
	return writeAnswer(out, settings.JSON || !c.Pretty, view, terminal.View)
}
