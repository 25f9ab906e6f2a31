package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/varve-dev/varve/internal/client"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/protocol"
)

type resultsCommand struct {
	Session string `arg:"" help:"Session id."`
	Ref     string `arg:"" optional:"" help:"A result's ref, like r17.0-9f3a; lists all results if not given."`
	Offset  *int   `help:"First line to print, counted from 1; the first of the result if not given."`
	Limit   *int   `help:"How many lines to print, 200 if not given and 2000 at most. Without a ref, how many results to list; all if not given."`
	Raw     bool   `help:"Print the result's bytes as they are, and check their SHA-256."`
}

// Validate refuses flags that have no meaning together.
func (c *resultsCommand) Validate() error {
	switch {
	case c.Ref == "" && c.Raw:
		return errors.New("--raw needs the ref of a result")
	case c.Ref == "" && c.Offset != nil:
		return errors.New("--offset needs the ref of a result")
	case c.Raw && (c.Offset != nil || c.Limit != nil):
		return errors.New("--raw prints the whole result, without --offset and --limit")
	}
	return nil
}

// Run lists the persisted results, or prints one.
func (c *resultsCommand) Run(ctx context.Context, api *client.Client, settings *config.Client, out io.Writer) error {
	switch {
	case c.Raw && settings.JSON:
		return &usageError{"--raw prints bytes, which are not JSON: choose --raw or --json"}
	case c.Raw:
		return c.raw(ctx, api, out)
	case c.Ref != "":
		return c.lines(ctx, api, settings.JSON, out, os.Stderr)
	}
	limit := math.MaxInt
	if c.Limit != nil {
		limit = *c.Limit
	}
	found, err := api.Results(ctx, c.Session, limit)
	if err != nil {
		return err
	}
	const header = "REF\tMESSAGE\tTOOL\tCATEGORY\tBYTES\tLINES\tTOKENS"
	return writeList(out, settings.JSON, found, header, func(r *protocol.Result) []any {
		return []any{r.Ref, r.Seq, r.Tool, r.Category, r.Bytes, r.Lines, r.Tokens}
	})
}

// lines prints a page of lines with their numbers, and on notes how to continue.
func (c *resultsCommand) lines(ctx context.Context, api *client.Client, asJSON bool, out, notes io.Writer) error {
	page, err := api.Result(ctx, c.Session, c.Ref, c.Offset, c.Limit)
	if err != nil {
		return err
	}
	p := &page.Value
	if c.Offset != nil && int64(*c.Offset) > p.Lines {
		fmt.Fprintf(notes, "the result has %d lines, none from line %d on\n", p.Lines, *c.Offset)
	}
	if p.NextOffset != nil && !asJSON {
		defer fmt.Fprintf(notes, "… %d lines in all; continue with --offset %d\n", p.Lines, *p.NextOffset)
	}
	return writeAnswer(out, asJSON, page, func(out io.Writer, p *protocol.ResultPage) error {
		_, err := io.WriteString(out, p.Content)
		return err
	})
}

// raw copies the result and compares its digest with the one that the API names.
func (c *resultsCommand) raw(ctx context.Context, api *client.Client, out io.Writer) error {
	body, want, err := api.RawResult(ctx, c.Session, c.Ref)
	if err != nil {
		return err
	}
	defer body.Close()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(out, sum), body); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); want != got {
		return fmt.Errorf("result %s: its SHA-256 must be %s, but what came has %s", c.Ref, want, got)
	}
	return nil
}
