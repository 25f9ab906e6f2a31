package recompact

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// The long statements on the sessions of recompactions.
var (
	//go:embed advance.sql
	advanceSQL string
	//go:embed end_session.sql
	endSessionSQL string
	//go:embed end_attempts.sql
	endAttemptsSQL string
)

// maxAttempts bounds how often a session of a recompaction may fail.
const maxAttempts = 3

// Job names a session of a recompaction.
type Job struct {
	session.Key
	Recompaction uuid.UUID
}

// Sessions lists the sessions of a recompaction by age; it ignores the page's Time. ErrNotFound.
func (s store) Sessions(ctx context.Context, tenant, id uuid.UUID, page session.Page) ([]RecompactionSession, error) {
	return postgres.ReadTx(ctx, s.Seeing(postgres.AllSessions), tenant, func(tx pgx.Tx) ([]RecompactionSession, error) {
		cancelled, err := postgres.RowIn(ctx, tx, pgx.RowTo[bool], `
			SELECT state IN ('cancelling', 'cancelled')
			  FROM recompactions
			 WHERE tenant_id = $1 AND id = $2`, tenant, id)
		if err != nil {
			return nil, err
		}
		return postgres.RowsIn(ctx, tx, pgx.RowToStructByName[RecompactionSession], `
			SELECT l.session_key AS key,
			       (SELECT s.id FROM sessions s WHERE s.tenant_id = $1 AND s.key = l.session_key) AS session,
			       CASE WHEN l.state = 'queued' AND $5 THEN 'cancelled' ELSE coalesce(l.rollback, l.state) END AS state,
			       l.failures, l.run_id AS run, l.tokens_before, l.tokens_after, l.error, l.reason, l.finished_at
			  FROM recompaction_sessions l
			 WHERE l.tenant_id = $1
			   AND l.recompaction_id <= $2 -- an equality would let the planner look through those of others
			   AND (l.recompaction_id, l.session_key) > ($2, $3)
			 ORDER BY l.recompaction_id, l.session_key
			 LIMIT $4`, tenant, id, page.ID, page.Limit, cancelled)
	})
}

// locked is a recompaction's row while this transaction holds its lock. A session's lock must be taken
// before it.
type locked struct {
	TenantID, ID uuid.UUID
	State        RecompactionState // as if it were neither paused nor rolled back
	Filter       session.SessionFilter
	Policy       json.RawMessage
	Pace
	NextStart   *time.Time
	Ask         bool
	Cursor      uuid.UUID
	CreatedAt   time.Time
	Paused      bool
	RollingBack bool
	RolledBack  bool
	Told        int       // tenths of its sessions that it has told to be done
	Now         time.Time // of the database
}

// goesOn reports whether sessions may begin.
func (c *locked) goesOn() bool {
	return c.State == Running && !c.Paused
}

func lock(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) (locked, error) {
	return postgres.RowIn(ctx, tx, pgx.RowToStructByName[locked], `
		SELECT tenant_id, id, state, filter, policy, max_running, per_minute, start_at, hours,
		       next_start_at AS next_start, ask, cursor, created_at, paused_at IS NOT NULL AS paused,
		       rollback_at IS NOT NULL AS rolling_back, rolled_back_at IS NOT NULL AS rolled_back,
		       told, clock_timestamp() AS now
		  FROM recompactions
		 WHERE tenant_id = $1 AND id = $2
		   FOR NO KEY UPDATE`, tenant, id)
}

// advance inserts jobs for the next sessions, up to the number that may run at once, ends the recompaction when no
// session is left, tells how many are done, and lets the rollback of one that has ended begin. Under the recompaction's
// lock it may be called at any time, and does nothing twice.
func (s store) advance(ctx context.Context, tx pgx.Tx, c locked) error {
	if c.goesOn() {
		if err := s.begin(ctx, tx, c); err != nil {
			return err
		}
	}
	err := emitAdvanced(ctx, tx, c.TenantID, c.ID, c.Told, advanceSQL,
		pgx.NamedArgs{"tenant": c.TenantID, "id": c.ID, "state": string(c.State)})
	if err != nil || !c.RollingBack || c.RolledBack {
		return err
	}
	return s.rollBackIfEnded(ctx, tx, c)
}

