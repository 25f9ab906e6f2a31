package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/test/harness"
)

// How much runs.
const (
	copies   = 2 // API processes, and workers
	tenants  = 2
	sessions = 3      // of a tenant
	window   = 16_000 // tokens
)

// rig is Varve with everything around it.
type rig struct {
	options  options
	progress *harness.Progress
	found    *findings
	database *database
	client   *client

	everything *everything // nil without users

	apis, workers   []*harness.Process
	apiDB, workerDB []*proxy // between a process and PostgreSQL
	front           []*proxy // between clients and an API
	conversations   []*conversation
	restarting      sync.Mutex // one fault at a time restarts PostgreSQL
	busy            int        // how many of them writers use: all but the last
	losing          sync.Mutex // one fault at a time loses jobs
}

// startRig starts PostgreSQL and all processes, and creates the sessions.
func startRig(ctx context.Context, o options, built harness.Programs) (_ *rig, err error) {
	r := &rig{options: o, progress: harness.NewProgress(o.out), found: newFindings()}
	if o.users > 0 {
		r.everything = startEverything(o)
	}
	defer func() {
		if err != nil {
			r.stop()
		}
	}()
	for _, list := range []*[]*proxy{&r.apiDB, &r.workerDB, &r.front} {
		for range copies {
			p, err := newProxy(ctx)
			if err != nil {
				return nil, err
			}
			*list = append(*list, p)
		}
	}
	toDatabase := slices.Concat(r.apiDB, r.workerDB)
	if r.database, err = startDatabase(ctx, filepath.Join(o.dir, "database"), toDatabase); err != nil {
		return nil, err
	}
	keys, err := r.setUp(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.startProcesses(built); err != nil {
		return nil, err
	}
	r.client = newClient(r.found, r.front[0].addr(), r.front[1].addr())
	return r, r.createSessions(ctx, keys)
}

// setUp makes the schema and the tenants, and returns a key of each.
func (r *rig) setUp(ctx context.Context) (keys []string, err error) {
	dsn := r.database.server.DSN(embedded.Database)
	err = postgres.Migrate(ctx, r.database.server.DSNOf(embedded.Owner))
	if err := errors.Join(err, r.database.grant(ctx)); err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	jobs, err := queue.New(pool)
	if err != nil {
		return nil, err
	}
	store := postgres.New(pool, jobs, nil)
	for i := range tenants + min(1, r.options.users) {
		name := fmt.Sprintf("tenant-%d", i)
		tenant, err := store.CreateTenant(ctx, name, policy.StoredDefault())
		if err != nil {
			return nil, err
		}
		key := session.NewAPIKey(tenant.ID)
		made := session.NewKey{Name: name, Text: key, Scopes: session.KeyScopes()}
		if _, err := store.CreateKey(ctx, tenant.ID, made); err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	if r.everything != nil {
		r.everything.key = keys[tenants]
		return keys[:tenants], r.everything.passwords.require(ctx, r.database)
	}
	return keys, nil
}

func (r *rig) startProcesses(built harness.Programs) error {
	for i := range copies {
		env := append(r.databaseThrough(r.apiDB[i], apiLogin), "VARVE_ADDR=127.0.0.1:0", "VARVE_LOG_FORMAT=text")
		front := r.front[i]
		p, err := harness.StartProcess(r.options.dir, fmt.Sprintf("api-%d", i), built.API, env,
			func(addr string) { front.aim("tcp", addr) })
		if err != nil {
			return err
		}
		r.apis = append(r.apis, p)
	}
	for i := range copies {
		env := append(r.databaseThrough(r.workerDB[i], workerLogin), "VARVE_SWEEP_INTERVAL=2s")
		p, err := harness.StartProcess(r.options.dir, fmt.Sprintf("worker-%d", i), built.Worker, env, nil)
		if err != nil {
			return err
		}
		r.workers = append(r.workers, p)
	}
	return nil
}

// databaseThrough returns the environment of a process that reaches PostgreSQL through a proxy.
func (r *rig) databaseThrough(p *proxy, login string) []string {
	dsn := url.URL{Scheme: "postgres", User: url.User(login), Host: p.addr(), Path: "/" + embedded.Database,
		RawQuery: "sslmode=disable&connect_timeout=5"}
	env := []string{"DATABASE_URL=" + dsn.String()}
	if r.everything != nil {
		env = append(env, r.everything.environment(r.options.dir)...)
	}
	return env
}

func (r *rig) createSessions(ctx context.Context, keys []string) error {
	for i, key := range keys {
		for j := range sessions {
			c := &conversation{
				id: fmt.Sprintf("s%d-%d", i, j), format: []string{chat, anthropic}[j%2], key: key,
				bySeq: map[int64]json.RawMessage{}, tags: map[string][32]byte{}, refs: map[string]bool{},
			}
			got, err := r.ask(ctx, request{
				method: "PUT", path: "/v1/sessions/" + c.id, key: key,
				body: object{"format": c.format, "window_tokens": window},
			})
			if err != nil || got.status != http.StatusCreated {
				return fmt.Errorf("session %s: %d %s %w", c.id, got.status, short(got.body), err)
			}
			r.conversations = append(r.conversations, c)
		}
	}
	r.busy = len(r.conversations) - 1
	return nil
}

// stop ends everything.
func (r *rig) stop() {
	for _, p := range slices.Concat(r.apis, r.workers) {
		p.Stop()
	}
	for _, p := range append(slices.Concat(r.apiDB, r.workerDB), r.front...) {
		p.close()
	}
	if r.everything != nil {
		r.everything.receiver.Close()
	}
	if r.database != nil {
		_ = r.database.stop() // nothing of it is needed
	}
}
