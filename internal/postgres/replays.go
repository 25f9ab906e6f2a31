package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// The statements that read one replay, and a list.
var (
	progressSQL    = statement("replay_progress")
	readReplaySQL  = statement("read_replay", "{progress}", progressSQL) + ` AND r.id = $2`
	listReplaysSQL = statement("read_replay", "{progress}", progressSQL) + NewestFirst(`r.created_at`, `r.id`)
)

// CreateReplay begins a replay of the sessions that a filter finds and that exist now.
//
// Errors: ErrReplayLive if the tenant has one that has not ended, ErrIdempotencyReused.
func (s *Store) CreateReplay(
	ctx context.Context, tenant uuid.UUID, r session.Replay, id *session.Idempotency,
) (session.Replay, bool, error) {
	made, replayed, err := once(ctx, s, tenant, id, func(tx pgx.Tx) (session.Replay, uuid.UUID, error) {
		made := r
		made.ID = uuid.Must(uuid.NewV7())
		made.State = session.ReplayQueued
		err := tx.QueryRow(ctx, `
			INSERT INTO replays (tenant_id, id, filter, contenders, windows, sample, seed, max_messages, max_bytes)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
			RETURNING created_at`, tenant, made.ID, r.Filter, r.Contenders, windowsOf(r), r.Sample, r.Seed,
			r.MaxMessages, r.MaxBytes).Scan(&made.CreatedAt)
		if err != nil {
			return made, uuid.Nil, err
		}
		if err := AddChore(ctx, tx, tenant, ChoreReplay); err != nil {
			return made, uuid.Nil, err
		}
		if err := s.insertReplay(ctx, tx, tenant, made.ID); err != nil {
			return made, uuid.Nil, err
		}
		return made, made.ID, record(ctx, tx, tenant, auditEntry{
			action: audit.ReplayStart, object: audit.Replay, id: made.ID.String(), detail: about{"filter": r.Filter},
		})
	})
	if violates(err, "replays_live") {
		err = session.ErrReplayLive
	}
	return made, replayed, err
}

func windowsOf(r session.Replay) []int {
	if r.Windows == nil {
		return []int{}
	}
	return r.Windows
}

// insertReplay inserts the job of a replay, unless there is a live one.
func (s *Store) insertReplay(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) error {
	_, _, err := s.queue.Insert(ctx, tx, queue.ReplayArgs{Tenant: tenant, Replay: id}, time.Time{})
	return err
}

var scanReplay = pgx.RowToStructByName[session.Replay]

// Replay reads a replay without its report; ErrNotFound.
func (s *Store) Replay(ctx context.Context, tenant, id uuid.UUID) (session.Replay, error) {
	return QueryRow(ctx, s, tenant, scanReplay, readReplaySQL, tenant, id)
}

// ReplayReport reads the report of a replay, nil if there is none yet; ErrNotFound.
func (s *Store) ReplayReport(ctx context.Context, tenant, id uuid.UUID) (json.RawMessage, error) {
	return QueryRow(ctx, s, tenant, pgx.RowTo[json.RawMessage], `
		SELECT report
		  FROM replays
		 WHERE tenant_id = $1 AND id = $2`, tenant, id)
}

// Replays lists a tenant's replays, newest first, without their reports.
func (s *Store) Replays(ctx context.Context, tenant uuid.UUID, page session.Page) ([]session.Replay, error) {
	return QueryRows(ctx, s, tenant, scanReplay, listReplaysSQL, PageArgs(tenant, page)...)
}

// ReplaySessions lists the sessions of a replay in the order of its sample, those behind a place of it; ErrNotFound.
func (s *Store) ReplaySessions(ctx context.Context, tenant, id uuid.UUID, after int64, limit int) (
	[]session.ReplaySession, error,
) {
	return ReadTx(ctx, s.seeing(all), tenant, func(tx pgx.Tx) ([]session.ReplaySession, error) {
		cancelled, err := RowIn(ctx, tx, pgx.RowTo[bool], `
			SELECT state IN ('cancelling', 'cancelled')
			  FROM replays
			 WHERE tenant_id = $1 AND id = $2`, tenant, id)
		if err != nil {
			return nil, err
		}
		return RowsIn(ctx, tx, pgx.RowToStructByName[session.ReplaySession], `
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

// CancelReplay lets no further measurement begin: the worker ends the replay with a report on what was measured. One
// that has ended stays as it is.
//
// Errors: ErrNotFound, ErrIdempotencyReused.
func (s *Store) CancelReplay(ctx context.Context, tenant, id uuid.UUID, key *session.Idempotency) (
	session.Replay, bool, error,
) {
	return once(ctx, s, tenant, key, func(tx pgx.Tx) (session.Replay, uuid.UUID, error) {
		changed, err := tx.Exec(ctx, `
			UPDATE replays
			   SET state = CASE WHEN state = 'queued' THEN 'cancelled' ELSE 'cancelling' END,
			       finished_at = CASE WHEN state = 'queued' THEN now() END
			 WHERE tenant_id = $1 AND id = $2 AND state IN ('queued', 'running')`, tenant, id)
		if err != nil {
			return session.Replay{}, uuid.Nil, err
		}
		found, err := RowIn(ctx, tx, scanReplay, readReplaySQL, tenant, id)
		if err != nil || changed.RowsAffected() == 0 {
			return found, id, err
		}
		return found, id, record(ctx, tx, tenant, auditEntry{
			action: audit.ReplayCancel, object: audit.Replay, id: id.String(),
		})
	})
}

// FailReplay ends a replay that cannot go on. Its outcomes stay.
func (s *Store) FailReplay(ctx context.Context, tenant, id uuid.UUID, reason string) error {
	return s.inTenant(ctx, tenant, func(tx pgx.Tx) error {
		return Exec(ctx, tx, `
			UPDATE replays r
			   SET state = 'failed', error = $3, contender = NULL, finished_at = now(), progress = `+progressSQL+`
			 WHERE tenant_id = $1 AND id = $2 AND finished_at IS NULL`, tenant, id, Text(reason))
	})
}

// RequeueReplays inserts the job of a tenant's live replay again if it was lost. It returns how many were lost.
func (s *Store) RequeueReplays(ctx context.Context, tenant uuid.UUID) (lost int, err error) {
	sql := `
		SELECT id
		  FROM replays
		 WHERE tenant_id = $1 AND finished_at IS NULL`
	return eachOf(ctx, s, tenant, sql, func(id uuid.UUID) (int, error) {
		return InTx(ctx, s, tenant, func(tx pgx.Tx) (int, error) {
			_, inserted, err := s.queue.Insert(ctx, tx, queue.ReplayArgs{Tenant: tenant, Replay: id}, time.Time{})
			if err != nil || !inserted {
				return 0, err
			}
			return 1, nil
		})
	})
}
