package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

const (
	// recompactionBatch is how many of a tenant's sessions one transaction examines.
	recompactionBatch = 1000

	// shownErrors is how many of a recompaction's newest errors are read with it.
	shownErrors = 10
)

// The long statements that look for the sessions of recompactions.
var (
	countSQL = Filtered(statement("count_recompaction"))
	fillSQL  = Filtered(statement("fill_recompaction"))
)

// CountRecompaction counts the sessions that a filter finds, and samples at most this many of them, evenly by age;
// ErrNotFound if it names sessions none of which exists.
func (s *Store) CountRecompaction(ctx context.Context, tenant uuid.UUID, f session.SessionFilter, sample int) (
	session.RecompactionCount, error,
) {
	return ReadTx(ctx, s.Seeing(WithCold), tenant, func(tx pgx.Tx) (session.RecompactionCount, error) {
		if err := requireNamed(ctx, tx, tenant, f); err != nil {
			return session.RecompactionCount{}, err
		}
		return countIn(ctx, tx, tenant, f, sample)
	})
}

func countIn(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, f session.SessionFilter, sample int) (
	found session.RecompactionCount, err error,
) {
	var keys []uuid.UUID
	var ids []string
	sql, args, err := countSQL.In(ctx, tx, tenant, f)
	if err != nil {
		return found, err
	}
	args["sample"] = sample
	err = tx.QueryRow(ctx, sql, args).
		Scan(&found.Sessions, &found.Messages, &found.TotalTokens, &found.ContextTokens, &keys, &ids)
	for i := range keys {
		key := session.Key{Tenant: tenant, Key: keys[i]}
		found.Sample = append(found.Sample, session.SampledSession{Key: key, ID: ids[i]})
	}
	return found, err
}

// CreateRecompaction begins a recompaction of the sessions that a filter finds and that exist now.
//
// Errors: ErrIdempotencyReused; ErrNotFound if it names sessions none of which exists.
func (s *Store) CreateRecompaction(
	ctx context.Context, tenant uuid.UUID, r session.Recompaction, id *session.Idempotency,
) (session.Recompaction, bool, error) {
	return Once(ctx, s.Seeing(WithCold), tenant, id, func(tx pgx.Tx) (session.Recompaction, uuid.UUID, error) {
		if err := requireNamed(ctx, tx, tenant, r.Filter); err != nil {
			return session.Recompaction{}, uuid.Nil, err
		}
		made, err := s.beginRecompaction(ctx, tx, tenant, r)
		return made, made.ID, err
	})
}

// beginRecompaction inserts a recompaction and the job that looks for its sessions.
func (s *Store) beginRecompaction(
	ctx context.Context, tx pgx.Tx, tenant uuid.UUID, r session.Recompaction,
) (session.Recompaction, error) {
	made := session.Recompaction{
		ID: uuid.Must(uuid.NewV7()), Filter: r.Filter, Policy: r.Policy,
		Pace: r.Pace, Group: r.Group, Ask: r.Ask,
	}
	err := tx.QueryRow(ctx, `
		INSERT INTO recompactions (tenant_id, id, filter, policy, max_running, ask, per_minute, start_at, hours,
		                           next_start_at, group_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8::timestamptz, $9, $8, $10)
		RETURNING created_at, CASE WHEN start_at > now() THEN 'scheduled' ELSE state END`,
		tenant, made.ID, r.Filter, r.Policy, r.MaxRunning, r.Ask, r.PerMinute, r.StartAt, r.Hours, r.Group).
		Scan(&made.CreatedAt, &made.State)
	if err != nil {
		return made, err
	}
	if err := AddChore(ctx, tx, tenant, ChoreRecompaction); err != nil {
		return made, err
	}
	if err := s.insertFill(ctx, tx, tenant, made.ID, time.Time{}); err != nil {
		return made, err
	}
	err = emitRecompaction(ctx, tx, tenant, made.ID, session.EventRecompactionStarted, about{})
	if err != nil {
		return made, err
	}
	return made, record(ctx, tx, tenant, auditEntry{
		action: audit.RecompactionStart, object: audit.Recompaction, id: made.ID.String(),
		detail: about{"filter": r.Filter, "policy": r.Policy, "ask": r.Ask, "group": r.Group},
	})
}

const recompactionColumns = `
	r.id, CASE WHEN r.rolled_back_at IS NOT NULL THEN 'rolled_back'
	           WHEN r.rollback_at IS NOT NULL THEN 'rolling_back'
	           WHEN r.state = 'running' AND r.paused_at IS NOT NULL THEN 'paused'
	           WHEN r.state IN ('queued', 'running') AND r.start_at > now() THEN 'scheduled'
	           ELSE r.state END AS state,
	r.filter, r.policy, r.max_running, r.ask, r.total, r.changed, r.unchanged, r.failed, r.skipped,
	r.rolled_back, r.excepted, r.tokens_before, r.tokens_after, r.error, r.created_at, r.started_at, r.finished_at,
	r.rolled_back_at, r.per_minute, r.start_at, r.hours, r.group_id AS "group",
	CASE WHEN r.finished_at IS NULL AND r.next_start_at > now() THEN r.next_start_at END AS next_start_at,
	(SELECT count(*)
	   FROM recompaction_sessions l
	  WHERE l.tenant_id = $1 AND l.recompaction_id = r.id AND l.state = 'running' AND l.finished_at IS NULL) AS running`

