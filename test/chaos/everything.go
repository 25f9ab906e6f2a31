package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"time"
)

// everything is what -users adds to a run: users, who do all that the API can, and a receiver of their tenant's events.
type everything struct {
	key       string // of the users' tenant
	users     []*user
	passwords passwords

	receiver  *httptest.Server
	mu        sync.Mutex
	delivered map[string]bool // ids of events
	refused   map[string]bool // those that were answered by an error once
	random    *rand.Rand
}

// startEverything starts the receiver, which refuses one event in three once: few runs have many events.
func startEverything(o options) *everything {
	e := &everything{
		passwords: passwords{filepath.Join(o.dir, "passwords")},
		delivered: map[string]bool{}, refused: map[string]bool{},
		random: rand.New(rand.NewPCG(o.seed, 1<<49)),
	}
	e.receiver = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		e.mu.Lock()
		defer e.mu.Unlock()
		id := r.Header.Get("Webhook-Id")
		if !e.refused[id] && !e.delivered[id] && e.random.IntN(3) == 0 {
			e.refused[id] = true
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		e.delivered[id] = true
	}))
	return e
}

// startUsers makes the webhook, and lets users do what they do until ctx ends.
func (r *rig) startUsers(ctx context.Context, all *sync.WaitGroup) error {
	e := r.everything
	hook := object{"url": e.receiver.URL, "types": []string{"session.compacted"}}
	got, err := r.ask(ctx, request{method: "POST", path: "/v1/webhooks", key: e.key, body: hook})
	if err != nil || got.status != http.StatusCreated {
		return fmt.Errorf("the webhook: %d %s %w", got.status, short(got.body), err)
	}
	for i := range r.options.users {
		u := &user{rig: r, n: i, key: e.key, random: rand.New(rand.NewPCG(r.options.seed, uint64(1<<50+1+i)))}
		e.users = append(e.users, u)
		all.Go(func() { u.live(ctx) })
	}
	return nil
}

// checkUsers looks at all that users have when the faults are over.
func (r *rig) checkUsers(ctx context.Context) error {
	for _, u := range r.everything.users {
		for _, c := range u.sessions {
			if err := u.whole(ctx, c); err != nil {
				r.found.add("user", "%v", err)
			}
		}
		for _, c := range u.erased {
			if err := u.isGone(ctx, c); err != nil {
				r.found.add("erased", "%v", err)
			}
		}
		r.conversations = append(r.conversations, u.sessions...)
	}
	return r.checkDeliveries(ctx)
}

// checkDeliveries waits until every event of the users' sessions that is still there was delivered.
func (r *rig) checkDeliveries(ctx context.Context) error {
	missing := "none was read"
	for until := time.Now().Add(settled); time.Now().Before(until); sleep(ctx, time.Second) {
		events, err := r.events(ctx)
		if err != nil {
			return err
		}
		missing = ""
		r.everything.mu.Lock()
		for _, id := range events {
			if !r.everything.delivered[id] {
				missing = id
			}
		}
		r.everything.mu.Unlock()
		r.found.events = len(events)
		if missing == "" {
			return nil
		}
	}
	r.found.add("webhook", "event %s was not delivered %v after the last fault", missing, settled)
	return nil
}

// events returns the ids of the compactions of the users' sessions.
func (r *rig) events(ctx context.Context) (ids []string, err error) {
	for after := int64(0); ; {
		path := fmt.Sprintf("/v1/events?types=session.compacted&after=%d", after)
		got, err := r.ask(ctx, request{method: "GET", path: path, key: r.everything.key})
		if err != nil {
			return nil, err
		}
		var page struct {
			Data []struct{ ID string }
			Next int64 `json:"next_after"`
			More bool  `json:"has_more"`
		}
		if err := json.Unmarshal(got.body, &page); err != nil {
			return nil, err
		}
		for _, event := range page.Data {
			ids = append(ids, event.ID)
		}
		if after = page.Next; !page.More {
			return ids, nil
		}
	}
}

// environment returns what the processes need for it.
func (e *everything) environment(dir string) []string {
	return []string{
		"VARVE_OBJECTS=file://" + filepath.Join(dir, "objects"), "VARVE_WEBHOOK_NETWORKS=127.0.0.1/32",
		"PGPASSFILE=" + e.passwords.file,
	}
}
