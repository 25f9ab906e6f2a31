package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// load is what clients do while faults come.
type load struct {
	cancel context.CancelFunc
	all    sync.WaitGroup
}

// writingStops is how long writers go on to ask about appends whose outcome they do not know.
const writingStops = 30 * time.Second

func (r *rig) startLoad(ctx context.Context) (*load, error) {
	ctx, cancel := context.WithCancel(ctx)
	l := &load{cancel: cancel}
	for i := range r.options.writers {
		l.all.Go(func() { r.write(ctx, i) })
	}
	for i := range max(2, r.options.writers/3) {
		l.all.Go(func() { r.read(ctx, i) })
	}
	l.all.Go(func() { r.meddle(ctx) })
	if r.everything == nil {
		return l, nil
	}
	return l, r.startUsers(ctx, &l.all)
}

func (l *load) stop() {
	l.cancel()
	l.all.Wait()
}

// How an append is made safe to repeat.
const (
	byKey      = iota // an Idempotency-Key
	byIDs             // client_ids
	byBoth            // both
	byExpected        // an Idempotency-Key and expected_seq
	ways
)

// write appends turns until ctx ends. Several writers share each session.
func (r *rig) write(ctx context.Context, writer int) {
	random := rand.New(rand.NewPCG(r.options.seed, uint64(writer)))
	for n := int64(0); ctx.Err() == nil; n++ {
		c := r.conversations[random.IntN(r.busy)]
		id := fmt.Sprintf("w%d-%d", writer, n)
		a := &attempt{id: id, writer: writer, began: n, messages: turn(c.format, id, random)}
		c.add(a)
		r.append(ctx, c, a, random)
		sleep(ctx, time.Duration(random.IntN(60))*time.Millisecond)
	}
}

// append sends an append until its outcome is known. One in ten without an answer is given up.
func (r *rig) append(ctx context.Context, c *conversation, a *attempt, random *rand.Rand) {
	req := r.appendOf(c, a, random.IntN(ways))
	giveUp := random.IntN(10) == 0
	var stop time.Time
	for try := 0; ; try++ {
		if ctx.Err() != nil && stop.IsZero() {
			stop = time.Now().Add(writingStops)
		}
		if !stop.IsZero() && time.Now().After(stop) {
			return
		}
		got, err := r.client.do(context.WithoutCancel(ctx), req)
		if r.conclude(c, a, got, err) {
			return
		}
		r.found.unknowns.Add(1)
		if giveUp && try > 0 {
			return
		}
		time.Sleep(time.Duration(50+random.IntN(100*min(try+1, 5))) * time.Millisecond)
	}
}

func (r *rig) appendOf(c *conversation, a *attempt, way int) request {
	body := object{"messages": a.messages}
	header := map[string]string{}
	if way != byIDs {
		header["Idempotency-Key"] = a.id
	}
	if way == byIDs || way == byBoth {
		ids := make([]string, len(a.messages))
		for i := range ids {
			ids[i] = fmt.Sprintf("%s.%d", a.id, i)
		}
		body["client_ids"] = ids
	}
	if way == byExpected {
		lastAck, _ := c.known()
		body["expected_seq"] = lastAck
	}
	return request{method: "POST", path: "/v1/sessions/" + c.id + "/messages", key: c.key, body: body, header: header}
}

// conclude records what an answer says, and reports whether it says something.
func (r *rig) conclude(c *conversation, a *attempt, got answer, err error) bool {
	switch {
	case err != nil:
		return false
	case got.status == http.StatusPreconditionFailed:
		c.settle(a, refused, 0)
		return true
	case got.status != http.StatusCreated && got.status != http.StatusOK:
		if got.status < 500 && got.status != http.StatusTooManyRequests && got.status != http.StatusRequestTimeout {
			r.found.add("refused", "append %s to %s: %d %s", a.id, c.id, got.status, short(got.body))
			c.settle(a, refused, 0)
			return true
		}
		return false
	}
	var done struct {
		First    int64 `json:"first_seq"`
		Last     int64 `json:"last_seq"`
		Replayed bool  `json:"replayed"`
	}
	if err := json.Unmarshal(got.body, &done); err != nil || done.Last-done.First+1 != int64(len(a.messages)) {
		r.found.add("answer", "append %s of %d messages to %s: %s", a.id, len(a.messages), c.id, short(got.body))
	}
	if done.Replayed || got.header.Get("Idempotent-Replayed") != "" {
		r.found.replays.Add(1)
	}
	r.found.acked()
	c.settle(a, acked, done.First)
	return true
}

// meddle asks for compactions now and then, and goes back to checkpoints while they are under way.
func (r *rig) meddle(ctx context.Context) {
	random := rand.New(rand.NewPCG(r.options.seed, 1<<40))
	for ctx.Err() == nil {
		c := r.conversations[random.IntN(r.busy)]
		ask := func(what string) { // whatever it answers: only what is stored counts
			_, _ = r.client.do(ctx, request{method: "POST", path: "/v1/sessions/" + c.id + what, key: c.key})
		}
		ask("/compact")
		if _, seen := c.known(); random.IntN(3) == 0 && seen.checkpoint > 1 {
			sleep(ctx, time.Duration(random.IntN(100))*time.Millisecond)
			ask(fmt.Sprintf("/checkpoints/%d/restore", seen.checkpoint))
		}
		sleep(ctx, time.Duration(300+random.IntN(900))*time.Millisecond)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
