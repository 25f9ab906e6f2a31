package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/llm/fake"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/test/harness"
)

// object is a JSON object.
type object = map[string]any

// The formats of sessions.
const (
	chat      = "openai-chat"
	anthropic = "anthropic"
)

// How large sessions are, and what is compacted of them.
const (
	window  = 8_000 // tokens
	trigger = 0.7
)

// tenant is a tenant with its own model, which has the tenant's name.
type tenant struct {
	name     string
	kind     string // of the provider
	fallback string
	style    string
	segments int
	calls    int64 // that its own quota allows in a day; 0 for the operator's

	key string
	id  string
}

// The names of the tenants whose models are special.
const (
	brittle = "brittle" // is down for a while
	slow    = "slow"    // takes its time
	poor    = "poor"    // may make few calls
)

// poorCalls is how many calls the poor tenant may make in a day.
const poorCalls = 6

func tenants() []*tenant {
	return []*tenant{
		{name: brittle, kind: "openai", fallback: "extract", style: "sections", segments: 3},
		{name: "keeping", kind: "openai-responses", fallback: "keep", style: "codelia", segments: 1},
		{name: "dropping", kind: "anthropic", fallback: "drop", style: "sections", segments: 2},
		{name: "falai", kind: "anthropic", fallback: "extract", style: "falai", segments: 1},
		{name: poor, kind: "openai", fallback: "extract", style: "sections", segments: 4, calls: poorCalls},
		{name: slow, kind: "openai-slow", fallback: "extract", style: "sections", segments: 2},
	}
}

// What the operator lets a tenant spend in a day.
const (
	dayCalls  = 5_000
	dayTokens = 20_000_000
	dayCost   = 30.0
)

// rig is Varve with everything around it.
type rig struct {
	options  options
	progress *harness.Progress
	found    *findings
	database *embedded.Server
	pool     *pgxpool.Pool // the superuser's
	provider *fake.Server
	api      *harness.Process
	workers  []*harness.Process
	client   *http.Client
	address  atomic.Value // of the API
	tenants  []*tenant

	conversations []*conversation
	brittle       atomic.Int64 // calls of the brittle model
	others        atomic.Int64 // calls of models without a part of their own
	loaded        time.Time    // when nothing was appended any more
}

// startRig starts PostgreSQL, the provider and all processes, and creates the sessions.
func startRig(ctx context.Context, o options, built harness.Programs) (_ *rig, err error) {
	r := &rig{options: o, progress: harness.NewProgress(o.out), found: newFindings(),
		client: &http.Client{Timeout: time.Minute}, tenants: tenants()}
	defer func() {
		if err != nil {
			r.stop()
		}
	}()
	if r.database, err = embedded.Start(ctx, embedded.Config{Dir: filepath.Join(o.dir, "database")}); err != nil {
		return nil, err
	}
	if r.pool, err = pgxpool.New(ctx, r.database.DSN(embedded.Database)); err != nil {
		return nil, err
	}
	if err := r.setUp(ctx); err != nil {
		return nil, err
	}
	if err := r.startProvider(); err != nil {
		return nil, err
	}
	if err := r.startProcesses(built); err != nil {
		return nil, err
	}
	return r, r.createSessions(ctx)
}

// The logins of the processes.
const (
	apiLogin    = "models_api"
	workerLogin = "models_worker"
)

// setUp makes the schema, the logins and the tenants.
func (r *rig) setUp(ctx context.Context) error {
	dsn := r.database.DSN(embedded.Database)
	err := postgres.Migrate(ctx, r.database.DSNOf(embedded.Owner))
	if err == nil {
		err = postgres.GrantTo(ctx, dsn, postgres.Grant{Login: apiLogin, Role: postgres.AppRole, Make: true},
			postgres.Grant{Login: workerLogin, Role: postgres.WorkerRole, Make: true})
	}
	if err != nil {
		return err
	}
	jobs, err := queue.New(r.pool)
	if err != nil {
		return err
	}
	store := postgres.New(r.pool, jobs, nil)
	for _, t := range r.tenants {
		made, err := store.CreateTenant(ctx, t.name, policy.StoredDefault())
		if err != nil {
			return err
		}
		t.id, t.key = made.ID.String(), session.NewAPIKey(made.ID)
		key := session.NewKey{Name: t.name, Text: t.key, Scopes: session.KeyScopes()}
		if _, err := store.CreateKey(ctx, made.ID, key); err != nil {
			return err
		}
		if t.calls == 0 {
			continue
		}
		own := json.RawMessage(fmt.Sprintf(`{"model_calls_per_day":%d}`, t.calls))
		if err := store.SetQuotas(ctx, made.ID, own); err != nil {
			return err
		}
	}
	return nil
}

// choose has each fault met once, by every other call until all were, and the brittle model down for some calls after
// the first two.
func (r *rig) choose(q fake.Request) (step fake.Step) {
	const begins = 2
	switch q.Model {
	case brittle:
		if n := r.brittle.Add(1); n > begins && n <= begins+r.options.outage {
			step.Fault = fake.Error503
		}
	case slow, poor:
	default:
		n := r.others.Add(1)
		if all := fake.Faults(); n%2 == 0 && n/2 <= int64(len(all)) {
			step.Fault = all[n/2-1]
		}
	}
	return step
}