var scanRecompaction = pgx.RowToStructByNameLax[session.Recompaction]

// Recompaction reads a recompaction with the newest errors of its sessions; ErrNotFound.
func (s *Store) Recompaction(ctx context.Context, tenant, id uuid.UUID) (session.Recompaction, error) {
	return InTx(ctx, s.Seeing(WithCold), tenant, func(tx pgx.Tx) (session.Recompaction, error) {
		return readRecompaction(ctx, tx, tenant, id)
	})
}

func readRecompaction(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) (session.Recompaction, error) {
	found, err := RowIn(ctx, tx, scanRecompaction, `
		SELECT `+recompactionColumns+`
		  FROM recompactions r
		 WHERE r.tenant_id = $1 AND r.id = $2`, tenant, id)
	if err != nil {
		return found, err
	}
	found.Errors, err = RowsIn(ctx, tx, pgx.RowToStructByName[session.RecompactionError], `
		SELECT coalesce((SELECT s.id FROM sessions s WHERE s.tenant_id = $1 AND s.key = l.session_key), '') AS session,
		       l.error, l.finished_at AS at
		  FROM recompaction_sessions l
		 WHERE l.tenant_id = $1 AND l.recompaction_id = $2 AND l.state = 'failed'
		 ORDER BY l.finished_at DESC
		 LIMIT $3`, tenant, id, shownErrors)
	return found, err
}

// Recompactions lists a tenant's recompactions, newest first, without the errors of their sessions.
func (s *Store) Recompactions(ctx context.Context, tenant uuid.UUID, page session.Page) (
	[]session.Recompaction, error,
) {
	sql := `
		SELECT ` + recompactionColumns + `
		  FROM recompactions r
		 WHERE r.tenant_id = $1` + NewestFirst(`r.created_at`, `r.id`)
	return QueryRows(ctx, s, tenant, scanRecompaction, sql, PageArgs(tenant, page)...)
}

// FillRecompaction looks for the next sessions of a recompaction and completes the job that does so. It inserts
// another such job if there may be more sessions, otherwise the jobs of the next sessions that may begin.
//
// Errors: ErrNotFound.
func (s *Store) FillRecompaction(ctx context.Context, tenant, id uuid.UUID, job int64) error {
	return s.Seeing(WithCold).InTenant(ctx, tenant, func(tx pgx.Tx) error {
		c, err := lockRecompaction(ctx, tx, tenant, id)
		if err != nil {
			return err
		}
		if err := s.queue.Complete(ctx, tx, job); err != nil {
			return err
		}
		if c.State != session.RecompactionQueued {
			return s.advance(ctx, tx, c)
		}
		if err := c.fill(ctx, tx); err != nil {
			return err
		}
		if c.State == session.RecompactionQueued {
			return s.insertFill(ctx, tx, tenant, id, time.Time{})
		}
		return s.advance(ctx, tx, c)
	})
}

// insertFill inserts the job that looks for the next sessions of a recompaction, or lets those begin whose time comes,
// unless there is a live one. The zero time is now.
func (s *Store) insertFill(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, at time.Time) error {
	_, _, err := s.queue.Insert(ctx, tx, queue.FillArgs{Tenant: tenant, Recompaction: id}, at)
	return err
}

// fill adds the next sessions that the filter finds, and sets the recompaction running after the last ones. Sessions
// that are younger than the recompaction do not belong to it: it would never end. The first time it notes what the
// ledger has counted of the tenant by then, for the comparison.
func (c *lockedRecompaction) fill(ctx context.Context, tx pgx.Tx) error {
	sql, args, err := fillSQL.In(ctx, tx, c.TenantID, c.Filter)
	if err != nil {
		return err
	}
	args["cursor"] = c.Cursor
	args["batch"] = recompactionBatch
	args["id"] = c.ID
	args["created_at"] = c.CreatedAt
	var looked, found int64
	var last uuid.UUID
	err = tx.QueryRow(ctx, sql, args).Scan(&looked, &found, &last)
	if err != nil {
		return fmt.Errorf("sessions of recompaction %s: %w", c.ID, err)
	}
	if looked > 0 {
		c.Cursor = last
	}
	if looked < recompactionBatch {
		c.State = session.RecompactionRunning
	}
	return Exec(ctx, tx, `
		UPDATE recompactions
		   SET total = total + $3, cursor = $4, state = $5, started_at = coalesce(started_at, now()),
		       (views_base, served_base, read_backs_base) = (
		           SELECT coalesce(views_base, sum(views), 0), coalesce(served_base, sum(tokens_served), 0),
		                  coalesce(read_backs_base, sum(read_backs), 0)
		             FROM usage_days
		            WHERE tenant_id = $1)
		 WHERE tenant_id = $1 AND id = $2`, c.TenantID, c.ID, found, c.Cursor, c.State)
}

// FailRecompaction ends a recompaction whose sessions could not be found.
func (s *Store) FailRecompaction(ctx context.Context, tenant, id uuid.UUID, reason string) error {
	return s.InTenant(ctx, tenant, func(tx pgx.Tx) error {
		return emitAdvanced(ctx, tx, tenant, id, 0, `
			UPDATE recompactions
			   SET state = 'failed', error = $3, finished_at = now()
			 WHERE tenant_id = $1 AND id = $2 AND state = 'queued'`, tenant, id, Text(reason))
	})
}
