package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// idlePolicy compacts a session of a window of 1,000 tokens once it is idle for 300 s, from 500 tokens on.
func idlePolicy() session.Policy {
	return session.Policy{
		Trigger: 0.8, Hard: 0.95,
		Document: json.RawMessage(`{"idle":{"enabled":true,"from":0.5,"after_seconds":0},"economy":{"ttl_seconds":300}}`),
	}
}

// idle returns a store with a tenant whose sessions are compacted when they are idle.
func idle(t testing.TB) (*postgres.Store, uuid.UUID) {
	t.Helper()
	store, _ := newStoreAt(t)
	tenant, err := store.CreateTenant(t.Context(), "acme", idlePolicy())
	if err != nil {
		t.Fatal(err)
	}
	return store, tenant.ID
}

// asked is what River has of a session.
type asked struct {
	State string
	In    int // seconds until it starts, rounded
}

func jobs(t testing.TB, store *postgres.Store) []asked {
	t.Helper()
	rows, err := store.Pool().Query(t.Context(), `
		SELECT state::text, round(extract(epoch FROM scheduled_at - now()))::int
		  FROM river_job
		 WHERE kind = 'compact' AND finalized_at IS NULL
		 ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[asked])
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func causesOf(t testing.TB, store *postgres.Store, at session.Address) (list []string) {
	t.Helper()
	runs, err := store.Runs(t.Context(), at, session.Page{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		list = append(list, run.Cause+" "+string(run.State))
	}
	return list
}

func TestASessionAsksOnceToBeCompactedWhenItIsIdle(t *testing.T) {
	t.Parallel()
	store, tenant := idle(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("x", 499)))
	if n := liveJobs(t, store); n != 0 {
		t.Fatalf("%d jobs below the share of the window", n)
	}
	for range 10 {
		if done := mustAppend(t, store, batch(at, message("x", 10))); done.Compaction != session.CompactionNone {
			t.Fatalf("the caller is told of a compaction that may never come: %s", done.Compaction)
		}
	}
	if list := jobs(t, store); len(list) != 1 || list[0].State != "scheduled" || list[0].In < 290 || list[0].In > 300 {
		t.Errorf("jobs %+v, want one in 300 s", list)
	}
	if got := causesOf(t, store, at); fmt.Sprint(got) != "[idle queued]" {
		t.Errorf("runs %v", got)
	}
	if n, err := sweep(t, store); err != nil || n != 0 {
		t.Errorf("the sweep inserted %d, %v", n, err)
	}
	loseJobs(t, store)
	if n, err := sweep(t, store); err != nil || n != 0 {
		t.Errorf("below its trigger a session lost its job: the sweep inserted %d, %v", n, err)
	}
}

func TestTheTriggerTakesTheJobOfAnIdleSession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*session.Policy)
		tokens int
		state  string
		cause  string
	}{
		"the trigger":          {func(*session.Policy) {}, 250, "available", "[threshold queued]"},
		"the hard limit":       {func(*session.Policy) {}, 400, "available", "[hard queued]"},
		"a trigger that waits": {func(p *session.Policy) { p.CacheTTL = time.Hour }, 250, "available", "[threshold queued]"},
	} {
		store, tenant := idle(t)
		at := newSession(t, store, tenant, name)
		p := idlePolicy()
		c.change(&p)
		if _, _, err := store.Update(t.Context(), at, session.Change{Policy: &p}, nil); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, store, batch(at, message("x", 600)))
		done := mustAppend(t, store, batch(at, message("x", c.tokens)))
		if list := jobs(t, store); done.Compaction != session.CompactionLive || len(list) != 1 || list[0].State != c.state {
			t.Errorf("%s: compaction %s, jobs %+v", name, done.Compaction, list)
		}
		if got := fmt.Sprint(causesOf(t, store, at)); got != c.cause {
			t.Errorf("%s: runs %s", name, got)
		}
	}
}

func TestAPersonDoesNotWaitForASessionToBeIdle(t *testing.T) {
	t.Parallel()
	store, tenant := idle(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("x", 600)))
	run, _, err := store.Compact(t.Context(), at, nil)
	if list := jobs(t, store); err != nil || run.Cause != "manual" || len(list) != 1 || list[0].State != "available" {
		t.Errorf("run %+v, jobs %+v, %v", run, list, err)
	}
	mustAppend(t, store, batch(at, message("x", 300)))
	if got := fmt.Sprint(causesOf(t, store, at)); got != "[manual queued]" {
		t.Errorf("at the trigger: runs %s", got)
	}
}

func TestARunOfAnIdleSessionIsNotPutOffOnceTheTriggerIsReached(t *testing.T) {
	t.Parallel()
	store, tenant := idle(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("x", 600)))
	found, err := store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := store.Runs(t.Context(), at, session.Page{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	key, run := session.Key{Tenant: tenant, Key: found.Key}, runs[0]
	if cause, err := store.StartRun(t.Context(), key, run.ID); err != nil || cause != "idle" {
		t.Fatalf("cause %s, %v", cause, err)
	}
	mustAppend(t, store, batch(at, message("x", 300)))
	if err := store.SnoozeRun(t.Context(), key, session.Run{ID: run.ID, Cause: "idle"}, noJob, time.Hour); err != postgres.ErrRunRequested {
		t.Errorf("snoozed: %v", err)
	}
	postponed := postgres.Outcome{Run: session.Run{ID: run.ID, Cause: "idle", State: session.RunPostponed}, LastSeq: 1, Under: under(found)}
	if err := store.CommitCheckpoint(t.Context(), key, postponed, noJob); err != postgres.ErrRunRequested {
		t.Errorf("postponed: %v", err)
	}
}

func TestASmallerSessionIsNotCompactedWhenItsJobWakes(t *testing.T) {
	t.Parallel()
	store, tenant := idle(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("x", 300)))
	mustAppend(t, store, batch(at, message("y", 300)))
	found, err := store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := store.Runs(t.Context(), at, session.Page{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.Remove(t.Context(), at, 1, nil); err != nil {
		t.Fatal(err)
	}
	key := session.Key{Tenant: tenant, Key: found.Key}
	if _, err := store.StartRun(t.Context(), key, runs[0].ID); err != session.ErrEnded {
		t.Fatalf("started: %v", err)
	}
	loseJobs(t, store)
	if err := store.MarkSuperseded(t.Context(), key, session.Run{ID: runs[0].ID, State: session.RunSuperseded}, noJob); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, store, batch(at, message("z", 300)))
	if list := jobs(t, store); len(list) != 1 || list[0].State != "scheduled" {
		t.Errorf("grown again: jobs %+v", list)
	}
}

// statements counts the statements of a pool.
type statements struct{ n atomic.Int64 }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.n.Add(1)
	return ctx
}
func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (*statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (s *statements) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) { s.n.Add(1) }
func (*statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)       {}

func counted(t testing.TB, of *postgres.Store) (*postgres.Store, *statements) {
	t.Helper()
	counter := &statements{}
	config := of.Pool().Config()
	config.ConnConfig.Tracer = counter
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	inserts, err := queue.New(pool)
	if err != nil {
		t.Fatal(err)
	}
	return postgres.New(pool, inserts, nil), counter
}
