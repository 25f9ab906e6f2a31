package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
)

// leaseBeats is how many beats a worker may be silent before the others take it for dead.
const leaseBeats = 4

// errLeaseLost is why a job is stopped that the others have taken over.
var errLeaseLost = errors.New("this worker was silent for so long that others took over its jobs")

// lease keeps this process's row among the workers, on a connection of its own, so that no job delays it. It takes over
// the jobs of dead workers, and those that are this worker's by their rows and which it does not have: their end could
// not be written.
type lease struct {
	river.MiddlewareDefaults

	id    string
	pool  *pgxpool.Pool // that jobs use
	every time.Duration
	log   *slog.Logger
	away  *outage

	store    *postgres.Store // on the lease's own connection
	features *feature.Worker

	mu      sync.Mutex
	running map[int64]context.CancelCauseFunc
	missing map[int64]bool // jobs that this worker did not have at the last beat either
	failed  time.Time      // the last beat that failed

	gauged time.Time // when the gauges were read last; only beats use it
}

func newLease(config Config, pool *pgxpool.Pool, away *outage) *lease {
	host, _ := os.Hostname() // for people who read the table
	return &lease{
		id: fmt.Sprintf("%.60s %s", host, uuid.Must(uuid.NewV7())), pool: pool, every: config.Beat, log: config.Log,
		away: away, running: map[int64]context.CancelCauseFunc{}, missing: map[int64]bool{},
	}
}

// Work does a job, and knows meanwhile that this worker has it.
func (l *lease) Work(ctx context.Context, job *rivertype.JobRow, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.mu.Lock()
	l.running[job.ID] = cancel
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.running, job.ID)
		l.mu.Unlock()
	}()
	began := time.Now()
	return l.retried(ctx, job, do(ctx), began)
}

// healthySince reports whether every beat since then reached the database.
func (l *lease) healthySince(then time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed.Before(then)
}

// begin registers the worker.
func (l *lease) begin(ctx context.Context) error {
	config := l.pool.Config()
	config.MinConns, config.MinIdleConns, config.MaxConns = 0, 0, 1
	own, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return err
	}
	inserts, err := queue.New(own)
	if err == nil {
		l.store = postgres.New(own, inserts, nil)
		err = l.store.RegisterWorker(ctx, l.id)
	}
	if err != nil {
		own.Close()
	}
	return err
}

// keep renews the lease until the client has stopped.
func (l *lease) keep(stopped <-chan struct{}) {
	tick := time.NewTicker(l.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.beat()
		case <-stopped:
			l.end()
			return
		}
	}
}

// end lets the others know at once that this worker is gone.
func (l *lease) end() {
	ctx, cancel := context.WithTimeout(context.Background(), l.every*leaseBeats)
	defer cancel()
	if err := l.store.UnregisterWorker(ctx, l.id); err != nil && !postgres.IsAway(err) {
		l.log.WarnContext(ctx, "the worker's row stays: others will take it for dead", "error", err)
	}
	l.store.Pool().Close()
}

func (l *lease) beat() {
	ctx, cancel := context.WithTimeout(context.Background(), max(l.every*leaseBeats/2, time.Second))
	defer cancel()
	beat, err := l.store.WorkerBeat(ctx, l.id, l.every*leaseBeats)
	if err == nil && beat.Lost {
		l.stopAll()
		err = l.store.RegisterWorker(ctx, l.id)
	}
	if l.note(err); err != nil {
		return
	}
	for _, job := range l.orphans(beat.Running) {
		if err := l.takeOver(ctx, job); err != nil {
			l.log.WarnContext(ctx, "a job could not be taken over", "job", job.ID, "kind", job.Kind, "error", err)
		}
	}
	if beat.Slept {
		if err := queue.WakeRetries(ctx, l.store.Pool()); err != nil {
			l.log.WarnContext(ctx, "jobs that failed sleep longer", "error", err)
		}
	}
	if time.Since(l.gauged) < gaugeEvery {
		return
	}
	l.gauged = time.Now()
	if err := l.gauge(ctx); err != nil {
		l.log.WarnContext(ctx, "the gauges of jobs are as they were", "error", err)
	}
	if err := l.store.ForgetWorkers(ctx); err != nil {
		l.log.WarnContext(ctx, "rows of dead workers stay", "error", err)
	}
}

// note records whether the database answered.
func (l *lease) note(err error) {
	l.away.note(err)
	if err == nil {
		return
	}
	l.mu.Lock()
	l.failed = time.Now()
	l.mu.Unlock()
}

// stopAll stops all jobs, because others have them by now.
func (l *lease) stopAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log.Warn("this worker was silent for so long that others took over its jobs", "jobs", len(l.running))
	for _, cancel := range l.running {
		cancel(errLeaseLost)
	}
}

// orphans returns the jobs that nobody has: those of dead workers, and those that this one did not have at two beats.
func (l *lease) orphans(jobs []queue.Running) (found []queue.Running) {
	l.mu.Lock()
	defer l.mu.Unlock()
	missing := map[int64]bool{}
	for _, job := range jobs {
		switch {
		case job.Worker != l.id:
			found = append(found, job)
		case l.running[job.ID] != nil:
		case l.missing[job.ID]:
			found = append(found, job)
		default:
			missing[job.ID] = true
		}
	}
	l.missing = missing
	return found
}

// Client is a River client that keeps its worker's lease.
type Client struct {
	*river.Client[pgx.Tx]
	lease    *lease
	features *feature.Worker
	ended    chan struct{}
}

// Start begins to work. The client stops when ctx ends or Stop is called.
func (c *Client) Start(ctx context.Context) error {
	if err := c.lease.begin(ctx); err != nil {
		return err
	}
	if err := c.Client.Start(ctx); err != nil {
		c.lease.end()
		return err
	}
	var beating sync.WaitGroup
	beating.Go(c.runBeats)
	go func() {
		c.lease.keep(c.Client.Stopped())
		beating.Wait()
		close(c.ended)
	}()
	return nil
}

// Stopped returns a channel that is closed when the client has stopped and given its lease back.
func (c *Client) Stopped() <-chan struct{} { return c.ended }

// Stop lets running jobs end, and waits for them until ctx ends.
func (c *Client) Stop(ctx context.Context) error { return c.wait(ctx, c.Client.Stop(ctx)) }

// StopAndCancel cancels running jobs, and waits for them until ctx ends.
func (c *Client) StopAndCancel(ctx context.Context) error {
	return c.wait(ctx, c.Client.StopAndCancel(ctx))
}

func (c *Client) wait(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
