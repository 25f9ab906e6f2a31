package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/varve-dev/varve/internal/llm/fake"
)

// check checks everything that is stored and that the provider was asked.
func (r *rig) check(ctx context.Context) error {
	r.checkProvider()
	r.checkOthers(ctx)
	if longest := r.found.longest; longest > r.options.idle {
		r.found.add("transaction", "idle for %v after %s", longest, r.found.after)
	}
	return errors.Join(r.checkSessions(ctx), r.checkRuns(ctx), r.checkWaits(ctx), r.checkGrowths(ctx),
		r.checkBudgets(ctx),
		r.checkSummaries(ctx), r.checkBreakers())
}

// checkSessions reads every log and every view.
func (r *rig) checkSessions(ctx context.Context) error {
	for _, c := range r.conversations {
		if err := r.readView(ctx, c); err != nil {
			return err
		}
		stored, err := r.wholeLog(ctx, c)
		if err != nil {
			return err
		}
		if len(stored) != len(c.written) {
			r.found.add("lost", "%s has %d messages; %d were acknowledged", c.id, len(stored), len(c.written))
			continue
		}
		r.found.messages += len(stored)
		for i := range stored {
			if !bytes.Equal(stored[i], c.written[i]) {
				r.found.add("lost", "message %d of %s is not what was appended: %s", i+1, c.id, short(stored[i]))
				break
			}
		}
	}
	return nil
}

// wholeLog returns the messages of a session's log.
func (r *rig) wholeLog(ctx context.Context, c *conversation) (log []json.RawMessage, err error) {
	for next := int64(1); ; {
		path := fmt.Sprintf("/v1/sessions/%s/messages?limit=1000&from_seq=%d", c.id, next)
		got, err := r.must(ctx, c.tenant, "GET", path, nil, http.StatusOK)
		if err != nil {
			return nil, err
		}
		var page struct {
			Data []struct {
				Message json.RawMessage `json:"message"`
			} `json:"data"`
			Next *int64 `json:"next_seq"`
		}
		if err := json.Unmarshal(got.body, &page); err != nil {
			return nil, err
		}
		for _, m := range page.Data {
			log = append(log, m.Message)
		}
		if page.Next == nil {
			return log, nil
		}
		next = *page.Next
	}
}

// checkRuns looks for compactions that made a view larger. One that takes in a summary may: then the view must still
// be below what would compact it.
func (r *rig) checkRuns(ctx context.Context) error {
	rows, err := r.pool.Query(ctx, `
		SELECT session_key::text, cause, tokens_before, tokens_after
		  FROM runs
		 WHERE state = 'done' AND checkpoint_n IS NOT NULL AND tokens_after > tokens_before
		   AND NOT (cause = 'summary' AND tokens_after < $1)`, int64(window*trigger))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var key, cause string
		var before, after int64
		if err := rows.Scan(&key, &cause, &before, &after); err != nil {
			return err
		}
		r.found.add("grown", "a run of cause %s of session %s: %d tokens before, %d after", cause, key, before, after)
	}
	return rows.Err()
}

// checkWaits looks for compactions that took as long to plan as an answer of the slow model takes.
func (r *rig) checkWaits(ctx context.Context) error {
	var n int
	err := r.pool.QueryRow(ctx, `
		SELECT count(*)
		  FROM runs
		 WHERE (timings ->> 'planned')::float8 >= $1`, float64(r.options.slow.Milliseconds())).Scan(&n)
	if n > 0 {
		r.found.add("starved", "%d compactions have waited for a model", n)
	}
	return err
}

// checkGrowths judges the pairs of views of which the later one was larger: only a summary that came may make it so.
func (r *rig) checkGrowths(ctx context.Context) error {
	for _, g := range r.found.growths {
		var others int
		err := r.pool.QueryRow(ctx, `
			SELECT count(*) FILTER (WHERE r.cause <> 'summary')
			  FROM checkpoints c
			  JOIN sessions s ON s.tenant_id = c.tenant_id AND s.key = c.session_key
			  JOIN runs r ON r.tenant_id = c.tenant_id AND r.id = c.run_id
			 WHERE c.tenant_id = $1 AND s.id = $2 AND c.n > $3 AND c.n <= $4`,
			g.of.tenant.id, g.of.id, g.before.checkpoint, g.after.checkpoint).Scan(&others)
		if err != nil {
			return err
		}
		if others > 0 || float64(g.after.bytes) > 4*window*trigger {
			r.found.add("grown", "view of %s to %d: %d bytes with checkpoint %d, %d with %d", g.of.id, g.lastSeq,
				g.before.bytes, g.before.checkpoint, g.after.bytes, g.after.checkpoint)
		}
	}
	return nil
}

// checkProvider counts what the provider was asked and paid for.
func (r *rig) checkProvider() {
	r.found.inputs = len(r.provider.Inputs())
	r.checkPaid(r.provider.Calls())
	for _, c := range r.provider.Calls() {
		if c.Refused != "" {
			r.found.add("request", "the provider refuses %s of %s: %s", c.Request.Protocol, c.Request.Model, c.Refused)
		}
		r.found.met[c.Fault]++
	}
}

