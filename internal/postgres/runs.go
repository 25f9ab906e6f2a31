package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/session"
)

// insertRun records a run whose job this transaction inserts.
func insertRun(ctx context.Context, tx pgx.Tx, key session.Key, run uuid.UUID, job int64, cause string) error {
	return Exec(ctx, tx, `
		INSERT INTO runs (tenant_id, id, session_key, cause, state, job_id)
		VALUES ($1, $2, $3, $4, 'queued', $5)`, key.Tenant, run, key.Key, cause, job)
}

const runColumns = `
	r.id, r.cause, r.state, r.base_n AS base, r.checkpoint_n AS checkpoint, r.through_seq AS through, r.tokens_before,
	r.tokens_after, r.results_persisted, r.bytes_persisted, r.stages, r.timings, r.reason, r.why, r.report, r.error,
	r.triggered_at, r.started_at, r.finished_at`

var scanRun = pgx.RowToStructByName[session.Run]

// Compact asks for a compaction now, due or not, and returns its run. If the session has a live job already, that job
// starts now and its run is returned.
//
// Errors: ErrNotFound, ErrIdempotencyReused.
func (s *Store) Compact(ctx context.Context, at session.Address, id *session.Idempotency) (session.Run, bool, error) {
	return onceInSession(ctx, s, at, id, func(tx pgx.Tx, row lockedSession) (session.Run, error) {
		return s.compactFor(ctx, tx, row, at, audit.Compact)
	})
}

// Retry does what Compact does, for a session whose compaction fails; ErrNotFound for another.
func (s *Store) Retry(ctx context.Context, at session.Address, id *session.Idempotency) (session.Run, bool, error) {
	return onceInSession(ctx, s, at, id, func(tx pgx.Tx, row lockedSession) (session.Run, error) {
		fails, err := RowIn(ctx, tx, pgx.RowTo[bool], `
			SELECT EXISTS (SELECT FROM session_failures WHERE tenant_id = $1 AND session_key = $2)`,
			row.Tenant, row.Key.Key)
		if err == nil && !fails {
			err = session.ErrNotFound
		}
		if err != nil {
			return session.Run{}, err
		}
		return s.compactFor(ctx, tx, row, at, audit.FailureRetry)
	})
}

// compactFor does what compactNow does, and records it.
func (s *Store) compactFor(
	ctx context.Context, tx pgx.Tx, row lockedSession, at session.Address, action audit.Action,
) (session.Run, error) {
	run, err := s.compactNow(ctx, tx, row.Key)
	if err != nil {
		return run, err
	}
	return run, recordSession(ctx, tx, at, action, about{"run": run.ID})
}

// compactNow asks for a compaction now and returns its run.
func (s *Store) compactNow(ctx context.Context, tx pgx.Tx, key session.Key) (session.Run, error) {
	if _, _, err := s.enqueue(ctx, tx, key, causeManual, time.Time{}, true); err != nil {
		return session.Run{}, err
	}
	return RowIn(ctx, tx, scanRun, `
		SELECT `+runColumns+`
		  FROM runs r
		 WHERE r.tenant_id = $1 AND r.session_key = $2 AND r.cause <> 'recompaction'
		 ORDER BY (r.state IN ('queued', 'running')) DESC, r.triggered_at DESC, r.id DESC
		 LIMIT 1`, key.Tenant, key.Key)
}

// Run reads a run of a session; ErrNotFound.
func (s *Store) Run(ctx context.Context, at session.Address, id uuid.UUID) (session.Run, error) {
	sql := `
		SELECT ` + runColumns + `
		  FROM runs r
		  JOIN sessions s ON s.tenant_id = r.tenant_id AND s.key = r.session_key
		 WHERE r.tenant_id = $1 AND r.id = $2 AND s.id = $3`
	return QueryRow(ctx, s, at.Tenant, scanRun, sql, at.Tenant, id, at.ID)
}

// Runs lists a session's runs, newest first; ErrNotFound if there is no such session.
func (s *Store) Runs(ctx context.Context, at session.Address, page session.Page) ([]session.Run, error) {
	return InSession(ctx, s, at, func(tx pgx.Tx, key session.Key) ([]session.Run, error) {
		return RowsIn(ctx, tx, scanRun, `
			SELECT `+runColumns+`
			  FROM runs r
			 WHERE r.tenant_id = $1
			   AND r.session_key = $5`+NewestFirst(`r.triggered_at`, `r.id`),
			append(PageArgs(at.Tenant, page), key.Key)...)
	})
}

// StartRun marks a run as running and returns its cause. A run that a threshold asked for ends here if its session is
// not due any more, because it was restored or has a larger window now; if a model has answered meanwhile, it takes the
// answer in instead.
//
// Errors: ErrNotFound if the session is gone; ErrEnded if the run has ended, because another worker of its job did the
// work or because it ends here.
func (s *Store) StartRun(ctx context.Context, key session.Key, run uuid.UUID) (cause string, err error) {
	var due bool
	err = s.underLock(ctx, key, func(tx pgx.Tx, row lockedSession) error {
		due = true
		err = tx.QueryRow(ctx, `
			UPDATE runs
			   SET state = 'running', started_at = now(), error = NULL
			 WHERE tenant_id = $1 AND id = $2 AND state IN ('queued', 'running')
			RETURNING cause`, key.Tenant, run).Scan(&cause)
		if errors.Is(err, pgx.ErrNoRows) {
			return session.ErrEnded
		}
		if err != nil || row.asksFor(cause) {
			return err
		}
		if err = row.readImages(ctx, tx); err != nil || row.asksFor(cause) {
			return err
		}
		if due, err = pendingSummary(ctx, tx, key); err != nil {
			return err
		}
		if !due {
			return endStarted(ctx, tx, key, run)
		}
		cause = causeSummary
		return setCause(ctx, tx, key, run, cause)
	})
	if err == nil && !due {
		err = session.ErrEnded
	}
	return cause, err
}

