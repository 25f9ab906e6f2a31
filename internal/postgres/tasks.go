package postgres

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// TaskKind is what the sweep looks after for a tenant.
type TaskKind string

// The kinds of tasks. One that may be needed is written down where the need arises, and deleted when there is none.
const (
	TaskPolicy   TaskKind = "policy"   // sessions that another default of the tenant makes due
	TaskMetadata TaskKind = "metadata" // sessions whose metadata the filters may not find by its pairs yet
	TaskErasure  TaskKind = "erasure"  // of which the tasks of the nil tenant are operators'
)

// Task is something to look after.
type Task struct {
	Tenant uuid.UUID
	Kind   TaskKind
	Cursor uuid.UUID // of TaskPolicy and TaskMetadata: the last session that was looked at
	Since  time.Time
}

// AddTask writes a task down, or begins it anew.
func AddTask(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, kind TaskKind) error {
	return Exec(ctx, tx, `
		INSERT INTO tenant_tasks AS c (tenant_id, kind)
		VALUES ($1, $2)
		ON CONFLICT (tenant_id, kind) DO UPDATE
		   SET cursor = excluded.cursor, since = excluded.since`, tenant, kind)
}

// Duty is what the sweep does for the tenants that have a kind of task.
type Duty struct {
	Kind   TaskKind
	Job    string // kind of the job that does it for a tenant: while it is live, nobody else need; "" for none
	Needed string // the condition, in SQL, that the tenant $1 still needs it
	Do     func(ctx context.Context, tenant uuid.UUID) error
}

// Tasks returns tasks of a kind of all tenants, those first that were looked after the longest ago, at most limit.
func (s *Store) Tasks(ctx context.Context, kind TaskKind, limit int) ([]Task, error) {
	return s.TasksOf(ctx, Duty{Kind: kind}, limit)
}

// TasksOf returns what Tasks does, without those whose job is live.
func (s *Store) TasksOf(ctx context.Context, d Duty, limit int) ([]Task, error) {
	idle := `true`
	if d.Job != "" {
		idle = `NOT ` + queue.HasLive(d.Job, `tenant`, `tenant_id`)
	}
	rows, err := s.pool.Query(ctx, `
		SELECT tenant_id AS tenant, kind, cursor, since
		  FROM tenant_tasks
		 WHERE kind = $1
		   AND `+idle+`
		 ORDER BY since
		 LIMIT $2`, d.Kind, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[Task])
}

// EndTaskUnless deletes a task that was looked after, unless it was begun anew meanwhile or a condition holds.
func (s *Store) EndTaskUnless(ctx context.Context, c Task, condition string) error {
	return s.InTenant(ctx, c.Tenant, func(tx pgx.Tx) error {
		return Exec(ctx, tx, `
			DELETE FROM tenant_tasks
			 WHERE tenant_id = $1
			   AND kind = $2
			   AND since = $3
			   AND NOT (`+cmp.Or(condition, `false`)+`)`, c.Tenant, c.Kind, c.Since)
	})
}

// AuditTenant looks at the next sessions of a tenant whose default has changed, at most limit, and asks for the
// compaction of those that it makes due. What waits until a cache is cold, or a session idle, decides anew. It ends the
// task with the last session.
func (s *Store) AuditTenant(ctx context.Context, c Task, limit int) (looked, inserted int, err error) {
	seen, err := s.audit(ctx, c.Tenant, c.Cursor, limit)
	if err == nil {
		err = s.wakeWaiting(ctx, c.Tenant, c.Cursor, seen.last)
	}
	if err != nil {
		return seen.sessions, seen.inserted, err
	}
	if seen.sessions < limit {
		return seen.sessions, seen.inserted, s.EndTaskUnless(ctx, c, "")
	}
	return seen.sessions, seen.inserted, s.advanceTask(ctx, c, seen.last)
}