// checkPaid looks for inputs that were paid more than once, although no worker was killed that could have lost an
// answer.
func (r *rig) checkPaid(calls []fake.CallRecord) {
	paid, kept := map[string]int{}, map[string]int{}
	for i := range calls {
		c := &calls[i]
		if !c.Paid {
			continue
		}
		paid[c.Input]++
		if !r.found.killedDuring(c) {
			kept[c.Input]++
		}
	}
	again := 0
	for input, n := range paid {
		r.found.paid++
		r.found.twice += n - 1
		again += max(0, kept[input]-1)
	}
	if again > 0 {
		r.found.add("paid twice", "%d times, although no worker was killed meanwhile", again)
	}
}

// checkBudgets compares what the ledger says with what tenants may spend, and with what the provider has counted.
func (r *rig) checkBudgets(ctx context.Context) error {
	for _, t := range r.tenants {
		l := ledger{tenant: t.name, allowed: dayCalls}
		if t.calls > 0 {
			l.allowed = t.calls
		}
		err := r.pool.QueryRow(ctx, `
			SELECT coalesce(sum(calls), 0), coalesce(sum(input_tokens + output_tokens), 0),
			       coalesce(sum(cost_micros), 0) / 1e6::float8
			  FROM model_spending
			 WHERE tenant_id = $1 AND model = ''`, t.id).Scan(&l.calls, &l.tokens, &l.cost)
		if err != nil {
			return err
		}
		for _, c := range r.provider.Calls() {
			if c.Request.Model != t.name || c.Status != http.StatusOK {
				continue
			}
			l.answered++
			if c.Paid && c.Fault == "" {
				l.counted += int64(c.Usage.Input + c.Usage.Output)
			}
		}
		r.found.ledgers = append(r.found.ledgers, l)
		if l.calls > l.allowed || l.answered > l.allowed || l.tokens > dayTokens || l.cost > dayCost {
			r.found.add("budget", "%s has %d calls (%d of them answered) of %d, %d tokens of %d, and has spent %g "+
				"of %g", t.name, l.calls, l.answered, l.allowed, l.tokens, dayTokens, l.cost, dayCost)
		}
		if l.tokens < l.counted || l.calls < l.answered {
			r.found.add("budget", "the ledger of %s has %d calls and %d tokens; the provider has answered %d and "+
				"counted %d", t.name, l.calls, l.tokens, l.answered, l.counted)
		}
	}
	return nil
}

// checkSummaries counts summaries by state, and looks for failures without a reason.
func (r *rig) checkSummaries(ctx context.Context) error {
	rows, err := r.pool.Query(ctx, `
		SELECT state, count(*), count(*) FILTER (WHERE coalesce(reason, '') = '')
		  FROM summaries
		 GROUP BY state`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var state string
		var n, silent int
		if err := rows.Scan(&state, &n, &silent); err != nil {
			return err
		}
		r.found.summaries[state] = n
		if state == "failed" && silent > 0 {
			r.found.add("due", "%d summaries have failed and do not say why", silent)
		}
	}
	if rows.Err() == nil && r.found.summaries["answered"] == 0 {
		r.found.add("nothing checked", "no model has written a summary")
	}
	return rows.Err()
}

// checkOthers looks for appends, views and checkpoints of other tenants while the slow model was at one answer.
func (r *rig) checkOthers(ctx context.Context) {
	for _, c := range r.slowCalls(r.loaded) {
		r.found.slowCalls++
		appends := r.found.between(c.Began, c.Ended, appended)
		views := r.found.between(c.Began, c.Ended, viewed)
		trims := 0
		err := r.pool.QueryRow(ctx, `
			SELECT count(*)
			  FROM checkpoints c
			  JOIN tenants t ON t.id = c.tenant_id
			 WHERE t.name <> $1 AND c.created_at BETWEEN $2 AND $3`, slow, c.Began, c.Ended).Scan(&trims)
		if err != nil || appends == 0 || views == 0 || trims == 0 {
			r.found.add("starved", "while the slow model worked for %v, the others had %d appends, %d views and %d "+
				"compactions (%v)", c.Ended.Sub(c.Began).Round(time.Millisecond), appends, views, trims, err)
		}
		r.found.meanwhile[appended] += appends
		r.found.meanwhile[viewed] += views
		r.found.meanwhile[compacted] += trims
	}
}

// checkBreakers notes whether breakers have opened and closed.
func (r *rig) checkBreakers() (err error) {
	r.found.opened, r.found.closed, err = r.breakers()
	if r.found.opened == 0 || r.found.closed == 0 {
		r.found.add("breaker", "breakers have opened %d times and closed %d times", r.found.opened, r.found.closed)
	}
	return err
}

// breakers returns how often the workers' breakers have opened and closed, as their logs say: a worker that is killed
// takes its metrics with it.
func (r *rig) breakers() (opened, closed int, err error) {
	for i := range r.workers {
		log, err := os.ReadFile(filepath.Join(r.options.dir, "logs", fmt.Sprintf("worker-%d.log", i)))
		if err != nil {
			return opened, closed, err
		}
		for line := range strings.Lines(string(log)) {
			if !strings.Contains(line, `msg="the breaker of a model"`) {
				continue
			}
			if strings.Contains(line, "state=open") {
				opened++
			}
			if strings.Contains(line, "state=closed") {
				closed++
			}
		}
	}
	return opened, closed, nil
}

// slowCalls returns the whole answers of the slow model before a time.
func (r *rig) slowCalls(before time.Time) (calls []fake.CallRecord) {
	for _, c := range r.provider.Calls() {
		if c.Request.Model == slow && c.Ended.Sub(c.Began) >= r.options.slow && c.Ended.Before(before) {
			calls = append(calls, c)
		}
	}
	return calls
}
