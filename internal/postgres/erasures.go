package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

const erasureColumns = `
	e.id, e.kind, e.state, e.metadata, e.sessions, e.messages, e.results, e.bodies, e.checkpoints, e.bytes,
	e.objects, e.created_at, e.started_at, e.finished_at, e.receipt, e.erased_tenant`

var scanErasure = pgx.RowToStructByNameLax[session.Erasure]

// EraseSubject begins the erasure of all sessions of a tenant that have some metadata, and of their forks;
// ErrIdempotencyReused.
func (s *Store) EraseSubject(
	ctx context.Context, tenant uuid.UUID, metadata json.RawMessage, id *session.Idempotency,
) (session.Erasure, bool, error) {
	var made session.Erasure
	begun, replayed, err := Once(ctx, s, tenant, id, func(tx pgx.Tx) (_, _ uuid.UUID, err error) {
		of := erasing{tenant: tenant, id: uuid.Must(uuid.NewV7()), kind: session.ErasureOfSubject}
		if err := s.beginErasure(ctx, tx, of); err != nil {
			return of.id, of.id, err
		}
		made, err = RowIn(ctx, tx, scanErasure, `
			UPDATE erasures e
			   SET metadata = $3
			 WHERE tenant_id = $1 AND id = $2
			RETURNING `+erasureColumns, tenant, of.id, metadata)
		if err != nil {
			return of.id, of.id, err
		}
		made.Held = []string{}
		if err := AddTask(ctx, tx, tenant, TaskErasure); err != nil {
			return of.id, of.id, err
		}
		return of.id, of.id, record(ctx, tx, tenant, auditEntry{
			action: audit.ErasureStart, object: audit.Erasure, id: of.id.String(), detail: about{"kind": of.kind},
		})
	})
	if err == nil && replayed {
		made, err = s.Erasure(ctx, tenant, begun)
	}
	return made, replayed, err
}

// Erasure reads an erasure with the sessions that a legal hold has kept, or how far that of a tenant is; ErrNotFound.
func (s *Store) Erasure(ctx context.Context, tenant, id uuid.UUID) (session.Erasure, error) {
	return ReadTx(ctx, s.Seeing(AllSessions), tenant, func(tx pgx.Tx) (session.Erasure, error) {
		return readErasure(ctx, tx, tenant, id)
	})
}

// readErasure does what Erasure does. The transaction may see another tenant than before.
func readErasure(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) (session.Erasure, error) {
	found, err := RowIn(ctx, tx, scanErasure, `
		SELECT `+erasureColumns+`
		  FROM erasures e
		 WHERE e.tenant_id = $1 AND e.id = $2`, tenant, id)
	if err != nil {
		return found, err
	}
	if found.Kind == session.ErasureOfTenant {
		return found, readProgress(ctx, tx, &found)
	}
	found.Held, err = RowsIn(ctx, tx, pgx.RowTo[string], `
		SELECT s.id
		  FROM erasure_sessions l
		  JOIN sessions s ON s.tenant_id = $1 AND s.key = l.session_key
		 WHERE l.tenant_id = $1 AND l.erasure_id = $2 AND l.state = 'held'
		 ORDER BY s.id`, tenant, id)
	return found, err
}

// Erasures lists a tenant's erasures, newest first, without what was held.
func (s *Store) Erasures(ctx context.Context, tenant uuid.UUID, page session.Page) ([]session.Erasure, error) {
	sql := `
		SELECT ` + erasureColumns + `
		  FROM erasures e
		 WHERE e.tenant_id = $1` + NewestFirst(`e.created_at`, `e.id`)
	return QueryRows(ctx, s, tenant, scanErasure, sql, PageArgs(tenant, page)...)
}

// ErasureWork is an erasure that a worker continues.
type ErasureWork struct {
	session.Erasure
	Tenant uuid.UUID // that the erasure belongs to
	By     audit.Actor
}

// Of returns the tenant whose sessions are erased.
func (w *ErasureWork) Of() uuid.UUID {
	if w.ErasedTenant != nil {
		return *w.ErasedTenant
	}
	return w.Tenant
}

