// Package erasure erases sessions of a tenant, or all of a tenant, with what they have outside the database, and makes
// receipts of it. A legal hold stops it.
//
// Start at Worker. The rows of one session are erased by postgres.Store.EraseFor, also if it alone is deleted; package
// postgres knows which sessions have expired, too.
package erasure

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

const erasureColumns = `
	e.id, e.kind, e.state, e.metadata, e.sessions, e.messages, e.results, e.bodies, e.checkpoints, e.bytes,
	e.objects, e.created_at, e.started_at, e.finished_at, e.receipt, e.erased_tenant`

var scanErasure = pgx.RowToStructByNameLax[session.Erasure]

// OfSubject begins the erasure of all sessions of a tenant that have some metadata, and of their forks;
// ErrIdempotencyReused.
func OfSubject(
	ctx context.Context, s *postgres.Store, tenant uuid.UUID, metadata json.RawMessage, id *session.Idempotency,
) (session.Erasure, bool, error) {
	var made session.Erasure
	begun, replayed, err := postgres.Once(ctx, s, tenant, id, func(tx pgx.Tx) (_, _ uuid.UUID, err error) {
		of := postgres.Erasing{Tenant: tenant, ID: uuid.Must(uuid.NewV7()), Kind: session.ErasureOfSubject}
		if err := s.BeginErasure(ctx, tx, of); err != nil {
			return of.ID, of.ID, err
		}
		made, err = postgres.RowIn(ctx, tx, scanErasure, `
			UPDATE erasures e
			   SET metadata = $3
			 WHERE tenant_id = $1 AND id = $2
			RETURNING `+erasureColumns, tenant, of.ID, metadata)
		if err != nil {
			return of.ID, of.ID, err
		}
		made.Held = []string{}
		if err := postgres.AddTask(ctx, tx, tenant, postgres.TaskErasure); err != nil {
			return of.ID, of.ID, err
		}
		return of.ID, of.ID, postgres.Record(ctx, tx, tenant, audit.ErasureStart, audit.Erasure, of.ID.String(),
			map[string]any{"kind": of.Kind})
	})
	if err == nil && replayed {
		made, err = Read(ctx, s, tenant, begun)
	}
	return made, replayed, err
}

// Read reads an erasure with the sessions that a legal hold has kept, or how far that of a tenant is; ErrNotFound.
func Read(ctx context.Context, s *postgres.Store, tenant, id uuid.UUID) (session.Erasure, error) {
	return postgres.ReadTx(ctx, s.Seeing(postgres.AllSessions), tenant, func(tx pgx.Tx) (session.Erasure, error) {
		return readErasure(ctx, tx, tenant, id)
	})
}

// readErasure does what Read does. The transaction may see another tenant than before.
func readErasure(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) (session.Erasure, error) {
	found, err := postgres.RowIn(ctx, tx, scanErasure, `
		SELECT `+erasureColumns+`
		  FROM erasures e
		 WHERE e.tenant_id = $1 AND e.id = $2`, tenant, id)
	if err != nil {
		return found, err
	}
	if found.Kind == session.ErasureOfTenant {
		return found, readProgress(ctx, tx, &found)
	}
	found.Held, err = postgres.RowsIn(ctx, tx, pgx.RowTo[string], `
		SELECT s.id
		  FROM erasure_sessions l
		  JOIN sessions s ON s.tenant_id = $1 AND s.key = l.session_key
		 WHERE l.tenant_id = $1 AND l.erasure_id = $2 AND l.state = 'held'
		 ORDER BY s.id`, tenant, id)
	return found, err
}

// List lists a tenant's erasures, newest first, without what was held.
func List(ctx context.Context, s *postgres.Store, tenant uuid.UUID, page session.Page) ([]session.Erasure, error) {
	sql := `
		SELECT ` + erasureColumns + `
		  FROM erasures e
		 WHERE e.tenant_id = $1` + postgres.NewestFirst(`e.created_at`, `e.id`)
	return postgres.QueryRows(ctx, s, tenant, scanErasure, sql, postgres.PageArgs(tenant, page)...)
}

// Duty returns what the sweep does for the tenants, operators being the nil tenant, with erasures on their way: it
// inserts the jobs of those that have lost theirs.
func Duty(s *postgres.Store, log *slog.Logger) postgres.Duty {
	const unfinished = `
		SELECT tenant_id, id
		  FROM erasures
		 WHERE tenant_id = $1 AND state <> 'done'`
	return postgres.Duty{
		Kind: postgres.TaskErasure, Needed: `EXISTS (` + unfinished + `)`,
		Do: func(ctx context.Context, tenant uuid.UUID) error {
			lost, err := postgres.Requeue[queue.ErasureArgs](ctx, s, tenant, unfinished)
			if lost > 0 {
				log.WarnContext(ctx, "erasures had lost their job", "tenant", tenant, "erasures", lost)
			}
			return err
		},
	}
}

