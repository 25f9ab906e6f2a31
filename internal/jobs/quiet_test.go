package jobs_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/queue"
)

// counter counts the statements of a pool, and sends at each beat of a worker how many there were.
type counter struct {
	mu    sync.Mutex
	all   int
	texts []string
	beats chan int
}

func (c *counter) count(sql string) {
	c.mu.Lock()
	c.all++
	c.texts = append(c.texts, strings.Join(strings.Fields(sql), " "))
	n := c.all
	c.mu.Unlock()
	if strings.Contains(sql, "SET renewed_at = now()") {
		c.beats <- n
	}
}

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	c.count(d.SQL)
	return ctx
}

func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *counter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	for _, q := range d.Batch.QueuedQueries {
		c.count(q.SQL)
	}
	return ctx
}

func (c *counter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (c *counter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// TestAnIdleWorkerAsksLittle counts the statements of ten beats, which are a second apart.
func TestAnIdleWorkerAsksLittle(t *testing.T) {
	t.Parallel()
	config, err := pgxpool.ParseConfig(pgtest.Worker(pgtest.New(t)))
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{beats: make(chan int, 1000)}
	config.ConnConfig.Tracer = c
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	inserts, err := queue.New(pool)
	if err != nil {
		t.Fatal(err)
	}
	client, err := jobs.NewClient(pool, jobs.Config{Store: postgres.New(pool, inserts, nil)})
	if err == nil {
		err = client.Start(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 5 { // what a start costs
		<-c.beats
	}
	const beats = 10
	first := <-c.beats
	for range beats - 1 {
		<-c.beats
	}
	asked := <-c.beats - first
	if err := client.StopAndCancel(context.Background()); err != nil {
		t.Error(err)
	}
	t.Logf("%d statements in %d beats", asked, beats)
	if asked > 5*beats {
		t.Errorf("more than five a beat:\n%s", strings.Join(c.texts[first:], "\n"))
	}
}
