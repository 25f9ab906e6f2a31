package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"text/tabwriter"
)

type checkpointsCommand struct {
	Session  string `arg:"" help:"Session id."`
	Number   *int   `arg:"" optional:"" help:"A checkpoint's number; lists all checkpoints if not given."`
	Manifest string `enum:"own,all" default:"own" help:"What left the view: by this checkpoint alone (own), or until then (all)."`
	Diff     *int   `help:"Show what differs in the view of this other checkpoint."`
	View     bool   `help:"Print the view as it was when the checkpoint was made, as JSON."`
	Restore  bool   `help:"Roll the session back to the checkpoint; all messages after it are in the view again."`
	Limit    int    `default:"20" help:"How many checkpoints to list, newest first."`
}

// Validate refuses what would say nothing.
func (c *checkpointsCommand) Validate() error {
	asked := 0
	for _, flag := range []bool{c.Diff != nil, c.View, c.Restore} {
		if flag {
			asked++
		}
	}
	switch {
	case c.Number == nil && asked > 0:
		return errors.New("--diff, --view and --restore need the number of a checkpoint")
	case asked > 1:
		return errors.New("one of --diff, --view and --restore is possible at a time")
	}
	return nil
}

// Run lists the session's checkpoints, shows one, compares two, or restores one.
func (c *checkpointsCommand) Run(ctx context.Context, g *Globals) error {
	client, err := g.Client()
	switch {
	case err != nil:
		return err
	case c.Number == nil && g.JSON:
		return listJSON(ctx, client, os.Stdout, c.Limit, "sessions", c.Session, "checkpoints")
	case c.Number == nil:
		return c.list(ctx, client, os.Stdout)
	}
	return c.one(ctx, client, os.Stdout)
}

// checkpointRecord is a checkpoint as the API tells of it.
type checkpointRecord struct {
	N             int64  `json:"n"`
	Base          int64  `json:"base"`
	RestoredFrom  *int64 `json:"restored_from"`
	ThroughSeq    int64  `json:"through_seq"`
	Tokens        int64  `json:"tokens"`
	HasBody       bool   `json:"has_body"`
	EngineVersion int    `json:"engine_version"`
	PolicyDigest  string `json:"policy_digest"`
	CreatedAt     string `json:"created_at"`
}

func (c *checkpointsCommand) list(ctx context.Context, client *Client, out io.Writer) error {
	found, err := list[checkpointRecord](ctx, client, c.Limit, "sessions", c.Session, "checkpoints")
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CHECKPOINT\tCREATED\tBASE\tRESTORED\tTHROUGH\tTOKENS\tBODY\tENGINE\tPOLICY")
	for _, r := range found {
		body := "kept"
		if !r.HasBody {
			body = "pruned"
		}
		fmt.Fprintf(table, "%d\t%s\t%d\t%s\t%d\t%d\t%s\t%d\t%.8s\n", r.N, toSecond(r.CreatedAt), r.Base, number(r.RestoredFrom), r.ThroughSeq, r.Tokens, body,
			r.EngineVersion, r.PolicyDigest)
	}
	return table.Flush()
}

// shown is an answer about one checkpoint as a person reads it.
type shown interface{ write(out io.Writer) error }

// one makes the request that the flags ask for, and prints its answer.
func (c *checkpointsCommand) one(ctx context.Context, client *Client, out io.Writer) error {
	k := call{method: http.MethodGet, path: []string{"sessions", c.Session, "checkpoints", strconv.Itoa(*c.Number)}}
	var answer shown
	switch {
	case c.View:
		k.path = append(k.path, "context")
	case c.Diff != nil:
		k.path, k.query, answer = append(k.path, "diff"), url.Values{"to": {strconv.Itoa(*c.Diff)}}, &checkpointDiff{}
	case c.Restore:
		k.method, k.path, k.ok, answer = http.MethodPost, append(k.path, "restore"), []int{http.StatusCreated}, &restoredCheckpoint{}
	default:
		k.query, answer = url.Values{"manifest": {c.Manifest}}, &shownCheckpoint{}
	}
	raw, err := client.decode(ctx, k, nil)
	if err != nil {
		return err
	}
	if client.json || c.View {
		_, err = out.Write(append(raw, '\n'))
		return err
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return fmt.Errorf("checkpoint %d: the answer is not what this varve understands: %w", *c.Number, err)
	}
	return answer.write(out)
}

// restoredCheckpoint is the answer to --restore.
type restoredCheckpoint struct{ checkpointRecord }

