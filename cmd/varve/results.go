package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"text/tabwriter"
)

type resultsCommand struct {
	Session string `arg:"" help:"Session id."`
	Ref     string `arg:"" optional:"" help:"A result's ref, like r17.0-9f3a; lists all results if not given."`
	Offset  *int   `help:"First line to print, counted from 1, which is what is taken if not given."`
	Limit   *int   `help:"How many lines to print, 200 if not given and 2000 at most. Without a ref, how many results to list; all if not given."`
	Raw     bool   `help:"Print the result's bytes as they are, and check their SHA-256."`
}

// Validate refuses what would say nothing.
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
func (c *resultsCommand) Run(ctx context.Context, g *Globals) error {
	client, err := g.Client()
	switch {
	case err != nil:
		return err
	case c.Ref == "" && g.JSON:
		return listJSON(ctx, client, os.Stdout, c.most(), "sessions", c.Session, "results")
	case c.Ref == "":
		return c.list(ctx, client, os.Stdout)
	case c.Raw:
		return c.raw(ctx, client, os.Stdout)
	}
	return c.lines(ctx, client, os.Stdout, os.Stderr)
}

// listJSON prints a list's entries as one JSON array, each as the API sent it.
func listJSON(ctx context.Context, client *Client, out io.Writer, limit int, path ...string) error {
	all, err := list[json.RawMessage](ctx, client, limit, path...)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(all)
}

// most is how many results to list.
func (c *resultsCommand) most() int {
	if c.Limit == nil {
		return math.MaxInt
	}
	return *c.Limit
}

func (c *resultsCommand) list(ctx context.Context, client *Client, out io.Writer) error {
	results, err := list[struct {
		Ref      string `json:"ref"`
		Seq      int64  `json:"seq"`
		Tool     string `json:"tool"`
		Category string `json:"category"`
		Bytes    int64  `json:"bytes"`
		Lines    int    `json:"lines"`
		Tokens   int64  `json:"tokens"`
	}](ctx, client, c.most(), "sessions", c.Session, "results")
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "REF\tMESSAGE\tTOOL\tCATEGORY\tBYTES\tLINES\tTOKENS")
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%d\t%d\t%d\n", r.Ref, r.Seq, printable(r.Tool), r.Category, r.Bytes, r.Lines, r.Tokens)
	}
	return table.Flush()
}

// lines prints a page of lines with their numbers, and on notes how to go on.
func (c *resultsCommand) lines(ctx context.Context, client *Client, out, notes io.Writer) error {
	var p struct {
		Content    string `json:"content"`
		Lines      int    `json:"lines"`
		NextOffset *int   `json:"next_offset"`
	}
	query := url.Values{}
	for name, flag := range map[string]*int{"offset": c.Offset, "limit": c.Limit} {
		if flag != nil {
			query.Set(name, strconv.Itoa(*flag))
		}
	}
	raw, err := client.decode(ctx, call{method: http.MethodGet, path: c.path(), query: query}, &p)
	if err != nil {
		return err
	}
	if client.json {
		_, err := out.Write(append(raw, '\n'))
		return err
	}
	if _, err := io.WriteString(out, p.Content); err != nil {
		return err
	}
	if p.NextOffset != nil {
		fmt.Fprintf(notes, "… %d lines in all; --offset %d goes on\n", p.Lines, *p.NextOffset)
	}
	return nil
}

// raw copies the result and compares its digest with the one that the API names.
func (c *resultsCommand) raw(ctx context.Context, client *Client, out io.Writer) error {
	k := call{method: http.MethodGet, path: c.path(), query: url.Values{"raw": {"true"}}, ok: []int{http.StatusOK}}
	res, err := client.do(ctx, k)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(out, sum), res.Body); err != nil {
		return unreachable(ctx, client.base, err)
	}
	if want, got := res.Header.Get("X-Content-Sha256"), hex.EncodeToString(sum.Sum(nil)); want != got {
		return fmt.Errorf("result %s: its SHA-256 should be %s, but what came has %s", c.Ref, want, got)
	}
	return nil
}

func (c *resultsCommand) path() []string { return []string{"sessions", c.Session, "results", c.Ref} }
