// Package queue is the insert side of River: it inserts, delays and completes jobs inside a caller's transaction. All
// SQL on river_job is here.
//
// Start at Queue. The jobs' arguments are in args.go; the workers are in package jobs. Job rows carry ids only;
// contents stay in the tables of their tenant.
package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/varve-dev/varve/internal/trace"
)

// Queue inserts jobs. A job is known by the id of its row.
type Queue struct{ client *river.Client[pgx.Tx] }

// notifyCooldown is how long a process sends no notification of further jobs after it sent one. Jobs inserted in that
// time are notified of by the database, see job_wakes in the migrations.
const notifyCooldown = time.Millisecond

// New returns a Queue on pool.
func New(pool *pgxpool.Pool) (*Queue, error) {
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		FetchCooldown: notifyCooldown, Middleware: trace.Jobs(),
	})
	return &Queue{client: client}, err
}

// Insert inserts a job that starts at a time, the zero time being now. Times are the database's. Which of the jobs that
// may start does so first is decided in the database, see job_place in the migrations. If there is a live job with the
// same unique arguments, Insert returns that one, and inserted is false.
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

// Cancel ends a job, for good if nothing asks for its work again; ErrNotFound of River. One that runs is told to stop.
func (q *Queue) Cancel(ctx context.Context, tx pgx.Tx, job int64) error {
	_, err := q.client.JobCancelTx(ctx, tx, job)
	return err
}

// Retry makes a job that waits or has ended start now; ErrNotFound of River.
func (q *Queue) Retry(ctx context.Context, tx pgx.Tx, job int64) error {
	_, err := q.client.JobRetryTx(ctx, tx, job)
	return err
}

// RunWithin makes a job that waits for a time wait no longer than this, see WakeRetries.
func (q *Queue) RunWithin(ctx context.Context, tx pgx.Tx, job int64, wait time.Duration) error {
	_, err := tx.Exec(ctx, `
		UPDATE river_job
		   SET state = 'retryable', scheduled_at = now() + $2::interval
		 WHERE id = $1 AND state IN ('scheduled', 'retryable') AND scheduled_at > now() + $2::interval`, job, wait)
	return err
}

// Sleeps reports whether a job waits for a time, and not for a worker.
func Sleeps(ctx context.Context, tx pgx.Tx, job int64) (sleeps bool, err error) {
	err = tx.QueryRow(ctx, `
		SELECT EXISTS (
		       SELECT
		         FROM river_job
		        WHERE id = $1 AND state IN ('scheduled', 'retryable'))`, job).Scan(&sleeps)
	return sleeps, err
}

// Promote gives a requested compaction that waits for a worker the priority of one that a threshold asks for.
func (q *Queue) Promote(ctx context.Context, tx pgx.Tx, job int64) error {
	_, err := tx.Exec(ctx, `
		UPDATE river_job
		   SET priority = $2
		 WHERE id = $1 AND priority > $2`, job, thresholdPriority)
	return err
}

// promotedAtOnce bounds how many jobs PromoteOld changes.
const promotedAtOnce = 1000

// PromoteOld does what Promote does for the requested compactions of all tenants that have waited for a minute, so that
// those that thresholds ask for do not precede them for ever. Among these they take turns by tenant.
func PromoteOld(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, `
		UPDATE river_job
		   SET priority = $1
		 WHERE id IN (SELECT id
		                FROM river_job
		               WHERE state = 'available' AND queue = $2 AND priority = $3
		                 AND created_at < now() - interval '1 minute'
		               ORDER BY scheduled_at, id
		               LIMIT $4
		                 FOR UPDATE SKIP LOCKED)`, thresholdPriority, Compaction, manualPriority, promotedAtOnce)
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

// Scrub forgets what jobs of a session that is erased have said of it: the texts of their errors.
func (q *Queue) Scrub(ctx context.Context, tx pgx.Tx, session uuid.UUID) error {
	_, err := tx.Exec(ctx, `
		UPDATE river_job
		   SET errors = NULL
		 WHERE args @> jsonb_build_object('session', $1::text) AND errors IS NOT NULL`, session)
	return err
}

// RunsFor reports whether a job of one of some sessions is running, other than those that erase.
func RunsFor(ctx context.Context, tx pgx.Tx, sessions []uuid.UUID) (runs bool, err error) {
	err = tx.QueryRow(ctx, `
		SELECT EXISTS (
		       SELECT
		         FROM river_job
		        WHERE state = 'running' AND kind <> $2 AND args ->> 'session' = ANY ($1::text[]))`,
		sessions, EraseArgs{}.Kind()).Scan(&runs)
	return runs, err
}

// RunsForTenant reports whether a job of a tenant is running.
func RunsForTenant(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) (runs bool, err error) {
	err = tx.QueryRow(ctx, `
		SELECT EXISTS (
		       SELECT
		         FROM river_job
		        WHERE state = 'running' AND args @> jsonb_build_object('tenant', $1::text))`, tenant).Scan(&runs)
	return runs, err
}

// ForgetTenant deletes the jobs of a tenant, and reports whether there are none any more: one that runs stays.
func ForgetTenant(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) (gone bool, err error) {
	_, err = tx.Exec(ctx, `
		DELETE FROM river_job
		 WHERE state <> 'running' AND args @> jsonb_build_object('tenant', $1::text)`, tenant)
	if err == nil {
		err = tx.QueryRow(ctx, `
			SELECT NOT EXISTS (
			       SELECT
			         FROM river_job
			        WHERE args @> jsonb_build_object('tenant', $1::text))`, tenant).Scan(&gone)
	}
	return gone, err
}

