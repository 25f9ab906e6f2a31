package recompact

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// rollBackIfEnded inserts the job that rolls a recompaction's sessions back, unless there is a live one or sessions are
// still running: the last of these asks again.
func (s store) rollBackIfEnded(ctx context.Context, tx pgx.Tx, c locked) error {
	ended, err := postgres.RowIn(ctx, tx, pgx.RowTo[bool], `
		SELECT finished_at IS NOT NULL
		  FROM recompactions
		 WHERE tenant_id = $1 AND id = $2`, c.TenantID, c.ID)
	if err != nil || !ended {
		return err
	}
	_, _, err = s.Queue().Insert(ctx, tx, rollbackArgs{Tenant: c.TenantID, Recompaction: c.ID}, time.Time{})
	return err
}

// NextToRollBack returns sessions behind another one that a recompaction has changed and that are not rolled back yet,
// at most limit.
func (s store) NextToRollBack(
	ctx context.Context, tenant, recompaction, after uuid.UUID, limit int,
) ([]uuid.UUID, error) {
	return postgres.QueryRows(ctx, s.Store, tenant, pgx.RowTo[uuid.UUID], `
		SELECT l.session_key
		  FROM recompactions r
		  JOIN recompaction_sessions l ON l.tenant_id = $1 AND l.recompaction_id = r.id
		 WHERE r.tenant_id = $1 AND r.id = $2 AND r.finished_at IS NOT NULL AND r.rolled_back_at IS NULL
		   AND l.session_key > $3 AND l.state = 'changed' AND l.rollback IS NULL
		 ORDER BY l.session_key
		 LIMIT $4`, tenant, recompaction, after, limit)
}

// ContinueRollback completes the job of a rollback. If sessions may be left it inserts another one, otherwise the
// rollback has ended.
func (s store) ContinueRollback(ctx context.Context, of Job, job int64, left bool) error {
	return s.InTenant(ctx, of.Tenant, func(tx pgx.Tx) error {
		c, err := lock(ctx, tx, of.Tenant, of.Recompaction)
		if errors.Is(err, session.ErrNotFound) {
			return s.Queue().Complete(ctx, tx, job) // it was pruned
		}
		if err != nil {
			return err
		}
		if err := s.Queue().Complete(ctx, tx, job); err != nil {
			return err
		}
		if left {
			return s.rollBackIfEnded(ctx, tx, c)
		}
		return postgres.Exec(ctx, tx, `
			UPDATE recompactions
			   SET rolled_back_at = now()
			 WHERE tenant_id = $1 AND id = $2 AND rollback_at IS NOT NULL AND rolled_back_at IS NULL
			   AND finished_at IS NOT NULL`, of.Tenant, of.Recompaction)
	})
}

// changedSession is what a recompaction has done to a session, and what happened since.
type changedSession struct {
	Base, Made *int // checkpoints; nil if an older program did not write them down
	Newer      bool // a checkpoint was made since, and not because a model has answered
	Removed    bool // a message that the base shows was removed since
	Appended   bool // messages were appended since
}

// RollBackSession brings a session back to what it served before a recompaction changed it, with what was appended
// since behind that. A session that went on, or whose checkpoint of before is gone, stays as it is: that is written
// down as the reason why it is excepted. Doing it twice changes nothing.
func (s store) RollBackSession(ctx context.Context, job Job) error {
	return s.InTenant(ctx, job.Tenant, func(tx pgx.Tx) error {
		row, err := postgres.LockKey(ctx, tx, job.Key)
		if errors.Is(err, session.ErrNotFound) {
			return nil // it was erased, and is not in the recompaction any more
		}
		if err != nil {
			return err
		}
		c, err := lock(ctx, tx, job.Tenant, job.Recompaction)
		if err != nil {
			return err
		}
		changed, err := readChanged(ctx, tx, job, row)
		if errors.Is(err, session.ErrNotFound) || err == nil && c.RolledBack {
			return nil // it is rolled back already
		}
		if err != nil {
			return err
		}
		kept, err := goBefore(ctx, tx, row, changed)
		if err != nil {
			return err
		}
		return noteRolledBack(ctx, tx, job, kept)
	})
}

// ExceptFromRollback writes down why a session is not rolled back.
func (s store) ExceptFromRollback(ctx context.Context, job Job, reason string) error {
	return s.InTenant(ctx, job.Tenant, func(tx pgx.Tx) error {
		if _, err := lock(ctx, tx, job.Tenant, job.Recompaction); err != nil {
			return err
		}
		return noteRolledBack(ctx, tx, job, reason)
	})
}

//go:embed changed_session.sql
var changedSQL string

// readChanged returns ErrNotFound for a session that the recompaction has not changed, or that was rolled back.
func readChanged(ctx context.Context, tx pgx.Tx, job Job, row postgres.Locked) (changedSession, error) {
	return postgres.RowIn(ctx, tx, pgx.RowToStructByName[changedSession], changedSQL, pgx.NamedArgs{
		"tenant": job.Tenant, "recompaction": job.Recompaction, "session": job.Key.Key, "last_seq": row.LastSeq,
		"summary": "summary",
	})
}

// excepted returns why the session, whose newest checkpoint has this number, stays as it is; "" if it does not.
func (c *changedSession) excepted(newest int) string {
	switch {
	case c.Made == nil:
		return "an older version of Varve ended it, and did not write down what it served before"
	case c.Newer:
		return fmt.Sprintf("it went on: checkpoint %d was made since", newest)
	case c.Removed:
		return "it went on: a message that its view of before shows was removed since"
	}
	return ""
}

// goBefore brings a session back to before it was changed. If it stays as it is, kept is why.
func goBefore(ctx context.Context, tx pgx.Tx, row postgres.Locked, c changedSession) (kept string, err error) {
	if kept = c.excepted(row.Checkpoint); kept != "" {
		return kept, nil
	}
	err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { // what a refused one has written is undone
		reason := fmt.Sprintf("the recompaction that made checkpoint %d was rolled back", *c.Made)
		return row.ReturnTo(ctx, tx, *c.Base, c.Appended, reason)
	})
	var damaged *session.DamagedError
	switch {
	case errors.Is(err, postgres.ErrOutgrown), errors.Is(err, session.ErrPruned),
		errors.Is(err, session.ErrLogTooLarge), errors.As(err, &damaged):
		return err.Error(), nil
	}
	return "", err
}

// noteRolledBack writes down what became of a session; reason is why it is excepted, or "".
func noteRolledBack(ctx context.Context, tx pgx.Tx, job Job, reason string) error {
	return postgres.Exec(ctx, tx, `
		WITH noted AS (
			UPDATE recompaction_sessions
			   SET rollback = CASE WHEN $4 = '' THEN 'rolled_back' ELSE 'excepted' END, reason = nullif($4, '')
			 WHERE tenant_id = $1 AND recompaction_id = $2 AND session_key = $3 AND rollback IS NULL
			RETURNING rollback
		)
		UPDATE recompactions
		   SET rolled_back = rolled_back + (SELECT count(*) FROM noted WHERE rollback = 'rolled_back'),
		       excepted = excepted + (SELECT count(*) FROM noted WHERE rollback = 'excepted')
		 WHERE tenant_id = $1 AND id = $2`, job.Tenant, job.Recompaction, job.Key.Key, postgres.Text(reason))
}