// endStarted ends a run whose session is not due any more.
func endStarted(ctx context.Context, tx pgx.Tx, key session.Key, run uuid.UUID) error {
	return Exec(ctx, tx, `
		UPDATE runs
		   SET state = 'postponed', reason = 'the session is not due any more', finished_at = now()
		 WHERE tenant_id = $1 AND id = $2`, key.Tenant, run)
}

func setCause(ctx context.Context, tx pgx.Tx, key session.Key, run uuid.UUID, cause string) error {
	return Exec(ctx, tx, `
		UPDATE runs
		   SET cause = $3
		 WHERE tenant_id = $1 AND id = $2`, key.Tenant, run, cause)
}

// asksFor reports whether a run with this cause must be done: the session is due, or the cause does not depend on
// that.
func (l lockedSession) asksFor(cause string) bool {
	isDue := true
	switch cause {
	case "threshold", "hard", "sweep", "follow_up":
		_, isDue = l.overTrigger()
	case causeIdle:
		_, isDue = l.reached()
	}
	return isDue
}

// SnoozeRun marks a run as queued again, records why, and makes its job wait, all in one transaction: a request that
// comes later finds the job waiting and starts it.
//
// Errors: ErrNotFound; ErrEnded; ErrRunRequested if the run was requested to start now before, for another cause than
// the one that run has.
func (s *Store) SnoozeRun(ctx context.Context, key session.Key, run session.Run, job int64, wait time.Duration) error {
	return s.underLock(ctx, key, func(tx pgx.Tx, _ lockedSession) error {
		if err := refuseRequested(ctx, tx, key, run); err != nil {
			return err
		}
		err := ExecOne(ctx, tx, session.ErrEnded, `
			UPDATE runs
			   SET state = 'queued', started_at = NULL, reason = $3, why = $4
			 WHERE tenant_id = $1 AND id = $2 AND state = 'running'`,
			key.Tenant, run.ID, run.Reason, orEmpty(run.Why, `{}`))
		if err != nil {
			return err
		}
		return s.queue.Snooze(ctx, tx, job, wait)
	})
}

// requestRun records on the run of a live job what requested it to start now. Only a person, the hard limit and damage
// do not wait for a cold cache, and a trigger takes the place of an idle session. The cause of a manual run is kept.
func requestRun(ctx context.Context, tx pgx.Tx, key session.Key, job int64, cause string) error {
	return Exec(ctx, tx, `
		UPDATE runs
		   SET cause = CASE WHEN cause = 'idle'
		                      OR cause NOT IN ('manual', 'recompaction') AND $4 IN ('manual', 'hard', 'damage')
		                    THEN $4
		                    ELSE cause END
		 WHERE tenant_id = $1 AND session_key = $2 AND job_id = $3 AND state IN ('queued', 'running')`,
		key.Tenant, key.Key, job, cause)
}

// endLostRuns ends the runs of a session that has no live job, except those of recompactions, which have their own
// jobs.
func endLostRuns(ctx context.Context, tx pgx.Tx, key session.Key) error {
	return Exec(ctx, tx, `
		UPDATE runs
		   SET state = 'failed', error = $3, finished_at = now()
		 WHERE tenant_id = $1 AND session_key = $2 AND state IN ('queued', 'running') AND cause <> 'recompaction'`,
		key.Tenant, key.Key, jobLost)
}

// finishRun records how a run ended, unless another worker of its job did so before.
func finishRun(ctx context.Context, tx pgx.Tx, key session.Key, r session.Run) error {
	return Exec(ctx, tx, `
		UPDATE runs
		   SET state = $3, base_n = $4, checkpoint_n = $5, through_seq = $6, tokens_before = $7, tokens_after = $8,
		       results_persisted = $9, bytes_persisted = $10, stages = $11, timings = $12, reason = $13, why = $14,
		       report = $15, error = NULL, finished_at = clock_timestamp()
		 WHERE tenant_id = $1 AND id = $2 AND state IN ('queued', 'running')`,
		key.Tenant, r.ID, r.State, r.Base, r.Checkpoint, r.Through, r.TokensBefore, r.TokensAfter,
		r.ResultsPersisted, r.BytesPersisted, orEmpty(r.Stages, `[]`), orEmpty(r.Timings, `{}`), Text(r.Reason),
		orEmpty(r.Why, `{}`), orEmpty(r.Report, `{}`))
}

func orEmpty(document json.RawMessage, empty string) json.RawMessage {
	if document == nil {
		return json.RawMessage(empty)
	}
	return document
}