// Work is an erasure that a worker continues.
type Work struct {
	session.Erasure
	tenant uuid.UUID // that the erasure belongs to
	by     audit.Actor
	store  *postgres.Store // which sees all sessions
}

// of returns the tenant whose sessions are erased.
func (w *Work) of() uuid.UUID {
	if w.ErasedTenant != nil {
		return *w.ErasedTenant
	}
	return w.tenant
}

func (w *Work) erasing() postgres.Erasing {
	return postgres.Erasing{Tenant: w.tenant, ID: w.ID, Kind: w.Kind, Erased: w.ErasedTenant}
}

// Start returns an erasure that a worker has to continue; ErrNotFound, ErrEnded.
func Start(ctx context.Context, s *postgres.Store, tenant, id uuid.UUID) (w *Work, err error) {
	w = &Work{tenant: tenant, store: s.Seeing(postgres.AllSessions)}
	err = w.store.InTenant(ctx, tenant, func(tx pgx.Tx) error {
		w.Erasure, err = postgres.RowIn(ctx, tx, scanErasure, `
			UPDATE erasures e
			   SET state = CASE WHEN state = 'queued' THEN 'running' ELSE state END,
			       started_at = coalesce(started_at, now())
			 WHERE tenant_id = $1 AND id = $2
			RETURNING `+erasureColumns, tenant, id)
		if err != nil {
			return err
		}
		return tx.QueryRow(ctx, `
			SELECT actor, coalesce(actor_id, $3), coalesce(request, ''), coalesce(address, '')
			  FROM erasures
			 WHERE tenant_id = $1 AND id = $2`, tenant, id, uuid.Nil).
			Scan(&w.by.Kind, &w.by.ID, &w.by.Request, &w.by.Address)
	})
	if err == nil && w.State == session.ErasureDone {
		err = session.ErrEnded
	}
	return w, err
}

// ofErasure returns the condition that an erasure is to erase a session s, see ofErasureSQL.
func (w *Work) ofErasure() string {
	if w.Kind == session.ErasureOfExpired {
		return postgres.IsExpired
	}
	return ofErasureSQL
}

// ofErasureSQL is the condition that an erasure $2 with the metadata $3 is to erase a session s, and has not found that
// a hold keeps it.
const ofErasureSQL = `
	       ($3::jsonb IS NOT NULL AND s.metadata @> $3
	        AND NOT EXISTS (
	            SELECT
	              FROM erasure_sessions l
	             WHERE l.tenant_id = $1 AND l.erasure_id = $2 AND l.session_key = s.key AND l.state = 'held')
	        OR EXISTS (
	           SELECT
	             FROM erasure_sessions l
	            WHERE l.tenant_id = $1 AND l.erasure_id = $2 AND l.session_key = s.key AND l.state = 'due'))`

// Next returns the next sessions that an erasure is to erase, at most limit.
func (w *Work) Next(ctx context.Context, limit int) (keys []uuid.UUID, err error) {
	switch w.Kind {
	case session.ErasureOfExpired:
		return w.store.ExpiredSessions(ctx, w.tenant, w.ID, limit)
	case session.ErasureOfTenant:
		return postgres.QueryRows(ctx, w.store, w.of(), pgx.RowTo[uuid.UUID], `
			SELECT key
			  FROM sessions
			 WHERE tenant_id = $1
			 LIMIT $2`, w.of(), limit)
	}
	return postgres.ReadTx(ctx, w.store, w.tenant, func(tx pgx.Tx) ([]uuid.UUID, error) {
		pair, err := postgres.RarestPair(ctx, tx, w.tenant, w.Metadata)
		if err != nil {
			return nil, err
		}
		among, args := w.amongSQL(pair, []any{w.tenant, w.ID, w.Metadata, limit})
		return postgres.RowsIn(ctx, tx, pgx.RowTo[uuid.UUID], `
			SELECT s.key
			  FROM sessions s
			 WHERE s.tenant_id = $1`+among+` AND `+ofErasureSQL+`
			 LIMIT $4`, args...)
	})
}

// amongSQL returns the condition on sessions s among which those of an erasure are found, and args with its own behind
// them. Without a pair of its metadata they may be any.
func (w *Work) amongSQL(pair *postgres.MetadataPair, args []any) (string, []any) {
	const due = ` AND s.key IN (
			       SELECT session_key
			         FROM erasure_sessions
			        WHERE tenant_id = $1 AND erasure_id = $2 AND state = 'due'`
	switch {
	case w.Metadata == nil:
		return due + `)`, args
	case pair == nil:
		return ``, args
	}
	return due + `
			       UNION ALL
			       SELECT session_key
			         FROM session_metadata
			        WHERE tenant_id = $1 AND pair = $5)`, append(args, pair.Hash)
}