// begin inserts the jobs of the next sessions that may begin now, or one that asks again when their time comes. It
// skips a session that is being erased. Each session is updated by its key: joined with those that were selected, the
// plan would read the whole recompaction for every session that ends.
func (s store) begin(ctx context.Context, tx pgx.Tx, c locked) error {
	allowed, err := c.allowed()
	if err != nil {
		return err
	}
	if allowed == 0 {
		return s.beginLater(ctx, tx, c)
	}
	keys, err := postgres.RowsIn(ctx, tx, pgx.RowTo[uuid.UUID], `
		SELECT session_key
		  FROM recompaction_sessions
		 WHERE tenant_id = $1 AND recompaction_id = $2 AND state = 'queued' AND finished_at IS NULL
		 ORDER BY failures, session_key
		 LIMIT least($4, greatest(0, $3 - (SELECT count(*)
		                                     FROM recompaction_sessions
		                                    WHERE tenant_id = $1 AND recompaction_id = $2 AND state = 'running'
		                                      AND finished_at IS NULL)))
		   FOR UPDATE SKIP LOCKED`, c.TenantID, c.ID, c.MaxRunning, allowed)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := s.beginSession(ctx, tx, c, key); err != nil {
			return err
		}
	}
	if c.PerMinute == nil || len(keys) == 0 {
		return nil
	}
	c.count(len(keys))
	return s.beginLater(ctx, tx, c)
}

func (s store) beginSession(ctx context.Context, tx pgx.Tx, c locked, key uuid.UUID) error {
	args := sessionArgs{Tenant: c.TenantID, Recompaction: c.ID, Session: key}
	job, _, err := s.Queue().Insert(ctx, tx, args, time.Time{})
	if err != nil {
		return err
	}
	return postgres.Exec(ctx, tx, `
		UPDATE recompaction_sessions
		   SET state = 'running', job_id = $4
		 WHERE tenant_id = $1 AND recompaction_id = $2 AND session_key = $3`, c.TenantID, c.ID, key, job)
}

// Work is the compaction of a session of a recompaction, for a worker.
type Work struct {
	Run    uuid.UUID
	Policy json.RawMessage // changes to the session's policy, nil for none
	Ask    bool            // models are asked for the summaries that are not kept
}

// errJobLost is recorded of a session whose job disappeared.
var errJobLost = errors.New("its job was lost")

// Start begins an attempt at a session of a recompaction, with its run. A worker that takes over from one
// that died continues that one's run.
//
// Errors: ErrNotFound if the session is gone; ErrEnded if another worker of the job has done the work, or the
// recompaction is not running or is paused.
func (s store) Start(ctx context.Context, job Job) (Work, error) {
	return postgres.InTx(ctx, s.Store, job.Tenant, func(tx pgx.Tx) (work Work, err error) {
		if _, err := postgres.LockKey(ctx, tx, job.Key); err != nil {
			return work, err
		}
		c, err := lock(ctx, tx, job.Tenant, job.Recompaction)
		if err != nil {
			return work, err
		}
		if !c.goesOn() {
			return work, session.ErrEnded
		}
		work.Policy, work.Ask = c.Policy, c.Ask
		work.Run, err = beginAttempt(ctx, tx, job)
		return work, err
	})
}

