package replays

import (
	"context"
	_ "embed"
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// The statements that read one replay, and a list.
var (
	//go:embed progress.sql
	progressSQL string
	//go:embed read.sql
	rowsSQL string

	readSQL = rowsWithProgress() + ` AND r.id = $2`
	listSQL = rowsWithProgress() + postgres.NewestFirst(`r.created_at`, `r.id`)
)

func rowsWithProgress() string { return strings.ReplaceAll(rowsSQL, "{progress}", progressSQL) }

// store has the SQL of replays.
type store struct{ *postgres.Store }

// Create begins a replay of the sessions that a filter finds and that exist now.
//
// Errors: errLive if the tenant has one that has not ended, ErrIdempotencyReused.
func (s store) Create(ctx context.Context, tenant uuid.UUID, r Stored, id *session.Idempotency) (Stored, bool, error) {
	made, replayed, err := postgres.Once(ctx, s.Store, tenant, id, func(tx pgx.Tx) (Stored, uuid.UUID, error) {
		made := r
		made.ID = uuid.Must(uuid.NewV7())
		made.State = Queued
		err := tx.QueryRow(ctx, `
			INSERT INTO replays (tenant_id, id, filter, contenders, windows, sample, seed, max_messages, max_bytes)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
			RETURNING created_at`, tenant, made.ID, r.Filter, r.Contenders, windowsOf(r), r.Sample, r.Seed,
			r.MaxMessages, r.MaxBytes).Scan(&made.CreatedAt)
		if err != nil {
			return made, uuid.Nil, err
		}
		if err := postgres.AddTask(ctx, tx, tenant, task); err != nil {
			return made, uuid.Nil, err
		}
		if err := s.insertJob(ctx, tx, tenant, made.ID); err != nil {
			return made, uuid.Nil, err
		}
		return made, made.ID, record(ctx, tx, tenant, audit.ReplayStart, made.ID, map[string]any{"filter": r.Filter})
	})
	if postgres.Violates(err, "replays_live") {
		err = errLive
	}
	return made, replayed, err
}

// record records what was done to a replay.
func record(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, action audit.Action, id uuid.UUID, detail any) error {
	return postgres.Record(ctx, tx, tenant, action, audit.Replay, id.String(), detail)
}

func windowsOf(r Stored) []int {
	if r.Windows == nil {
		return []int{}
	}
	return r.Windows
}

// insertJob inserts the job of a replay, unless there is a live one.
func (s store) insertJob(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) error {
	_, _, err := s.Queue().Insert(ctx, tx, jobArgs{Tenant: tenant, Replay: id}, time.Time{})
	return err
}

var scanStored = pgx.RowToStructByName[Stored]

// Read reads a replay without its report; ErrNotFound.
func (s store) Read(ctx context.Context, tenant, id uuid.UUID) (Stored, error) {
	return postgres.QueryRow(ctx, s.Store, tenant, scanStored, readSQL, tenant, id)
}

// Report reads the report of a replay, nil if there is none yet; ErrNotFound.
func (s store) Report(ctx context.Context, tenant, id uuid.UUID) (json.RawMessage, error) {
	return postgres.QueryRow(ctx, s.Store, tenant, pgx.RowTo[json.RawMessage], `
		SELECT report
		  FROM replays
		 WHERE tenant_id = $1 AND id = $2`, tenant, id)
}

// List lists a tenant's replays, newest first, without their reports.
func (s store) List(ctx context.Context, tenant uuid.UUID, page session.Page) ([]Stored, error) {
	return postgres.QueryRows(ctx, s.Store, tenant, scanStored, listSQL, postgres.PageArgs(tenant, page)...)
}

// Sessions lists the sessions of a replay in the order of its sample, those behind a place of it; ErrNotFound.
func (s store) Sessions(ctx context.Context, tenant, id uuid.UUID, after int64, limit int) ([]ReplaySession, error) {
	return postgres.ReadTx(ctx, s.Seeing(postgres.AllSessions), tenant, func(tx pgx.Tx) ([]ReplaySession, error) {
		cancelled, err := postgres.RowIn(ctx, tx, pgx.RowTo[bool], `
			SELECT state IN ('cancelling', 'cancelled')
			  FROM replays
			 WHERE tenant_id = $1 AND id = $2`, tenant, id)
		if err != nil {
			return nil, err
		}
		return postgres.RowsIn(ctx, tx, pgx.RowToStructByName[ReplaySession], `
			SELECT l.session_key AS key, l.place,
			       (SELECT s.id FROM sessions s WHERE s.tenant_id = $1 AND s.key = l.session_key) AS session,
			       CASE WHEN l.state = 'queued' AND $5 THEN 'cancelled' ELSE l.state END AS state,
			       l.reason, l.finished_at,
			       (SELECT count(*)
			          FROM replay_outcomes o
			         WHERE o.tenant_id = $1 AND o.replay_id = $2 AND o.session_key = l.session_key) AS outcomes
			  FROM replay_sessions l
			 WHERE l.tenant_id = $1 AND l.replay_id = $2 AND l.place > $3
			 ORDER BY l.place
			 LIMIT $4`, tenant, id, after, limit, cancelled)
	})
}

// Cancel lets no further measurement begin: the worker ends the replay with a report on what was measured. One
// that has ended stays as it is.
//
// Errors: ErrNotFound, ErrIdempotencyReused.
func (s store) Cancel(ctx context.Context, tenant, id uuid.UUID, key *session.Idempotency) (Stored, bool, error) {
	return postgres.Once(ctx, s.Store, tenant, key, func(tx pgx.Tx) (Stored, uuid.UUID, error) {
		changed, err := tx.Exec(ctx, `
			UPDATE replays
			   SET state = CASE WHEN state = 'queued' THEN 'cancelled' ELSE 'cancelling' END,
			       finished_at = CASE WHEN state = 'queued' THEN now() END
			 WHERE tenant_id = $1 AND id = $2 AND state IN ('queued', 'running')`, tenant, id)
		if err != nil {
			return Stored{}, uuid.Nil, err
		}
		found, err := postgres.RowIn(ctx, tx, scanStored, readSQL, tenant, id)
		if err != nil || changed.RowsAffected() == 0 {
			return found, id, err
		}
		return found, id, record(ctx, tx, tenant, audit.ReplayCancel, id, nil)
	})
}

// Fail ends a replay that cannot go on. Its outcomes stay.
func (s store) Fail(ctx context.Context, tenant, id uuid.UUID, reason string) error {
	return s.InTenant(ctx, tenant, func(tx pgx.Tx) error {
		return postgres.Exec(ctx, tx, `
			UPDATE replays r
			   SET state = 'failed', error = $3, contender = NULL, finished_at = now(), progress = `+progressSQL+`
			 WHERE tenant_id = $1 AND id = $2 AND finished_at IS NULL`, tenant, id, postgres.Text(reason))
	})
}

// Requeue inserts the job of a tenant's live replay again if it was lost. It returns how many were lost.
func (s store) Requeue(ctx context.Context, tenant uuid.UUID) (lost int, err error) {
	sql := `
		SELECT id
		  FROM replays
		 WHERE tenant_id = $1 AND finished_at IS NULL`
	return postgres.EachOf(ctx, s.Store, tenant, sql, func(id uuid.UUID) (int, error) {
		return postgres.InTx(ctx, s.Store, tenant, func(tx pgx.Tx) (int, error) {
			_, inserted, err := s.Queue().Insert(ctx, tx, jobArgs{Tenant: tenant, Replay: id}, time.Time{})
			if err != nil || !inserted {
				return 0, err
			}
			return 1, nil
		})
	})
}