// startProvider starts the fake provider.
func (r *rig) startProvider() error {
	models := map[string]fake.Model{}
	for _, t := range r.tenants {
		models[t.name] = fake.Model{Window: 2 * window}
	}
	models[slow] = fake.Model{Window: 2 * window, Delay: r.options.slow}
	r.provider = fake.New(fake.Options{
		Faults: r.options.faults, Seed: r.options.seed, Models: models, Key: "the key", Brief: true,
		Drip:   500 * time.Millisecond,
		Choose: r.choose,
	})
	return r.provider.Start("127.0.0.1:0")
}

// configured returns the operator's file of models.
func (r *rig) configured() object {
	breaker := object{"failures": 3, "seconds": 1}
	provider := func(kind, path string, timeout time.Duration) object {
		return object{"kind": kind, "base_url": r.provider.URL() + path, "key": "the key", "allow_private": true,
			"timeout_seconds": timeout.Seconds(), "attempts": 2, "breaker": breaker}
	}
	quick := r.options.quick
	models := object{}
	for _, t := range r.tenants {
		models[t.name] = object{"provider": t.kind, "model": t.name, "window": 2 * window,
			"price": object{"input": 1, "cached": 0.1, "output": 4}}
	}
	return object{
		"providers": object{
			"openai":           provider("openai", "/v1", quick),
			"openai-responses": provider("openai-responses", "/v1", quick),
			"anthropic":        provider("anthropic", "", quick),
			"openai-slow":      provider("openai", "/v1", r.options.slow+quick),
		},
		"models":  models,
		"budgets": object{"day": object{"calls": dayCalls, "tokens": dayTokens, "cost": dayCost}},
	}
}

func (r *rig) startProcesses(built harness.Programs) (err error) {
	document, err := json.Marshal(r.configured())
	if err != nil {
		return err
	}
	file := filepath.Join(r.options.dir, "models.json")
	if err := os.WriteFile(file, document, 0o600); err != nil {
		return err
	}
	env := func(login string) []string {
		query := url.Values{"host": {r.database.SocketDir}, "port": {embedded.Port}, "sslmode": {"disable"}}
		dsn := url.URL{Scheme: "postgres", User: url.User(login), Path: "/" + embedded.Database,
			RawQuery: query.Encode()}
		return []string{"DATABASE_URL=" + dsn.String(), "VARVE_LLM=" + file, "VARVE_LOG_FORMAT=text"}
	}
	ready := func(addr string) { r.address.CompareAndSwap(nil, addr) }
	r.api, err = harness.StartProcess(r.options.dir, "api", built.API, append(env(apiLogin), "VARVE_ADDR=127.0.0.1:0"),
		ready)
	for i := 0; i < 2 && err == nil; i++ {
		var p *harness.Process
		p, err = harness.StartProcess(r.options.dir, fmt.Sprintf("worker-%d", i), built.Worker,
			append(env(workerLogin), "VARVE_SWEEP_INTERVAL=2s"), nil)
		r.workers = append(r.workers, p)
	}
	return err
}

// createSessions sets the policies of the tenants, and creates their sessions.
func (r *rig) createSessions(ctx context.Context) error {
	for _, t := range r.tenants {
		own := object{
			"trigger": trigger, "target": 0.35, "idle": object{"enabled": false},
			"summarise": object{"model": t.name, "style": t.style, "fallback": t.fallback, "segments": t.segments,
				"min_tokens": 500, "max_tokens": 400},
		}
		if _, err := r.must(ctx, t, "PUT", "/v1/policy", own, http.StatusOK); err != nil {
			return err
		}
		for i := range r.options.sessions {
			c := &conversation{tenant: t, id: fmt.Sprintf("%s-%d", t.name, i), format: []string{chat, anthropic}[i%2],
				weights: map[int64]weight{}}
			body := object{"format": c.format, "window_tokens": window}
			if _, err := r.must(ctx, t, "PUT", "/v1/sessions/"+c.id, body, http.StatusCreated); err != nil {
				return err
			}
			r.conversations = append(r.conversations, c)
		}
	}
	return nil
}

// must asks until the API answers, which must be with that status.
func (r *rig) must(ctx context.Context, t *tenant, method, path string, body any, status int) (answer, error) {
	got, err := r.insist(ctx, request{method: method, path: path, key: t.key, body: body})
	if err == nil && got.status != status {
		err = fmt.Errorf("%s %s: %d %s", method, path, got.status, short(got.body))
	}
	return got, err
}

// stop ends everything.
func (r *rig) stop() {
	for _, p := range append(r.workers, r.api) {
		if p != nil {
			p.Stop()
		}
	}
	if r.provider != nil {
		r.provider.Close()
	}
	if r.pool != nil {
		r.pool.Close()
	}
	if r.database != nil {
		_ = r.database.Crash() // nothing of it is needed
	}
}

var errNoAPI = errors.New("the API does not listen yet")
