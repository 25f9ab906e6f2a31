package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	crossingMessages = 1000
	crossingResult   = 1000 // bytes of a tool result, on the average
	crossingRow      = "crossing append to checkpoint, 1,000 messages"
	pollEvery        = 5 * time.Millisecond
)

// measureCrossings times sessions of 1,000 messages from the append that crosses their trigger to the checkpoint, one
// at a time, with workers that have nothing else to do: by the database's clock, and as a caller who polls sees it.
func measureCrossings(ctx context.Context, b *bench) error {
	if !b.wants(crossingRow) {
		return nil
	}
	b.progress("%d sessions of %d messages", b.crossings, crossingMessages)
	c, messages := b.here.newClient(), newCorpus(1000).conversation(crossingMessages, crossingResult)
	before, last := messages[:len(messages)-1], messages[len(messages)-1:]
	for i := range b.crossings {
		if err := c.bringToTrigger(crossingID(i), before); err != nil {
			return err
		}
	}
	b.progress(crossingRow)
	seen := make([]float64, b.crossings)
	for i := range seen {
		wait, err := c.cross(ctx, crossingID(i), last)
		if err != nil {
			return fmt.Errorf("%s: %w", crossingID(i), err)
		}
		seen[i] = milliseconds(wait)
	}
	runs, err := b.runTimes(ctx)
	if err != nil {
		return err
	}
	b.add(row{Name: crossingRow + ", p50", Value: percentile(runs, 0.5), Unit: "ms"})
	b.add(row{Name: crossingRow + ", p99", Value: percentile(runs, 0.99), Unit: "ms", Goal: atMost(500)})
	b.add(row{Name: crossingRow + ", p50 of a caller who polls", Value: percentile(seen, 0.5), Unit: "ms"})
	b.add(row{Name: crossingRow + ", p99 of a caller who polls", Value: percentile(seen, 0.99), Unit: "ms",
		Goal: atMost(500)})
	return nil
}

func crossingID(i int) string { return fmt.Sprintf("crossing-%d", i) }

// bringToTrigger makes a session whose next append crosses the trigger.
func (c *client) bringToTrigger(id string, messages [][]byte) error {
	if err := c.createSession(id); err != nil {
		return err
	}
	if err := c.appendAll(id, messages); err != nil {
		return err
	}
	var s struct {
		ContextTokens float64 `json:"context_tokens"`
		Policy        struct {
			Trigger float64 `json:"trigger"`
		} `json:"policy"`
	}
	if err := c.get(sessionPath(id), &s); err != nil {
		return err
	}
	if s.Policy.Trigger <= 0 {
		return fmt.Errorf("session %s has no trigger", id)
	}
	window := fmt.Appendf(nil, `{"window_tokens": %.0f}`, math.Ceil((s.ContextTokens+1)/s.Policy.Trigger))
	return c.send("PATCH", sessionPath(id), window, http.StatusOK)
}

// crossTimeout is how long one compaction may take.
const crossTimeout = 2 * time.Minute

// cross appends the message that crosses and polls until the session has a checkpoint.
func (c *client) cross(ctx context.Context, id string, last [][]byte) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, crossTimeout)
	defer cancel()
	start := time.Now()
	if err := c.appendAll(id, last); err != nil {
		return 0, err
	}
	var appended struct{ Compaction string }
	if err := json.Unmarshal(c.body.Bytes(), &appended); err != nil {
		return 0, err
	}
	if appended.Compaction != "queued" {
		return 0, fmt.Errorf("the append that should cross answered compaction %q", appended.Compaction)
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		var s struct{ Checkpoint int }
		if err := c.get(sessionPath(id), &s); err != nil {
			return 0, err
		}
		if s.Checkpoint > 0 {
			return time.Since(start), nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// runTimes returns the times of the crossings' runs; every one must have made its view smaller.
func (b *bench) runTimes(ctx context.Context) ([]float64, error) {
	rows, err := b.here.admin.Query(ctx, `
		SELECT extract(epoch FROM r.finished_at - r.triggered_at)::float8 * 1000
		  FROM runs r
		  JOIN sessions s ON s.tenant_id = r.tenant_id AND s.key = r.session_key
		 WHERE s.id LIKE 'crossing-%' AND r.state = 'done' AND r.tokens_after < r.tokens_before`)
	if err != nil {
		return nil, err
	}
	times, err := pgx.CollectRows(rows, pgx.RowTo[float64])
	if err == nil && len(times) != b.crossings {
		err = fmt.Errorf("%d of %d runs made a smaller view", len(times), b.crossings)
	}
	return times, err
}
