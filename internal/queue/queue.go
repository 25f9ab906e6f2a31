// Package queue is the insert side of River: it inserts, delays and completes jobs inside a caller's transaction. All
// SQL on river_job is here.
//
// Start at Queue. The jobs' arguments are in args.go; the workers are in package jobs. Job rows carry ids only;
// contents stay in the tables of their tenant.
package queue

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
)

// Queue inserts jobs. A job is known by the id of its row.
type Queue struct{ client *river.Client[pgx.Tx] }

// notifyCooldown is how long a process sends no notification of further jobs after it sent one. Jobs inserted in that
// time wait for the workers' next poll.
const notifyCooldown = time.Millisecond

// New returns a Queue on pool.
func New(pool *pgxpool.Pool) (*Queue, error) {
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{FetchCooldown: notifyCooldown})
	return &Queue{client: client}, err
}

// Insert inserts a job that starts at a time, the zero time being now. Times are the database's. Which of the jobs that
// may start does so first is decided in the database, see the migration 0052_places. If there is a live job with the same unique
// arguments, Insert returns that one, and inserted is false.
func (q *Queue) Insert(ctx context.Context, tx pgx.Tx, args river.JobArgs, at time.Time) (
	job int64, inserted bool, err error,
) {
	done, err := q.client.InsertTx(ctx, tx, args, &river.InsertOpts{ScheduledAt: at})
	if err != nil {
		return 0, false, err
	}
	return done.Job.ID, !done.UniqueSkippedAsDuplicate, nil
}

// RunNow makes a job that waits for later start now. It does nothing to a job that is running or gone.
func (q *Queue) RunNow(ctx context.Context, tx pgx.Tx, job int64) error {
	_, err := q.client.JobRetryTx(ctx, tx, job)
	if errors.Is(err, rivertype.ErrNotFound) {
		return nil
	}
	return err
}

// Hurry gives a requested compaction that waits for a worker the priority of one that a threshold asks for.
func (q *Queue) Hurry(ctx context.Context, tx pgx.Tx, job int64) error {
	_, err := tx.Exec(ctx, `
		UPDATE river_job
		   SET priority = $2
		 WHERE id = $1 AND priority > $2`, job, thresholdPriority)
	return err
}

// hurriedAtOnce bounds how many jobs HurryOld changes.
const hurriedAtOnce = 1000

// HurryOld does what Hurry does for the requested compactions of all tenants that have waited for a minute, so that
// those that thresholds ask for do not precede them for ever. Among these they take turns by tenant.
func HurryOld(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, `
		UPDATE river_job
		   SET priority = $1
		 WHERE id IN (SELECT id
		                FROM river_job
		               WHERE state = 'available' AND queue = $2 AND priority = $3
		                 AND created_at < now() - interval '1 minute'
		               ORDER BY scheduled_at, id
		               LIMIT $4
		                 FOR UPDATE SKIP LOCKED)`, thresholdPriority, Compaction, manualPriority, hurriedAtOnce)
	return err
}

// Complete completes a job in the transaction of what it did, whatever state it is in: a run may be requested to start
// now while its worker is snoozing it, and River may have taken a slow worker for dead. A job whose row is gone is no
// error; what it did still counts.
func (q *Queue) Complete(ctx context.Context, tx pgx.Tx, job int64) error {
	_, err := tx.Exec(ctx, `
		UPDATE river_job
		   SET state = 'completed', finalized_at = now()
		 WHERE id = $1 AND finalized_at IS NULL`, job)
	return err
}

// Snooze makes a running job wait, in the transaction that records why. River does the same only after the worker has
// returned; until then the job would count as running, and RunNow would not reach it. A snooze does not use up an
// attempt.
func (q *Queue) Snooze(ctx context.Context, tx pgx.Tx, job int64, wait time.Duration) error {
	_, err := tx.Exec(ctx, `
		UPDATE river_job
		   SET state = 'scheduled', scheduled_at = now() + $2::interval, attempt = greatest(attempt - 1, 0)
		 WHERE id = $1 AND state = 'running'`, job, wait)
	return err
}

// TakeOver makes the running jobs of processes that are gone available at once, without waiting until River takes them
// for dead. No other process may be working on the database.
func TakeOver(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, `
		UPDATE river_job
		   SET state = 'available', scheduled_at = now()
		 WHERE state IN ('running', 'retryable')`)
	return err
}