// The tags of jobs whose session's compaction fails.
const (
	Failing     = "failing"
	Quarantined = "quarantined"
)

// Postpone makes a running job wait after a failed attempt, until WakeRetries finds that its time has come. It reports
// whether it did: not if the job is another worker's by now.
func (q *Queue) Postpone(
	ctx context.Context, tx pgx.Tx, job int64, attempt int, wait time.Duration, tag string,
) (bool, error) {
	const kept = 1000 // River has 15 bits for the attempt, and the one that counts is counted by session
	tagged, err := tx.Exec(ctx, `
		UPDATE river_job
		   SET state = CASE WHEN $3::interval <= '0' THEN 'available' ELSE 'retryable' END::river_job_state,
		       scheduled_at = now() + $3::interval,
		       attempt = least(attempt, $4),
		       tags = CASE WHEN $5 = '' THEN tags ELSE ARRAY[$5] END
		 WHERE id = $1 AND attempt = $2 AND state = 'running'`, job, attempt, wait, kept, tag)
	return tagged.RowsAffected() > 0, err
}

// wokenAtOnce bounds how many jobs WakeRetries changes.
const wokenAtOnce = 1000

// longestRetry is longer than a compaction waits after a failure. A later time is one of before the clock was set back.
const longestRetry = 2 * time.Minute

// WakeRetries makes available what waited after a failure and whose time has come. River's leader does so, too, but
// only every few seconds, and there may be no leader at the moment.
func WakeRetries(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, `
		UPDATE river_job
		   SET state = 'available'
		 WHERE id IN (SELECT id
		                FROM river_job
		               WHERE `+slept+`
		               LIMIT $1
		                 FOR UPDATE SKIP LOCKED)`, wokenAtOnce)
	return err
}

// slept is the condition that WakeRetries has work to do with a job.
var slept = fmt.Sprintf(`state = 'retryable'
	AND (scheduled_at <= now() OR kind IN ('compact', 'recompact') AND scheduled_at > now() + interval '%d seconds')`,
	int(longestRetry.Seconds()))

// SleptSQL is the condition that WakeRetries has work to do.
var SleptSQL = `EXISTS (SELECT FROM river_job WHERE ` + slept + `)`

// Tag sets the only tag of a job.
func (q *Queue) Tag(ctx context.Context, tx pgx.Tx, job int64, tag string) error {
	_, err := tx.Exec(ctx, `
		UPDATE river_job
		   SET tags = ARRAY[$2]
		 WHERE id = $1`, job, tag)
	return err
}

// Running is a job that a worker has, by its row.
type Running struct {
	ID      int64
	Kind    string
	Args    json.RawMessage
	Worker  string
	Attempt int
	Last    bool // River would not try it again
}

const lastWorker = `attempted_by[array_upper(attempted_by, 1)]`

// RunningSQL selects as Running what the worker $1 has, and what dead workers had.
const RunningSQL = `
	SELECT id, kind, args, ` + lastWorker + ` AS worker, attempt, attempt >= max_attempts AS last
	  FROM river_job
	 WHERE state = 'running'
	   AND (` + lastWorker + ` = $1 OR ` + lastWorker + ` IN (SELECT w.id FROM workers w WHERE w.dead_at IS NOT NULL))`

// Jobs are the jobs of a queue in a state.
type Jobs struct {
	Queue, State         string
	Count                int
	Oldest               float64 // seconds since the first of them was inserted, or if it is available, could run
	Failing, Quarantined int     // those with these tags
}

// JobsSQL selects as Jobs those that have not ended.
var JobsSQL = `
	SELECT queue, state::text AS state, count(*) AS count,
	       extract(epoch FROM now() - min(CASE WHEN state = 'available' THEN greatest(scheduled_at, created_at)
	                                           ELSE created_at END))::float8 AS oldest,
	       count(*) FILTER (WHERE tags = '{` + Failing + `}') AS failing,
	       count(*) FILTER (WHERE tags = '{` + Quarantined + `}') AS quarantined
	  FROM river_job
	 WHERE state IN (` + liveSQL() + `)
	 GROUP BY queue, state`

// HasRunning returns the SQL condition that the worker with this id has a job, or had one when it died.
func HasRunning(worker string) string {
	return `EXISTS (
	       SELECT
	         FROM river_job j
	        WHERE j.state = 'running' AND j.attempted_by[array_upper(j.attempted_by, 1)] = ` + worker + `)`
}

// Release makes a job available that a worker has no more. It reports whether it did: not if the job has ended or is
// another worker's by now. With discard, the job ends instead.
func (q *Queue) Release(ctx context.Context, tx pgx.Tx, job Running, discard bool) (bool, error) {
	done, err := tx.Exec(ctx, `
		UPDATE river_job
		   SET state = CASE WHEN $4 THEN 'discarded' ELSE 'available' END::river_job_state,
		       scheduled_at = now(),
		       finalized_at = CASE WHEN $4 THEN now() END
		 WHERE id = $1 AND state = 'running' AND `+lastWorker+` = $2 AND attempt = $3`,
		job.ID, job.Worker, job.Attempt, discard)
	return done.RowsAffected() > 0, err
}

// TakeOver makes available at once what waits after a failure, and what processes had that kept no row in workers. No
// other process may be working on the database.
func TakeOver(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, `
		UPDATE river_job
		   SET state = 'available', scheduled_at = now()
		 WHERE state = 'retryable'
		    OR state = 'running' AND `+lastWorker+` NOT IN (SELECT w.id FROM workers w)`)
	return err
}