// wakeWaiting starts the jobs that wait for a better moment, of sessions after one key up to another. Recompactions
// have a pace of their own.
func (s *Store) wakeWaiting(ctx context.Context, tenant, after, last uuid.UUID) error {
	waiting, err := QueryRows(ctx, s, tenant, pgx.RowToStructByPos[waitingRun], `
		SELECT session_key, job_id, cause
		  FROM runs
		 WHERE tenant_id = $1 AND state = 'queued' AND cause <> 'recompaction'
		   AND session_key > $2 AND session_key <= $3`, tenant, after, last)
	for i := 0; i < len(waiting) && err == nil; i++ {
		run, key := waiting[i], session.Key{Tenant: tenant, Key: waiting[i].Session}
		err = s.underLock(ctx, key, func(tx pgx.Tx, _ lockedSession) error {
			return s.startRetry(ctx, tx, key, run.Job, run.Cause)
		})
		if errors.Is(err, session.ErrNotFound) {
			err = nil
		}
	}
	return err
}

type waitingRun struct {
	Session uuid.UUID
	Job     int64
	Cause   string
}

// advanceTask records the last session that was looked at, unless the task was begun anew meanwhile.
func (s *Store) advanceTask(ctx context.Context, c Task, last uuid.UUID) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE tenant_tasks
		   SET cursor = $4
		 WHERE tenant_id = $1 AND kind = $2 AND since = $3`, c.Tenant, c.Kind, c.Since, last)
	return err
}

// AuditNext continues with the round through the sessions of all tenants, which finds those that are due without a row.
// It looks at no more than this many sessions and tenants, and returns how many jobs it inserted.
func (s *Store) AuditNext(ctx context.Context, sessions, tenants int) (inserted int, err error) {
	var at session.Key // the last session that was looked at
	err = s.pool.QueryRow(ctx, `
		SELECT tenant, session
		  FROM rounds
		 WHERE kind = 'audit'`).Scan(&at.Tenant, &at.Key)
	for ; err == nil && sessions > 0 && tenants > 0; tenants-- {
		var seen slice
		seen, err = s.audit(ctx, at.Tenant, at.Key, sessions)
		inserted += seen.inserted
		at.Key = seen.last
		sessions -= seen.sessions
		if err != nil || sessions <= 0 {
			break
		}
		at.Key = uuid.Nil
		if at.Tenant, err = s.tenantAfter(ctx, at.Tenant); at.Tenant == uuid.Nil {
			break
		}
	}
	if err != nil {
		return inserted, err
	}
	return inserted, s.advanceRound(ctx, "audit", at)
}

// advanceRound records how far a round has come: a zero tenant ends it, and the next one begins.
func (s *Store) advanceRound(ctx context.Context, kind string, at session.Key) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE rounds
		   SET tenant = $2::uuid, session = $3,
		       finished_at = CASE WHEN $2::uuid = $4::uuid THEN now() ELSE finished_at END
		 WHERE kind = $1`, kind, at.Tenant, at.Key, uuid.Nil)
	return err
}

// tenantAfter returns the tenant after another, by id; none is uuid.Nil.
func (s *Store) tenantAfter(ctx context.Context, tenant uuid.UUID) (next uuid.UUID, err error) {
	err = s.pool.QueryRow(ctx, `
		SELECT id
		  FROM tenants
		 WHERE id > $1
		 ORDER BY id
		 LIMIT 1`, tenant).Scan(&next)
	if errors.Is(err, pgx.ErrNoRows) {
		return uuid.Nil, nil
	}
	return next, err
}

// NextTenants returns the next tenants, at most limit, of the round through all of them, and advances it.
func (s *Store) NextTenants(ctx context.Context, limit int) (tenants []uuid.UUID, err error) {
	rows, err := s.pool.Query(ctx, `
		SELECT id
		  FROM tenants
		 WHERE id > (SELECT tenant FROM rounds WHERE kind = 'tenants')
		 ORDER BY id
		 LIMIT $1`, limit)
	if err != nil {
		return nil, err
	}
	if tenants, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID]); err != nil {
		return nil, err
	}
	var at session.Key
	if len(tenants) == limit {
		at.Tenant = tenants[limit-1]
	}
	return tenants, s.advanceRound(ctx, "tenants", at)
}