// beginAttempt continues the run of the attempt before if that one runs, or inserts a new run.
func beginAttempt(ctx context.Context, tx pgx.Tx, job Job) (run uuid.UUID, err error) {
	run, err = postgres.RowIn(ctx, tx, pgx.RowTo[uuid.UUID], `
		UPDATE runs r
		   SET started_at = now()
		  FROM recompaction_sessions l
		 WHERE l.tenant_id = $1 AND l.recompaction_id = $2 AND l.session_key = $3 AND l.state = 'running'
		   AND r.tenant_id = $1 AND r.id = l.run_id AND r.state = 'running'
		RETURNING r.id`, job.Tenant, job.Recompaction, job.Key.Key)
	if !errors.Is(err, session.ErrNotFound) {
		return run, err
	}
	run = uuid.Must(uuid.NewV7())
	return run, postgres.ExecOne(ctx, tx, session.ErrEnded, `
		WITH begun AS (
			UPDATE recompaction_sessions
			   SET run_id = $4
			 WHERE tenant_id = $1 AND recompaction_id = $2 AND session_key = $3 AND state = 'running'
			RETURNING job_id
		)
		INSERT INTO runs (tenant_id, id, session_key, cause, state, job_id, started_at)
		SELECT $1, $4, $3, 'recompaction', 'running', job_id, now()
		  FROM begun`, job.Tenant, job.Recompaction, job.Key.Key, run)
}

// ended records in the transaction of a session's checkpoint how the session ended, and starts the next one;
// ErrEnded if another worker of the job did so before.
func (s store) ended(ctx context.Context, tx pgx.Tx, job Job, o postgres.Outcome) error {
	c, err := lock(ctx, tx, job.Tenant, job.Recompaction)
	if err != nil {
		return err
	}
	after := *o.Run.TokensAfter
	err = postgres.ExecOne(ctx, tx, session.ErrEnded, endSessionSQL, pgx.NamedArgs{
		"tenant": job.Tenant, "recompaction": job.Recompaction, "session": job.Key.Key,
		"changed": o.Checkpoint != nil, "before": after + o.Saved, "after": after, "base": o.Base, "made": o.Newest(),
	})
	if err != nil {
		return err
	}
	return s.advance(ctx, tx, c)
}

// End ends an attempt at a session that made no checkpoint, and starts the next session. The cause
// decides: after ErrNotFound the session is removed from the recompaction, after ErrEnded it stays as it is, and after
// any other error it is tried again when all others were, up to maxAttempts times.
func (s store) End(ctx context.Context, job Job, cause error, id int64) error {
	return s.InTenant(ctx, job.Tenant, func(tx pgx.Tx) error {
		if err := s.Queue().Complete(ctx, tx, id); err != nil {
			return err
		}
		c, err := lock(ctx, tx, job.Tenant, job.Recompaction)
		if errors.Is(err, session.ErrNotFound) {
			return nil // it was pruned
		}
		if err != nil {
			return err
		}
		if errors.Is(cause, session.ErrNotFound) {
			err = dropErased(ctx, tx, job)
		} else {
			err = endAttempts(ctx, tx, c, []uuid.UUID{job.Key.Key}, cause)
		}
		if err != nil {
			return err
		}
		return s.advance(ctx, tx, c)
	})
}

// dropErased removes a session from its recompaction that was erased after it was found.
func dropErased(ctx context.Context, tx pgx.Tx, job Job) error {
	return postgres.Exec(ctx, tx, `
		WITH gone AS (
			DELETE FROM recompaction_sessions
			 WHERE tenant_id = $1 AND recompaction_id = $2 AND session_key = $3
			RETURNING 1
		)
		UPDATE recompactions
		   SET skipped = skipped + (SELECT count(*) FROM gone)
		 WHERE tenant_id = $1 AND id = $2`, job.Tenant, job.Recompaction, job.Key.Key)
}

