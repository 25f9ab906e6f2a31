package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/varve-dev/varve/internal/llm/fake"
)

// conversation is a session, and all that was appended to it. One writer appends to it, one request after the other.
type conversation struct {
	tenant     *tenant
	id, format string

	written []json.RawMessage // what was acknowledged, in order
	weights map[int64]weight  // of the views of before, by their last seq
	seen    int               // the newest checkpoint
}

// weight is how large a view was.
type weight struct {
	checkpoint int
	bytes      int
}

// grow appends to all sessions, reads their views, and kills workers, until there were enough compactions.
func (r *rig) grow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.options.lasts)
	defer cancel()
	failed := make(chan error, len(r.conversations))
	var all, watching sync.WaitGroup
	for i, c := range r.conversations {
		all.Go(func() { failed <- r.write(ctx, c, i) })
	}
	watching.Go(func() { r.kill(ctx) })
	watching.Go(func() { r.watchTransactions(ctx) })
	missing := r.missing(ctx)
	for n := 1; missing != "" && ctx.Err() == nil && len(failed) == 0; n++ {
		sleep(ctx, 200*time.Millisecond)
		if missing = r.missing(ctx); missing != "" && n%50 == 0 {
			r.progress.Tell("%s", missing)
		}
	}
	if missing != "" && ctx.Err() != nil {
		r.found.add("late", "%s after %v", missing, r.options.lasts)
	}
	r.loaded = time.Now()
	cancel()
	all.Wait()
	watching.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// missing returns what there was not enough of, to have checked something; "" for nothing.
func (r *rig) missing(ctx context.Context) string {
	const sql = `
		SELECT (SELECT count(*) FROM checkpoints),
		       (SELECT coalesce(sum(calls), 0)
		          FROM model_spending s
		          JOIN tenants t ON t.id = s.tenant_id
		         WHERE t.name = $1 AND s.model = '')`
	var checkpoints, calls int
	if err := r.pool.QueryRow(ctx, sql, poor).Scan(&checkpoints, &calls); err != nil {
		return err.Error()
	}
	opened, closed, err := r.breakers()
	switch {
	case err != nil:
		return err.Error()
	case checkpoints < r.options.compactions:
		return fmt.Sprintf("only %d compactions", checkpoints)
	case calls < poorCalls:
		return fmt.Sprintf("only %d calls of the tenant that may make %d", calls, poorCalls)
	case opened == 0 || closed == 0:
		return fmt.Sprintf("breakers have opened %d times and closed %d times", opened, closed)
	case r.others.Load() <= 2*int64(len(fake.Faults())):
		return "not every fault was met"
	case len(r.slowCalls(time.Now())) == 0:
		return "no answer of the slow model"
	case r.options.kills > 0 && r.found.deaths() == 0:
		return "no worker was killed"
	}
	return ""
}

// write appends turns to a session until ctx ends, and reads its view after each.
func (r *rig) write(ctx context.Context, c *conversation, writer int) error {
	random := rand.New(rand.NewPCG(r.options.seed, uint64(writer)))
	for n := 0; ctx.Err() == nil; n++ {
		id := fmt.Sprintf("%s-%d", c.id, n)
		messages := turn(c.format, id, random)
		got, err := r.insist(context.WithoutCancel(ctx), request{
			method: "POST", path: "/v1/sessions/" + c.id + "/messages", key: c.tenant.key, idempotency: id,
			body: object{"messages": messages},
		})
		if err != nil || got.status != http.StatusCreated {
			return fmt.Errorf("append %s: %d %s %w", id, got.status, short(got.body), err)
		}
		c.written = append(c.written, messages...)
		r.found.happened(c.tenant.name, appended)
		for range 2 {
			if err := r.readView(context.WithoutCancel(ctx), c); err != nil {
				return err
			}
			sleep(ctx, time.Duration(20+random.IntN(80))*time.Millisecond)
		}
		if n%previews == 0 && c.tenant.name != slow {
			r.preview(context.WithoutCancel(ctx), c) // a caller that is gone loses what it has paid for
		}
	}
	return nil
}

// previews is after how many appends of a session there is a preview.
const previews = 8