func (w *ErasureWork) erasing() erasing {
	return erasing{tenant: w.Tenant, id: w.ID, kind: w.Kind, erased: w.ErasedTenant}
}

// As returns a context in which the store does what it does in the name of the caller that asked for the erasure.
func (w *ErasureWork) As(ctx context.Context) context.Context { return audit.With(ctx, &w.By) }

// StartErasure returns an erasure that a worker has to continue; ErrNotFound, ErrEnded.
func (s *Store) StartErasure(ctx context.Context, tenant, id uuid.UUID) (w ErasureWork, err error) {
	w.Tenant = tenant
	err = s.InTenant(ctx, tenant, func(tx pgx.Tx) error {
		w.Erasure, err = RowIn(ctx, tx, scanErasure, `
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
			Scan(&w.By.Kind, &w.By.ID, &w.By.Request, &w.By.Address)
	})
	if err == nil && w.State == session.ErasureDone {
		err = session.ErrEnded
	}
	return w, err
}

// ofErasure returns the condition that an erasure is to erase a session s, see ofErasureSQL.
func (w *ErasureWork) ofErasure() string {
	if w.Kind == session.ErasureOfExpired {
		return isExpired
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

// SessionsToErase returns the next sessions that an erasure is to erase, at most limit.
func (s *Store) SessionsToErase(ctx context.Context, w ErasureWork, limit int) ([]session.Key, error) {
	s = s.Seeing(AllSessions)
	find := s.namedSessions
	switch w.Kind {
	case session.ErasureOfExpired:
		find = s.expiredSessions
	case session.ErasureOfTenant:
		find = s.allSessions
	}
	keys, err := find(ctx, w, limit)
	found := make([]session.Key, len(keys))
	for i, key := range keys {
		found[i] = session.Key{Tenant: w.Of(), Key: key}
	}
	return found, err
}

// namedSessions returns sessions that an erasure names, or finds by their metadata.
func (s *Store) namedSessions(ctx context.Context, w ErasureWork, limit int) (keys []uuid.UUID, err error) {
	err = s.inSnapshot(ctx, w.Tenant, func(tx pgx.Tx) error {
		pair, err := rarestPair(ctx, tx, w.Tenant, w.Metadata)
		if err != nil {
			return err
		}
		among, args := amongSQL(w, pair, []any{w.Tenant, w.ID, w.Metadata, limit})
		keys, err = RowsIn(ctx, tx, pgx.RowTo[uuid.UUID], `
			SELECT s.key
			  FROM sessions s
			 WHERE s.tenant_id = $1`+among+` AND `+ofErasureSQL+`
			 LIMIT $4`, args...)
		return err
	})
	return keys, err
}

// amongSQL returns the condition on sessions s among which those of an erasure are found, and args with its own behind
// them. Without a pair of its metadata they may be any.
func amongSQL(w ErasureWork, pair *metadataPair, args []any) (string, []any) {
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

// allSessions returns sessions of a tenant that is deleted.
func (s *Store) allSessions(ctx context.Context, w ErasureWork, limit int) ([]uuid.UUID, error) {
	return QueryRows(ctx, s, w.Of(), pgx.RowTo[uuid.UUID], `
		SELECT key
		  FROM sessions
		 WHERE tenant_id = $1
		 LIMIT $2`, w.Of(), limit)
}

// EraseSession erases one session of an erasure, and has that of a subject erase the session's forks. It does nothing
// to one that is gone, or is not the erasure's any more, and notes one that a legal hold keeps. One of a tenant that is
// deleted is not passed over: ErrTenantHeld, ErrHeld.
func (s *Store) EraseSession(ctx context.Context, w ErasureWork, key session.Key) error {
	s = s.Seeing(AllSessions)
	if w.Kind == session.ErasureOfTenant {
		return s.eraseOfTenant(ctx, w, key)
	}
	err := s.eraseOne(ctx, w, key)
	switch {
	case errors.Is(err, session.ErrHeld):
		return s.noteHeld(ctx, w, key)
	case errors.Is(err, session.ErrNotFound):
		return nil
	}
	return err
}

// noteHeld notes that a legal hold keeps a session.
func (s *Store) noteHeld(ctx context.Context, w ErasureWork, key session.Key) error {
	return s.InTenant(ctx, w.Tenant, func(tx pgx.Tx) error {
		return Exec(ctx, tx, `
			INSERT INTO erasure_sessions AS l (tenant_id, erasure_id, session_key, state)
			SELECT s.tenant_id, $2, s.key, 'held'
			  FROM sessions s
			 WHERE s.tenant_id = $1 AND s.key = $3
			    ON CONFLICT (tenant_id, erasure_id, session_key) DO UPDATE
			   SET state = excluded.state
			 WHERE l.state = 'due' -- another worker may have erased it since`, w.Tenant, w.ID, key.Key)
	})
}

func (s *Store) eraseOne(ctx context.Context, w ErasureWork, key session.Key) error {
	return s.underFamilyLock(ctx, key, func(tx pgx.Tx, row lockedSession) error {
		id, err := RowIn(ctx, tx, pgx.RowTo[string], `
			SELECT s.id
			  FROM sessions s
			 WHERE s.tenant_id = $1 AND s.key = $4 AND `+w.ofErasure(), w.Tenant, w.ID, w.Metadata, key.Key)
		if err != nil {
			return err
		}
		if w.Kind == session.ErasureOfSubject {
			if err := noteForks(ctx, tx, w, key); err != nil {
				return err
			}
		}
		return s.eraseFor(ctx, tx, w.erasing(), row, id)
	})
}

// noteForks has an erasure erase the forks of a session.
func noteForks(ctx context.Context, tx pgx.Tx, w ErasureWork, key session.Key) error {
	return Exec(ctx, tx, `
		INSERT INTO erasure_sessions (tenant_id, erasure_id, session_key, state)
		SELECT $1, $2, f.key, 'due'
		  FROM sessions f
		  JOIN sessions s ON s.tenant_id = $1 AND s.key = $3
		 WHERE f.tenant_id = $1 AND f.forked_from = s.id AND f.created_at >= s.created_at
		ON CONFLICT DO NOTHING`, w.Tenant, w.ID, key.Key)
}

// ErasedSession is a session without rows, whose objects may still be there.
type ErasedSession struct {
	Key      uuid.UUID
	Prefixes []uuid.UUID // sessions, below whose prefixes they lie
}

// ErasedSessions returns sessions of an erasure whose objects are to be erased, out of the next limit ones: those of
// which no job runs any more, which could write an object.
func (s *Store) ErasedSessions(ctx context.Context, w ErasureWork, limit int) ([]ErasedSession, error) {
	return ReadTx(ctx, s, w.Tenant, func(tx pgx.Tx) (ready []ErasedSession, err error) {
		next, err := RowsIn(ctx, tx, pgx.RowToStructByPos[ErasedSession], `
			SELECT session_key, prefixes
			  FROM erasure_sessions
			 WHERE tenant_id = $1 AND erasure_id = $2 AND state = 'erased'
			 ORDER BY session_key
			 LIMIT $3`, w.Tenant, w.ID, limit)
		for _, erased := range next {
			runs, err := queue.RunsFor(ctx, tx, []uuid.UUID{erased.Key})
			if err != nil {
				return nil, err
			}
			if !runs {
				ready = append(ready, erased)
			}
		}
		return ready, err
	})
}

// ObjectsErased records that nothing of a session is left in the result stores, and counts the objects.
func (s *Store) ObjectsErased(ctx context.Context, w ErasureWork, key uuid.UUID, objects int) error {
	return s.InTenant(ctx, w.Tenant, func(tx pgx.Tx) error {
		err := ExecOne(ctx, tx, session.ErrEnded, `
			UPDATE erasure_sessions
			   SET state = 'gone'
			 WHERE tenant_id = $1 AND erasure_id = $2 AND session_key = $3 AND state = 'erased'`,
			w.Tenant, w.ID, key)
		if err != nil {
			return err
		}
		return Exec(ctx, tx, `
			UPDATE erasures
			   SET objects = objects + $3
			 WHERE tenant_id = $1 AND id = $2`, w.Tenant, w.ID, objects)
	})
}