// endAttempts ends the runs of sessions whose attempt failed or was lost. Sessions that have used up their attempts
// have failed; the others are queued again.
func endAttempts(ctx context.Context, tx pgx.Tx, c locked, keys []uuid.UUID, cause error) error {
	reason, _, _ := strings.Cut(cause.Error(), "\n") // the lines after it are a stack, which belongs in the log
	failed := !errors.Is(cause, session.ErrEnded)
	attempts := maxAttempts
	var invalid *session.InvalidError
	if errors.As(cause, &invalid) || errors.Is(cause, session.ErrLogTooLarge) {
		attempts = 1 // it would fail again
	}
	return postgres.Exec(ctx, tx, endAttemptsSQL, pgx.NamedArgs{
		"tenant": c.TenantID, "id": c.ID, "sessions": keys,
		"failed": failed, "reason": postgres.Text(reason), "attempts": attempts,
	})
}

// Requeue repairs a tenant's recompactions that have not ended: a session whose job was lost is tried
// again, and so are the search for sessions and the rollback. It returns how many jobs were lost.
func (s store) Requeue(ctx context.Context, tenant uuid.UUID) (lost int, err error) {
	sql := `
		SELECT id
		  FROM recompactions
		 WHERE tenant_id = $1 AND (finished_at IS NULL OR rollback_at IS NOT NULL AND rolled_back_at IS NULL)`
	return postgres.EachOf(ctx, s.Store, tenant, sql, func(id uuid.UUID) (int, error) {
		n, err := postgres.InTx(ctx, s.Store, tenant, func(tx pgx.Tx) (int, error) {
			return s.requeueOne(ctx, tx, tenant, id)
		})
		if err != nil {
			return 0, fmt.Errorf("recompaction %s: %w", id, err)
		}
		return n, nil
	})
}

func (s store) requeueOne(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) (lost int, err error) {
	c, err := lock(ctx, tx, tenant, id)
	if err != nil {
		return 0, err
	}
	if c.State == Queued {
		return 0, s.insertFill(ctx, tx, tenant, id, time.Time{})
	}
	keys, err := postgres.RowsIn(ctx, tx, pgx.RowTo[uuid.UUID], `
		SELECT l.session_key
		  FROM recompaction_sessions l
		 WHERE l.tenant_id = $1
		   AND l.recompaction_id = $2
		   AND l.state = 'running'
		   AND l.finished_at IS NULL
		   AND NOT `+queue.IsLive(`l.job_id`), tenant, id)
	if err != nil {
		return 0, err
	}
	if err := endAttempts(ctx, tx, c, keys, errJobLost); err != nil {
		return 0, err
	}
	return len(keys), s.advance(ctx, tx, c)
}

// emit tells that a recompaction has begun, or ended with some counts.
func emit(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, kind session.EventType, data map[string]any) error {
	data["recompaction"] = id
	topic := "recompaction/" + id.String()
	return postgres.Emit(ctx, tx, tenant, postgres.Happening{Kind: kind, Topic: topic, Data: data})
}

// emitAdvanced executes an update of a recompaction, and tells that it has ended, or that more tenths of its sessions
// are done than it has told of before.
func emitAdvanced(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, told int, sql string, args ...any) error {
	var state RecompactionState
	var ended bool
	var tenths int
	var total, changed, unchanged, failed, skipped, before, after int64
	err := tx.QueryRow(ctx, sql+`
		RETURNING CASE WHEN state = 'running' AND paused_at IS NOT NULL THEN 'paused' ELSE state END,
		          finished_at IS NOT NULL, told, total, changed, unchanged, failed, skipped, tokens_before,
		          tokens_after`, args...).
		Scan(&state, &ended, &tenths, &total, &changed, &unchanged, &failed, &skipped, &before, &after)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && !ended && tenths <= told {
		return nil
	}
	if err != nil {
		return err
	}
	data := map[string]any{
		"state": state, "total": total, "changed": changed, "unchanged": unchanged, "failed": failed,
		"skipped": skipped, "tokens_before": before, "tokens_after": after,
	}
	if ended {
		return emit(ctx, tx, tenant, id, session.EventRecompactionEnded, data)
	}
	data["percent"] = 10 * tenths
	return emit(ctx, tx, tenant, id, session.EventRecompactionProgress, data)
}