// preview has a session's compaction shown with the answers of models: what it pays for, the compaction must not pay
// for again. It may fail, as the models do.
func (r *rig) preview(ctx context.Context, c *conversation) {
	path := "/v1/sessions/" + c.id + "/preview"
	got, err := r.do(ctx, request{method: "POST", path: path, key: c.tenant.key, body: object{"ask": true}})
	if err == nil && got.status == http.StatusOK {
		r.found.preview()
	}
}

// servedView is what the API answers.
type servedView struct {
	Checkpoint int               `json:"checkpoint"`
	LastSeq    int64             `json:"last_seq"`
	Messages   []json.RawMessage `json:"messages"`
}

// readView reads a session's view and checks it.
func (r *rig) readView(ctx context.Context, c *conversation) error {
	got, err := r.insist(ctx, request{method: "GET", path: "/v1/sessions/" + c.id + "/context", key: c.tenant.key})
	if err != nil {
		return err
	}
	var v servedView
	if err := json.Unmarshal(got.body, &v); err != nil || got.status != http.StatusOK {
		return fmt.Errorf("view of %s: %d %s (%w)", c.id, got.status, short(got.body), err)
	}
	r.found.happened(c.tenant.name, viewed)
	if said := refused(c.format, v.Messages); said != "" {
		r.found.add("invalid", "view of %s, checkpoint %d, last seq %d: %s", c.id, v.Checkpoint, v.LastSeq, said)
	}
	if v.LastSeq != int64(len(c.written)) {
		r.found.add("stale", "view of %s ends at %d of %d", c.id, v.LastSeq, len(c.written))
	}
	if v.Checkpoint < c.seen {
		r.found.add("stale", "view of %s has checkpoint %d after %d", c.id, v.Checkpoint, c.seen)
	}
	c.seen = v.Checkpoint
	r.compareWeight(c, v)
	return nil
}

// compareWeight notes how large a view is, and two of the same messages of which the later one is larger.
func (r *rig) compareWeight(c *conversation, v servedView) {
	now := weight{checkpoint: v.Checkpoint}
	for _, m := range v.Messages {
		now.bytes += len(m)
	}
	before, ok := c.weights[v.LastSeq]
	if ok && now.checkpoint > before.checkpoint && now.bytes > before.bytes+before.bytes/40+slack {
		r.found.larger(growth{c, v.LastSeq, before, now})
	}
	c.weights[v.LastSeq] = now
}

// slack is how many bytes more may be no more tokens, beside a fortieth of the view: checkRuns compares tokens.
const slack = 200

// refused returns why a provider refuses the messages of a view as those of an agent that continues; "" if it does not.
func refused(format string, messages []json.RawMessage) string {
	list := make([]string, len(messages), len(messages)+1)
	for i, m := range messages {
		list[i] = string(m)
	}
	body := strings.Join(append(list, `{"role":"user","content":"Go on."}`), ",")
	if format == anthropic {
		return fake.Refuses(fake.Messages, []byte(`{"model":"m","max_tokens":100,"tools":[{"name":"Read",`+
			`"input_schema":{"type":"object"}}],"messages":[`+body+`]}`))
	}
	return fake.Refuses(fake.Chat, []byte(`{"model":"m","messages":[`+body+`]}`))
}

// kill kills a worker now and then: when it asks a model, or at any time. It is the first one as a rule, so that the
// other has the time for an answer of the slow model.
func (r *rig) kill(ctx context.Context) {
	random := rand.New(rand.NewPCG(r.options.seed, 1<<40))
	for r.options.kills > 0 {
		sleep(ctx, r.options.kills/2+rand.N(r.options.kills))
		for until := time.Now().Add(time.Second); random.IntN(2) == 0 && time.Now().Before(until); {
			if now, _ := r.provider.Running(); now > 0 {
				break
			}
			sleep(ctx, 5*time.Millisecond)
		}
		if ctx.Err() != nil {
			return
		}
		const rarely = 8
		victim := 0
		if random.IntN(rarely) == 0 {
			victim = 1
		}
		if r.workers[victim].Signal(syscall.SIGKILL) {
			r.found.killed()
		}
	}
}
