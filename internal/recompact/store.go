package recompact

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

const (
	// batch is how many of a tenant's sessions one transaction examines.
	batch = 1000

	// shownErrors is how many of a recompaction's newest errors are read with it.
	shownErrors = 10
)

// The long statements that look for the sessions of recompactions.
var (
	//go:embed count.sql
	countText string
	//go:embed fill.sql
	fillText string

	countSQL = postgres.Filtered(countText)
	fillSQL  = postgres.Filtered(fillText)
)

// store has the SQL of recompactions.
type store struct{ *postgres.Store }

// Count counts the sessions that a filter finds, and samples at most this many of them, evenly by age;
// ErrNotFound if it names sessions none of which exists.
func (s store) Count(ctx context.Context, tenant uuid.UUID, f session.SessionFilter, sample int) (Count, error) {
	return postgres.ReadTx(ctx, s.Seeing(postgres.WithCold), tenant, func(tx pgx.Tx) (Count, error) {
		if err := postgres.RequireNamed(ctx, tx, tenant, f); err != nil {
			return Count{}, err
		}
		return countIn(ctx, tx, tenant, f, sample)
	})
}

func countIn(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, f session.SessionFilter, sample int) (
	found Count, err error,
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
		found.Sample = append(found.Sample, Sampled{Key: key, ID: ids[i]})
	}
	return found, err
}

// Create begins a recompaction of the sessions that a filter finds and that exist now.
//
// Errors: ErrIdempotencyReused; ErrNotFound if it names sessions none of which exists.
func (s store) Create(ctx context.Context, tenant uuid.UUID, r Stored, id *session.Idempotency) (Stored, bool, error) {
	return postgres.Once(ctx, s.Seeing(postgres.WithCold), tenant, id, func(tx pgx.Tx) (Stored, uuid.UUID, error) {
		if err := postgres.RequireNamed(ctx, tx, tenant, r.Filter); err != nil {
			return Stored{}, uuid.Nil, err
		}
		made, err := s.beginOne(ctx, tx, tenant, r)
		return made, made.ID, err
	})
}

