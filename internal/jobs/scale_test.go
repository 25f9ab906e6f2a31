package jobs_test

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/queue"
)

var (
	sweptSessions = flag.Int("sweep-sessions", 2000, "how many sessions the sweep's test has; test/scale has 10000000")
	sweptTenants  = flag.Int("sweep-tenants", 200, "how many tenants the sweep's test has; test/scale has 100000")
	atScale       = flag.Bool("scale", false, "measure: fail what takes longer than its target; test/scale does")
)

//go:embed testdata/sweep.sql
var sweepSQL string

// sweepTime is what a sweep may take at the size of test/scale, and transactionTime one of its transactions.
const (
	sweepTime       = time.Second
	transactionTime = 500 * time.Millisecond
)

// idleStatements is what a sweep with nothing to do takes at most: it visits 50 tenants of all for what is not urgent,
// with 8 statements each.
const idleStatements = 450

// The sweep costs what is due, and not what is stored.
func TestASweepCostsWhatIsDue(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	load(t, dsn)
	watched := &transactions{began: map[*pgx.Conn]time.Time{}}
	store := watchedStore(t, dsn, watched)
	for n := range 5 {
		before := watched.statements()
		start := time.Now()
		if err := jobs.Sweep(t.Context(), store); err != nil {
			t.Fatal(err)
		}
		took := time.Since(start)
		statements := watched.statements() - before
		what := "a sweep with nothing due"
		if n == 0 {
			what = "a sweep with 100 due sessions"
		}
		t.Logf("%s, %d sessions, %d tenants: %d statements, %.0f ms", what, *sweptSessions, *sweptTenants,
			statements, took.Seconds()*1000)
		if *atScale && took > sweepTime {
			t.Errorf("%s took %v", what, took)
		}
		if n > 0 && statements > idleStatements {
			t.Errorf("%s took %d statements", what, statements)
		}
		var jobs int
		err := store.Pool().QueryRow(t.Context(), `SELECT count(*) FROM river_job WHERE kind = 'compact'`).Scan(&jobs)
		if err != nil || jobs != 100 {
			t.Errorf("after sweep %d there are %d jobs for 100 due sessions, %v", n, jobs, err)
		}
	}
	t.Logf("the longest transaction of the sweeps: %.0f ms", watched.longest.Seconds()*1000)
	if *atScale && watched.longest > transactionTime {
		t.Errorf("a transaction took %v: %s", watched.longest, watched.what)
	}
}

// load fills a database.
func load(t *testing.T, dsn string) {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	sql := strings.NewReplacer(":tenants", fmt.Sprint(*sweptTenants), ":sessions", fmt.Sprint(*sweptSessions)).Replace(sweepSQL)
	if _, err := conn.Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatal(err)
	}
}

// watchedStore returns a store whose statements are watched, at the login of a worker.
func watchedStore(t *testing.T, dsn string, tracer pgx.QueryTracer) *postgres.Store {
	t.Helper()
	opened, err := postgres.Open(t.Context(), pgtest.Worker(dsn), 4)
	if err != nil {
		t.Fatal(err)
	}
	config := opened.Config()
	opened.Close()
	config.ConnConfig.Tracer = tracer
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	inserts, err := queue.New(pool)
	if err != nil {
		t.Fatal(err)
	}
	return postgres.New(pool, inserts, nil)
}

// transactions watches how long transactions last.
type transactions struct {
	mu      sync.Mutex
	began   map[*pgx.Conn]time.Time
	count   int
	longest time.Duration
	what    string // its last statement
	last    string
}

// TraceQueryStart begins a transaction, unless the connection is in one.
func (w *transactions) TraceQueryStart(ctx context.Context, conn *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	w.begin(conn, q.SQL)
	return ctx
}

// TraceBatchStart does the same for statements that are sent together.
func (w *transactions) TraceBatchStart(ctx context.Context, conn *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	w.begin(conn, b.Batch.QueuedQueries[b.Batch.Len()-1].SQL)
	return ctx
}

func (w *transactions) begin(conn *pgx.Conn, sql string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	if _, running := w.began[conn]; !running {
		w.began[conn] = time.Now()
	}
	if sql != "commit" {
		w.last = sql
	}
}

// TraceQueryEnd ends it, unless the connection is still in one.
func (w *transactions) TraceQueryEnd(_ context.Context, conn *pgx.Conn, _ pgx.TraceQueryEndData) {
	w.end(conn)
}

// TraceBatchQuery does nothing: a batch is one transaction, or part of one.
func (w *transactions) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd does what TraceQueryEnd does.
func (w *transactions) TraceBatchEnd(_ context.Context, conn *pgx.Conn, _ pgx.TraceBatchEndData) {
	w.end(conn)
}

func (w *transactions) end(conn *pgx.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if conn.PgConn().TxStatus() != 'I' {
		return
	}
	if took := time.Since(w.began[conn]); took > w.longest {
		w.longest, w.what = took, w.last
	}
	delete(w.began, conn)
}

func (w *transactions) statements() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}