// Erase erases one session of an erasure, and has that of a subject erase the session's forks. It does nothing to one
// that is gone, or is not the erasure's any more, and notes one that a legal hold keeps. One of a tenant that is
// deleted is not passed over: ErrTenantHeld, ErrHeld.
func (w *Work) Erase(ctx context.Context, key uuid.UUID) error {
	err := w.erase(ctx, session.Key{Tenant: w.of(), Key: key})
	switch {
	case errors.Is(err, session.ErrNotFound):
		return nil
	case errors.Is(err, session.ErrHeld) && w.Kind != session.ErasureOfTenant:
		return w.noteHeld(ctx, key)
	}
	return err
}

// noteHeld notes that a legal hold keeps a session.
func (w *Work) noteHeld(ctx context.Context, key uuid.UUID) error {
	return w.store.InTenant(ctx, w.tenant, func(tx pgx.Tx) error {
		return postgres.Exec(ctx, tx, `
			INSERT INTO erasure_sessions AS l (tenant_id, erasure_id, session_key, state)
			SELECT s.tenant_id, $2, s.key, 'held'
			  FROM sessions s
			 WHERE s.tenant_id = $1 AND s.key = $3
			    ON CONFLICT (tenant_id, erasure_id, session_key) DO UPDATE
			   SET state = excluded.state
			 WHERE l.state = 'due' -- another worker may have erased it since`, w.tenant, w.ID, key)
	})
}

func (w *Work) erase(ctx context.Context, key session.Key) error {
	return w.store.InTenant(ctx, key.Tenant, func(tx pgx.Tx) error {
		row, err := postgres.LockFamily(ctx, tx, key)
		if err != nil {
			return err
		}
		is, args := w.ofErasure(), []any{w.tenant, w.ID, w.Metadata, key.Key}
		if w.Kind == session.ErasureOfTenant {
			if err := refuseHolds(ctx, tx, key.Tenant); err != nil {
				return err
			}
			is, args = `true`, []any{key.Tenant, key.Key}
		}
		id, err := postgres.RowIn(ctx, tx, pgx.RowTo[string], `
			SELECT s.id
			  FROM sessions s
			 WHERE s.tenant_id = $1 AND s.key = $`+strconv.Itoa(len(args))+` AND `+is, args...)
		if err != nil {
			return err
		}
		if w.Kind == session.ErasureOfSubject {
			if err := w.noteForks(ctx, tx, key.Key); err != nil {
				return err
			}
		}
		return w.store.EraseFor(ctx, tx, w.erasing(), row, id)
	})
}

// noteForks has an erasure erase the forks of a session.
func (w *Work) noteForks(ctx context.Context, tx pgx.Tx, key uuid.UUID) error {
	return postgres.Exec(ctx, tx, `
		INSERT INTO erasure_sessions (tenant_id, erasure_id, session_key, state)
		SELECT $1, $2, f.key, 'due'
		  FROM sessions f
		  JOIN sessions s ON s.tenant_id = $1 AND s.key = $3
		 WHERE f.tenant_id = $1 AND f.forked_from = s.id AND f.created_at >= s.created_at
		ON CONFLICT DO NOTHING`, w.tenant, w.ID, key)
}

// erased is a session without rows, whose objects may still be there.
type erased struct {
	Key      uuid.UUID
	Prefixes []uuid.UUID // sessions, below whose prefixes they lie
}

// erasedSessions returns sessions of an erasure whose objects are to be erased, out of the next limit ones: those of
// which no job runs any more, which could write an object.
func (w *Work) erasedSessions(ctx context.Context, limit int) ([]erased, error) {
	return postgres.ReadTx(ctx, w.store, w.tenant, func(tx pgx.Tx) (ready []erased, err error) {
		next, err := postgres.RowsIn(ctx, tx, pgx.RowToStructByPos[erased], `
			SELECT session_key, prefixes
			  FROM erasure_sessions
			 WHERE tenant_id = $1 AND erasure_id = $2 AND state = 'erased'
			 ORDER BY session_key
			 LIMIT $3`, w.tenant, w.ID, limit)
		for _, gone := range next {
			runs, err := queue.RunsFor(ctx, tx, []uuid.UUID{gone.Key})
			if err != nil {
				return nil, err
			}
			if !runs {
				ready = append(ready, gone)
			}
		}
		return ready, err
	})
}

// ObjectsErased records that nothing of a session is left in the result stores, and counts the objects.
func (w *Work) ObjectsErased(ctx context.Context, key uuid.UUID, objects int) error {
	return w.store.InTenant(ctx, w.tenant, func(tx pgx.Tx) error {
		err := postgres.ExecOne(ctx, tx, session.ErrEnded, `
			UPDATE erasure_sessions
			   SET state = 'gone'
			 WHERE tenant_id = $1 AND erasure_id = $2 AND session_key = $3 AND state = 'erased'`,
			w.tenant, w.ID, key)
		if err != nil {
			return err
		}
		return w.countObjects(ctx, tx, objects)
	})
}

func (w *Work) countObjects(ctx context.Context, tx pgx.Tx, objects int) error {
	return postgres.Exec(ctx, tx, `
		UPDATE erasures
		   SET objects = objects + $3
		 WHERE tenant_id = $1 AND id = $2 AND state <> 'done'`, w.tenant, w.ID, objects)
}
