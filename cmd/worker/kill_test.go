package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// asWorker makes the program of the tests be the worker.
const asWorker = "VARVE_TEST_AS_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(asWorker) != "" {
		main()
	}
	os.Exit(pgtest.Main(m))
}

// worker is a process that works.
type worker struct {
	cmd *exec.Cmd

	mu  sync.Mutex
	log bytes.Buffer
}

func startWorker(t *testing.T, dsn string) *worker {
	t.Helper()
	w := &worker{cmd: exec.CommandContext(context.Background(), os.Args[0])}
	w.cmd.Env = append(os.Environ(), asWorker+"=1", "DATABASE_URL="+pgtest.Worker(dsn), "VARVE_LOG_FORMAT=text")
	w.cmd.Stdout, w.cmd.Stderr = w, w
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.kill)
	return w
}

// Write takes what the worker logs.
func (w *worker) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(text)
}

func (w *worker) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

func (w *worker) kill() {
	_ = w.cmd.Process.Kill() // it may have been killed before
	_ = w.cmd.Wait()
}

// fill makes a session that is over its hard limit.
func fill(t *testing.T, store *postgres.Store) session.Address {
	t.Helper()
	tenant, err := store.CreateTenant(t.Context(), "acme", policy.StoredDefault())
	if err != nil {
		t.Fatal(err)
	}
	at, window := session.Address{Tenant: tenant.ID, ID: "s"}, 10_000
	if _, _, err := store.Create(t.Context(), at, session.Change{WindowTokens: &window}, nil); err != nil {
		t.Fatal(err)
	}
	a := session.Append{Session: at, Format: session.OpenAIChat}
	for n := range 30 {
		call := fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"Read","arguments":"{}"}}]}`, n)
		result := fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":"%s"}`, n, strings.Repeat(fmt.Sprintf("line of file %d ", n), 130))
		for _, body := range []string{call, result} {
			m, err := wire.Inspect(a.Format, []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			a.Messages = append(a.Messages, session.NewMessage{Body: []byte(body), Role: m.Role, Tokens: m.Tokens, StartsUnit: m.StartsUnit})
		}
	}
	if _, _, err := store.Append(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	return at
}

// until waits until a condition in SQL holds; only the test's own deadline ends it, because a busy machine is slow.
func until(t *testing.T, conn *pgx.Conn, condition string) {
	t.Helper()
	for holds := false; !holds; time.Sleep(10 * time.Millisecond) {
		if err := conn.QueryRow(t.Context(), `SELECT `+condition).Scan(&holds); err != nil {
			t.Fatalf("waiting until %s: %v", condition, err)
		}
	}
}

// A worker that is killed in the middle of a compaction leaves it to another one at once: that one goes by the lease,
// and not by River's rescue, which would come after four minutes and count as nothing.
func TestAKilledWorkersCompactionIsTakenOverByAnotherProcess(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	pool, err := postgres.Open(t.Context(), pgtest.Admin(dsn), 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	inserts, err := queue.New(pool)
	if err != nil {
		t.Fatal(err)
	}
	store := postgres.New(pool, inserts, nil)
	at := fill(t, store)
	owner := connect(t, dsn)
	tx, err := connect(t, dsn).Begin(t.Context()) // holds the compaction where it persists its results
	if err == nil {
		_, err = tx.Exec(t.Context(), `LOCK TABLE results, result_bodies IN SHARE MODE`)
	}
	if err != nil {
		t.Fatal(err)
	}
	first := startWorker(t, dsn)
	until(t, owner, `EXISTS (SELECT FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`)
	second := startWorker(t, dsn)
	until(t, owner, `count(*) = 2 FROM workers`)
	first.kill()
	killed := time.Now()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, owner, `EXISTS (SELECT FROM runs WHERE state = 'done')`)
	t.Logf("compacted %v after the kill", time.Since(killed))
	if found, err := store.Session(t.Context(), at); err != nil || found.Checkpoint != 1 {
		t.Errorf("%+v, %v", found, err)
	}
	if text := second.text(); !strings.Contains(text, "class=death") || !strings.Contains(text, "deaths=1") {
		t.Errorf("the other worker says\n%s", text)
	}
}

// connect returns a connection that sees everything.
func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}
