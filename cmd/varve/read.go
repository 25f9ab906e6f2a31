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

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/terminal"
)

type contextCommand struct {
	Session   string `arg:"" help:"Session id."`
	MaxTokens *int   `help:"Omit whole oldest units until the view has at most this many tokens."`
	Fit       bool   `help:"Cut what does not fit the session's window."`
	Full      bool   `help:"The whole log instead of the compacted view."`
	AsOfSeq   *int   `help:"The view as it was right after this seq was taken."`
	AsOf      string `help:"The view as it was at this time, like 2026-01-31T12:00:00Z."`
	Pretty    bool   `help:"Text for a person instead of JSON; --json takes precedence."`
}

// Run prints the view as the API sends it, or as text.
func (c *contextCommand) Run(ctx context.Context, to *command.Console) error {
	query := client.Query{"max_tokens": c.MaxTokens}
	if c.Fit {
		query["fit"] = "window"
	}
	if c.Full {
		query["view"] = "full"
	}
	query["as_of_seq"] = c.AsOfSeq
	if c.AsOf != "" {
		query["as_of"] = c.AsOf
	}
	view, err := client.ReadContext.With(ctx, to.API, client.Options{Query: query}, c.Session)
	if err != nil {
		return err
	}
	if !c.Pretty || to.JSON {
		return to.PrintRaw(view.Raw)
	}
	return terminal.View(to.Out, &view.Value)
}

type resultsCommand struct {
	Session string `arg:"" help:"Session id."`
	Ref     string `arg:"" optional:"" help:"A result's ref, like r17.0-9f3a; lists all results if not given."`
	Offset  *int   `help:"First line to print, counted from 1; the first of the result if not given."`
	Char    *int   `name:"char-offset" help:"How many characters of the first line to leave out."`
	Limit   *int   `help:"How many lines to print, at most 2000 (200), or how many results to list (all)."`
	Raw     bool   `help:"Print the result's bytes as they are, and check their SHA-256."`
}

// Validate returns an error for flags that have no meaning together.
func (c *resultsCommand) Validate() error {
	switch {
	case c.Ref == "" && c.Raw:
		return errors.New("--raw needs the ref of a result")
	case c.Ref == "" && (c.Offset != nil || c.Char != nil):
		return errors.New("--offset and --char-offset need the ref of a result")
	case c.Raw && (c.Offset != nil || c.Limit != nil || c.Char != nil):
		return errors.New("--raw prints the whole result, without --offset, --char-offset and --limit")
	}
	return nil
}

// Run lists the persisted results, or prints one.
func (c *resultsCommand) Run(ctx context.Context, to *command.Console) error {
	switch {
	case c.Raw && to.JSON:
		return command.Usage("--raw prints bytes, which are not JSON: choose --raw or --json")
	case c.Raw:
		return c.raw(ctx, to)
	case c.Ref != "":
		return c.lines(ctx, to, os.Stderr)
	}
	limit := math.MaxInt
	if c.Limit != nil {
		limit = *c.Limit
	}
	return showList(ctx, to, "results", client.ListResults, limit, c.Session)
}

// lines prints a page of lines with their numbers, and on notes how to continue.
func (c *resultsCommand) lines(ctx context.Context, to *command.Console, notes io.Writer) error {
	query := client.Query{"offset": c.Offset, "char_offset": c.Char, "limit": c.Limit}
	page, err := client.GetResult.With(ctx, to.API, client.Options{Query: query}, c.Session, c.Ref)
	if err != nil {
		return err
	}
	p := &page.Value
	if c.Offset != nil && int64(*c.Offset) > p.Lines {
		fmt.Fprintf(notes, "the result has %d lines, none from line %d on\n", p.Lines, *c.Offset)
	}
	if to.JSON {
		return to.PrintRaw(page.Raw)
	}
	_, err = io.WriteString(to.Out, p.Content)
	if p.NextOffset != nil {
		more := ""
		if p.NextCharOffset > 0 {
			more = fmt.Sprintf(" --char-offset %d", p.NextCharOffset)
		}
		fmt.Fprintf(notes, "… %d lines in all; continue with --offset %d%s\n", p.Lines, *p.NextOffset, more)
	}
	return err
}

// raw copies the result and compares its digest with the one that the API names.
func (c *resultsCommand) raw(ctx context.Context, to *command.Console) error {
	body, want, err := to.API.RawResult(ctx, c.Session, c.Ref)
	if err != nil {
		return err
	}
	defer body.Close()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(to.Out, sum), body); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); want != got {
		return fmt.Errorf("result %s: its SHA-256 must be %s, but what came has %s", c.Ref, want, got)
	}
	return nil
}