// beginOne inserts a recompaction and the job that looks for its sessions.
func (s store) beginOne(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, r Stored) (Stored, error) {
	made := Stored{
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
	if err := postgres.AddTask(ctx, tx, tenant, task); err != nil {
		return made, err
	}
	if err := s.insertFill(ctx, tx, tenant, made.ID, time.Time{}); err != nil {
		return made, err
	}
	err = emit(ctx, tx, tenant, made.ID, session.EventRecompactionStarted, map[string]any{})
	if err != nil {
		return made, err
	}
	detail := map[string]any{"filter": r.Filter, "policy": r.Policy, "ask": r.Ask, "group": r.Group}
	return made, record(ctx, tx, tenant, audit.RecompactionStart, made.ID, detail)
}

// record records what was done to a recompaction.
func record(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, action audit.Action, id uuid.UUID, detail any) error {
	return postgres.Record(ctx, tx, tenant, action, audit.Recompaction, id.String(), detail)
}

const columns = `
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

var scanStored = pgx.RowToStructByNameLax[Stored]

// Read reads a recompaction with the newest errors of its sessions; ErrNotFound.
func (s store) Read(ctx context.Context, tenant, id uuid.UUID) (Stored, error) {
	return postgres.InTx(ctx, s.Seeing(postgres.WithCold), tenant, func(tx pgx.Tx) (Stored, error) {
		return readOne(ctx, tx, tenant, id)
	})
}

func readOne(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) (Stored, error) {
	found, err := postgres.RowIn(ctx, tx, scanStored, `
		SELECT `+columns+`
		  FROM recompactions r
		 WHERE r.tenant_id = $1 AND r.id = $2`, tenant, id)
	if err != nil {
		return found, err
	}
	found.Errors, err = postgres.RowsIn(ctx, tx, pgx.RowToStructByName[RecompactionError], `
		SELECT coalesce((SELECT s.id FROM sessions s WHERE s.tenant_id = $1 AND s.key = l.session_key), '') AS session,
		       l.error, l.finished_at AS at
		  FROM recompaction_sessions l
		 WHERE l.tenant_id = $1 AND l.recompaction_id = $2 AND l.state = 'failed'
		 ORDER BY l.finished_at DESC
		 LIMIT $3`, tenant, id, shownErrors)
	return found, err
}

var listSQL = `
		SELECT ` + columns + `
		  FROM recompactions r
		 WHERE r.tenant_id = $1` + postgres.NewestFirst(`r.created_at`, `r.id`)

// List lists a tenant's recompactions, newest first, without the errors of their sessions.
func (s store) List(ctx context.Context, tenant uuid.UUID, page session.Page) ([]Stored, error) {
	return postgres.QueryRows(ctx, s.Store, tenant, scanStored, listSQL, postgres.PageArgs(tenant, page)...)
}

// Fill looks for the next sessions of a recompaction and completes the job that does so. It inserts
// another such job if there may be more sessions, otherwise the jobs of the next sessions that may begin.
//
// Errors: ErrNotFound.
func (s store) Fill(ctx context.Context, tenant, id uuid.UUID, job int64) error {
	return s.Seeing(postgres.WithCold).InTenant(ctx, tenant, func(tx pgx.Tx) error {
		c, err := lock(ctx, tx, tenant, id)
		if err != nil {
			return err
		}
		if err := s.Queue().Complete(ctx, tx, job); err != nil {
			return err
		}
		if c.State != Queued {
			return s.advance(ctx, tx, c)
		}
		if err := c.fill(ctx, tx); err != nil {
			return err
		}
		if c.State == Queued {
			return s.insertFill(ctx, tx, tenant, id, time.Time{})
		}
		return s.advance(ctx, tx, c)
	})
}

// insertFill inserts the job that looks for the next sessions of a recompaction, or lets those begin whose time comes,
// unless there is a live one. The zero time is now.
func (s store) insertFill(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, at time.Time) error {
	_, _, err := s.Queue().Insert(ctx, tx, fillArgs{Tenant: tenant, Recompaction: id}, at)
	return err
}

// fill adds the next sessions that the filter finds, and sets the recompaction running after the last ones. Sessions
// that are younger than the recompaction do not belong to it: it would never end. The first time it notes what the
// ledger has counted of the tenant by then, for the comparison.
func (c *locked) fill(ctx context.Context, tx pgx.Tx) error {
	sql, args, err := fillSQL.In(ctx, tx, c.TenantID, c.Filter)
	if err != nil {
		return err
	}
	args["cursor"] = c.Cursor
	args["batch"] = batch
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
	if looked < batch {
		c.State = Running
	}
	return postgres.Exec(ctx, tx, `
		UPDATE recompactions
		   SET total = total + $3, cursor = $4, state = $5, started_at = coalesce(started_at, now()),
		       (views_base, served_base, read_backs_base) = (
		           SELECT coalesce(views_base, sum(views), 0), coalesce(served_base, sum(tokens_served), 0),
		                  coalesce(read_backs_base, sum(read_backs), 0)
		             FROM usage_days
		            WHERE tenant_id = $1)
		 WHERE tenant_id = $1 AND id = $2`, c.TenantID, c.ID, found, c.Cursor, c.State)
}

// Fail ends a recompaction whose sessions could not be found.
func (s store) Fail(ctx context.Context, tenant, id uuid.UUID, reason string) error {
	return s.InTenant(ctx, tenant, func(tx pgx.Tx) error {
		return emitAdvanced(ctx, tx, tenant, id, 0, `
			UPDATE recompactions
			   SET state = 'failed', error = $3, finished_at = now()
			 WHERE tenant_id = $1 AND id = $2 AND state = 'queued'`, tenant, id, postgres.Text(reason))
	})
}
