package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/terminal"
)

type exportCommand struct {
	Sessions []string `arg:"" optional:"" name:"session" help:"Session ids."`
	All      bool     `help:"All sessions of the tenant, and the tenant's policy."`
	Output   string   `short:"o" placeholder:"FILE" help:"File to write as a whole; standard output if not given."`
}

// Help returns what is shown below the flags.
func (c *exportCommand) Help() string { return helpText("export") }

// Validate returns an error for an export of nothing, and for one of both.
func (c *exportCommand) Validate() error {
	if c.All == (len(c.Sessions) > 0) {
		return errors.New("name the sessions to export, or use --all")
	}
	return nil
}

// Run writes the export, and checks it on the way.
func (c *exportCommand) Run(ctx context.Context, to *command.Console) error {
	if c.Output == "" {
		_, err := c.write(ctx, to.API, to.Out)
		return err
	}
	var total archive.Manifest
	err := replaceFile(c.Output, func(out io.Writer) (err error) {
		total, err = c.write(ctx, to.API, out)
		return err
	})
	if err != nil {
		return err
	}
	if to.JSON {
		return command.WriteJSON(to.Out, total)
	}
	fmt.Fprintf(os.Stderr, "%s: %s, %s, %.1f MB of messages\n", terminal.Printable(c.Output),
		terminal.Count(int(total.Sessions), "session"), terminal.Count(int(total.Messages), "message"),
		float64(total.Bytes)/1e6)
	return nil
}

// write writes the exports that the flags name, one after the other, and returns their manifest.
func (c *exportCommand) write(ctx context.Context, api *client.Client, out io.Writer) (archive.Manifest, error) {
	if c.All {
		return fetchExport(ctx, api, out, "")
	}
	var total archive.Manifest
	for _, id := range c.Sessions {
		one, err := fetchExport(ctx, api, out, id)
		if err != nil {
			return total, fmt.Errorf("session %s: %w", terminal.Printable(id), err)
		}
		total.Sessions += one.Sessions
		total.Messages += one.Messages
		total.Bytes += one.Bytes
		total.SHA256 = one.SHA256
	}
	if len(c.Sessions) > 1 {
		total.SHA256 = "" // each has its own
	}
	return total, nil
}

// fetchExport copies an export as it comes. It returns an error for one that is cut off or damaged.
func fetchExport(ctx context.Context, api *client.Client, out io.Writer, id string) (archive.Manifest, error) {
	body, err := api.Export(ctx, id)
	if err != nil {
		return archive.Manifest{}, err
	}
	defer body.Close()
	total, err := archive.Verify(io.TeeReader(body, out))
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return total, err
}
