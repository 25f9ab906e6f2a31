package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/varve-dev/varve/internal/archive"
)

type exportCommand struct {
	Sessions []string `arg:"" optional:"" name:"session" help:"Session ids."`
	All      bool     `help:"All sessions of the tenant, and the tenant's policy."`
	Output   string   `short:"o" placeholder:"FILE" help:"File to write, which is only there when it is whole; standard output if not given."`
}

// Help is shown below the flags.
func (c *exportCommand) Help() string {
	return `An export is lines of JSON: every message byte for byte, the sessions' settings and policies, and at the end a manifest
with a SHA-256. varve import reads it: what is exported again after that has the same manifest. Checkpoints and
persisted results are not in it, because compactions make them anew from the log.

  varve export --all -o tenant.ndjson
  varve export chat-42 | gzip > chat-42.ndjson.gz`
}

// Validate wants to know exactly what is exported.
func (c *exportCommand) Validate() error {
	if c.All == (len(c.Sessions) > 0) {
		return errors.New("name the sessions to export, or say --all")
	}
	return nil
}

// Run writes the export, and checks it while it comes.
func (c *exportCommand) Run(ctx context.Context, g *Globals) error {
	client, err := g.Client()
	if err != nil {
		return err
	}
	if c.Output == "" {
		_, err := c.write(ctx, client, os.Stdout)
		return err
	}
	total, err := c.file(ctx, client)
	if err != nil {
		return err
	}
	if g.JSON {
		return json.NewEncoder(os.Stdout).Encode(total)
	}
	fmt.Fprintf(os.Stderr, "%s: %s, %s, %.1f MB of messages\n", printable(c.Output), count(int(total.Sessions), "session"), count(int(total.Messages), "message"), float64(total.Bytes)/1e6)
	return nil
}

// file writes the export beside its place first, so that a part of one is never taken for it.
func (c *exportCommand) file(ctx context.Context, client *Client) (total archive.Manifest, err error) {
	part := c.Output + ".part"
	out, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return total, err
	}
	defer os.Remove(part) // there is none once it is in its place
	total, err = c.write(ctx, client, out)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return total, err
	}
	return total, os.Rename(part, c.Output)
}

func (c *exportCommand) write(ctx context.Context, client *Client, out io.Writer) (total archive.Manifest, err error) {
	if c.All {
		return fetchExport(ctx, client, out, "export")
	}
	for _, id := range c.Sessions {
		one, err := fetchExport(ctx, client, out, "sessions", id, "export")
		if err != nil {
			return total, fmt.Errorf("session %s: %w", printable(id), err)
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

// fetchExport copies an export as it comes. One that is cut off or damaged is an error.
func fetchExport(ctx context.Context, client *Client, out io.Writer, path ...string) (archive.Manifest, error) {
	res, err := client.do(ctx, call{method: http.MethodGet, path: path, ok: []int{http.StatusOK}})
	if err != nil {
		return archive.Manifest{}, err
	}
	defer res.Body.Close()
	total, err := archive.Verify(io.TeeReader(res.Body, out))
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return total, err
}
