package main

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"time"
)

const (
	crossingMessages = 1000
	crossingResult   = 1000 // bytes of a tool result, on the average
	crossingRow      = "crossing append to checkpoint, 1,000 messages"
	pollEvery        = 5 * time.Millisecond
)

// measureCrossings times sessions of 1,000 messages from the append that crosses their trigger to the checkpoint, one
// at a time, with workers that have nothing else to do, as a caller who polls sees it.
func measureCrossings(ctx context.Context, b *bench) error {
	if !b.match.MatchString(crossingRow) {
		return nil
	}
	b.progress("%d sessions of %d messages", b.crossings, crossingMessages)
	c := b.here.newClient()
	messages := newCorpus(1000).conversation(crossingMessages, crossingResult)
	for i := range b.crossings {
		if err := c.bringToTrigger(crossingID(i), messages[:crossingMessages-1]); err != nil {
			return err
		}
	}
	b.progress(crossingRow)
	times := make([]float64, b.crossings)
	for i := range times {
		wait, err := c.cross(ctx, crossingID(i), messages[crossingMessages-1:])
		if err != nil {
			return fmt.Errorf("%s: %w", crossingID(i), err)
		}
		times[i] = 1000 * wait.Seconds()
	}
	b.add(
		row{Name: crossingRow + ", p50", Value: median(times), Unit: "ms"},
		row{Name: crossingRow + ", p99", Value: percentile(times, 0.99), Unit: "ms", Goal: "<= 500"},
	)
	return nil
}

// crossingID returns the id of a session that crosses.
func crossingID(i int) string { return fmt.Sprintf("crossing-%d", i) }

// sessionState is what a crossing needs to know of a session.
type sessionState struct {
	Checkpoint    int     `json:"checkpoint"`
	ContextTokens float64 `json:"context_tokens"`
}

// policyState is what it needs to know of the session's policy.
type policyState struct {
	Effective struct {
		Trigger float64 `json:"trigger"`
	} `json:"effective"`
}

// bringToTrigger makes a session whose next append crosses the trigger.
func (c *client) bringToTrigger(id string, messages [][]byte) error {
	if err := c.createSession(id); err != nil {
		return err
	}
	if err := c.appendAll(id, messages); err != nil {
		return err
	}
	var s sessionState
	if err := c.get(sessionPath(id), &s); err != nil {
		return err
	}
	var p policyState
	if err := c.get(sessionPath(id)+"/policy", &p); err != nil {
		return err
	}
	if p.Effective.Trigger <= 0 {
		return fmt.Errorf("session %s has no trigger", id)
	}
	window := fmt.Appendf(nil, `{"window_tokens": %.0f}`, math.Ceil((s.ContextTokens+1)/p.Effective.Trigger))
	return c.send("PATCH", sessionPath(id), window, http.StatusOK)
}

// crossTimeout is how long one compaction may take.
const crossTimeout = 2 * time.Minute

// cross appends the message that crosses and polls until a compaction has made the view smaller.
func (c *client) cross(ctx context.Context, id string, last [][]byte) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, crossTimeout)
	defer cancel()
	var before, after sessionState
	if err := c.get(sessionPath(id), &before); err != nil {
		return 0, err
	}
	start := time.Now()
	if err := c.appendAll(id, last); err != nil {
		return 0, err
	}
	for ; ctx.Err() == nil; time.Sleep(pollEvery) {
		if err := c.get(sessionPath(id), &after); err != nil {
			return 0, err
		}
		if after.Checkpoint == 0 {
			continue
		}
		if after.ContextTokens >= before.ContextTokens {
			return 0, fmt.Errorf("the compaction left %.0f of %.0f tokens", after.ContextTokens, before.ContextTokens)
		}
		return time.Since(start), nil
	}
	return 0, fmt.Errorf("no compaction: %w", ctx.Err())
}
