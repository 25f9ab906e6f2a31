package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// use is what the ledger says that a tenant has stored. Reads are not held to anything: a process that is killed loses
// those of its last seconds.
type use struct {
	Messages    int64 `json:"messages"`
	Bytes       int64 `json:"bytes"`
	Tokens      int64 `json:"tokens"`
	Compactions int64 `json:"compactions"`
}

// checkUsage compares the usage ledger of every tenant with a recount. What a killed process did not count, the sweep
// counts in its next round through all sessions.
func (r *rig) checkUsage(ctx context.Context) error {
	asked := map[string]bool{}
	for _, c := range r.conversations {
		if asked[c.key] {
			continue
		}
		asked[c.key] = true
		if err := r.checkUsageOf(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// checkUsageOf waits until the ledger of a session's tenant equals a recount.
func (r *rig) checkUsageOf(ctx context.Context, c *conversation) error {
	for until := time.Now().Add(settles); ; sleep(ctx, 500*time.Millisecond) {
		counted, err := r.recount(ctx, c)
		if err != nil {
			return err
		}
		ledger, err := r.ledger(ctx, c)
		switch {
		case err != nil:
			return err
		case ledger == counted && counted.Messages > 0:
			return nil
		case time.Now().After(until):
			r.found.add("usage", "of the tenant of %s the ledger has %+v, a recount %+v", c.id, ledger, counted)
			return nil
		}
	}
}

// ledger asks for the usage of a session's tenant.
func (r *rig) ledger(ctx context.Context, c *conversation) (sum use, err error) {
	got, err := r.ask(ctx, request{method: "GET", path: "/v1/usage", key: c.key})
	if err != nil {
		return sum, err
	}
	var report struct {
		Total use `json:"total"`
	}
	if err := json.Unmarshal(got.body, &report); err != nil {
		return sum, fmt.Errorf("usage: %w: %s", err, short(got.body))
	}
	return report.Total, nil
}

// recount counts what a session's tenant has: messages and bytes in the logs that the API serves, the rest in the
// tables.
func (r *rig) recount(ctx context.Context, of *conversation) (sum use, err error) {
	var ids []string
	for _, c := range r.conversations {
		if c.key != of.key {
			continue
		}
		ids = append(ids, c.id)
		log, err := r.wholeLog(ctx, c)
		if err != nil {
			return sum, err
		}
		sum.Messages += int64(len(log))
		for _, m := range log {
			sum.Bytes += int64(len(m.Message))
		}
	}
	err = r.database.pool().QueryRow(ctx, `
		SELECT sum(total_tokens)::bigint, sum(checkpoint_n)::bigint
		  FROM sessions
		 WHERE id = ANY ($1)`, ids).Scan(&sum.Tokens, &sum.Compactions)
	return sum, err
}