func (r *restoredCheckpoint) write(out io.Writer) error {
	_, err := fmt.Fprintf(out, "checkpoint %s is restored as checkpoint %d: compacted through message %d, all messages after it as they came\n",
		number(r.RestoredFrom), r.N, r.ThroughSeq)
	return err
}

// shownCheckpoint is one checkpoint and its manifest.
type shownCheckpoint struct {
	checkpointRecord
	Run      string `json:"run"`
	Manifest struct {
		Of           string `json:"of"`
		TokensBefore int64  `json:"tokens_before"`
		TokensAfter  int64  `json:"tokens_after"`
		TokensSaved  int64  `json:"tokens_saved"`
		Stages       []struct {
			Stage       string `json:"stage"`
			Entries     int    `json:"entries"`
			TokensSaved int64  `json:"tokens_saved"`
		} `json:"stages"`
		Entries []struct {
			lostPart
			Do           string `json:"do"`
			Stage        string `json:"stage"`
			Reason       string `json:"reason"`
			TokensBefore int64  `json:"tokens_before"`
			TokensAfter  int64  `json:"tokens_after"`
		} `json:"entries"`
	} `json:"manifest"`
}

// lostPart is where in the log something was, and by which ref it is had back.
type lostPart struct {
	Seq     int64  `json:"seq"`
	LastSeq int64  `json:"last_seq"`
	Part    int    `json:"part"`
	Tool    string `json:"tool"`
	Ref     string `json:"ref"`
}

// place is the part's message and number, or the messages' range.
func (p lostPart) place() string {
	switch {
	case p.LastSeq > p.Seq:
		return fmt.Sprintf("%d-%d", p.Seq, p.LastSeq)
	case p.Part < 0:
		return strconv.FormatInt(p.Seq, 10)
	}
	return fmt.Sprintf("%d.%d", p.Seq, p.Part)
}

func (p lostPart) columns() string {
	return p.place() + "\t" + cmp.Or(printable(p.Tool), "-") + "\t" + cmp.Or(p.Ref, "-")
}

func (s *shownCheckpoint) write(out io.Writer) error {
	m := &s.Manifest
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "checkpoint\t%d through message %d, made %s by run %s\nbase\t%d\nrestored from\t%s\ntokens\t%d → %d (%d saved, %s)\n",
		s.N, s.ThroughSeq, toSecond(s.CreatedAt), s.Run, s.Base, number(s.RestoredFrom), m.TokensBefore, m.TokensAfter, m.TokensSaved, m.Of)
	for _, stage := range m.Stages {
		fmt.Fprintf(table, "%s\t%d entries, %d tokens saved\n", stage.Stage, stage.Entries, stage.TokensSaved)
	}
	if err := table.Flush(); err != nil || len(m.Entries) == 0 {
		return err
	}
	fmt.Fprintln(out)
	table = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PART\tTOOL\tREF\tACTION\tBEFORE\tAFTER\tREASON")
	for _, e := range m.Entries {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\n", e.columns(), e.Do, e.TokensBefore, e.TokensAfter, printable(e.Reason))
	}
	return table.Flush()
}

// checkpointDiff is what differs between the views of two checkpoints.
type checkpointDiff struct {
	From          checkpointRecord `json:"from"`
	To            checkpointRecord `json:"to"`
	TokensCovered int64            `json:"tokens_covered"`
	TokensChanged int64            `json:"tokens_changed"`
	Changes       []struct {
		lostPart
		Change string     `json:"change"`
		From   shownState `json:"from"`
		To     shownState `json:"to"`
	} `json:"changes"`
}

type shownState struct {
	Do     string `json:"do"`
	Tokens int64  `json:"tokens"`
}

func (d *checkpointDiff) write(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, side := range []checkpointRecord{d.From, d.To} {
		fmt.Fprintf(table, "checkpoint %d\tthrough message %d\t%d tokens\n", side.N, side.ThroughSeq, side.Tokens)
	}
	fmt.Fprintf(table, "messages between\t\t%+d tokens\n%d changes\t\t%+d tokens\n", d.TokensCovered, len(d.Changes), d.TokensChanged)
	if err := table.Flush(); err != nil || len(d.Changes) == 0 {
		return err
	}
	fmt.Fprintln(out)
	table = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PART\tTOOL\tREF\tCHANGE\tFROM\tTO\tTOKENS")
	for _, c := range d.Changes {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d → %d\n", c.columns(), c.Change, c.From.Do, c.To.Do, c.From.Tokens, c.To.Tokens)
	}
	return table.Flush()
}
