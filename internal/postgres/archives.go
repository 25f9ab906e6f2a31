package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// archiveColumns are those of an archive a with its session s.
var archiveColumns = `
	s.id, s.key, a.state, s.frozen_at, a.archived_at, ` + expiresAt(ofTenant) + `, a.messages, a.results, a.checkpoints,
	a.bytes, a.stored, a.rows, a.done, encode(a.digest, 'hex'), a.parts, a.store, a.error, a.failed_at`

func scanArchive(row pgx.CollectableRow) (a session.Archive, err error) {
	var store persist.Kind
	err = row.Scan(&a.Session, &a.Key, &a.State, &a.AskedAt, &a.ArchivedAt, &a.ExpiresAt, &a.Messages, &a.Results,
		&a.Checkpoints, &a.Bytes, &a.StoredBytes, &a.Rows, &a.DoneRows, &a.SHA256, &a.Parts, &store, &a.Error,
		&a.FailedAt)
	if err == nil {
		a.Store = store.String()
	}
	return a, err
}

func readArchive(ctx context.Context, tx pgx.Tx, key session.Key) (session.Archive, error) {
	return RowIn(ctx, tx, scanArchive, `
		SELECT `+archiveColumns+`
		  FROM session_archives a
		  JOIN sessions s ON s.tenant_id = a.tenant_id AND s.key = a.session_key
		 WHERE a.tenant_id = $1 AND a.session_key = $2 AND s.archived`, key.Tenant, key.Key)
}

// ArchiveOf reads the archive of a session; ErrNotFound if there is no such session, or it is not archived.
func (s *Store) ArchiveOf(ctx context.Context, at session.Address) (session.Archive, error) {
	return InSession(ctx, s.Seeing(AllSessions), at, func(tx pgx.Tx, key session.Key) (session.Archive, error) {
		return readArchive(ctx, tx, key)
	})
}

// Archives lists a tenant's archives, those first that were asked for last.
func (s *Store) Archives(ctx context.Context, tenant uuid.UUID, page session.Page) ([]session.Archive, error) {
	return QueryRows(ctx, s.Seeing(AllSessions), tenant, scanArchive, `
		SELECT `+archiveColumns+`
		  FROM sessions s
		  JOIN session_archives a ON a.tenant_id = s.tenant_id AND a.session_key = s.key
		 WHERE s.tenant_id = $1 AND s.archived`+NewestFirst(`s.frozen_at`, `s.key`), PageArgs(tenant, page)...)
}

// Archive hides a session and has a worker archive it. Doing it twice changes nothing.
//
// Errors: ErrNotFound, ErrHeld, ErrRestoring, ErrSessionBusy, ErrIdempotencyReused.
func (s *Store) Archive(
	ctx context.Context, at session.Address, id *session.Idempotency,
) (session.Archive, bool, error) {
	s = s.Seeing(AllSessions)
	return onceInSession(ctx, s, at, id, func(tx pgx.Tx, row lockedSession) (session.Archive, error) {
		found, err := readArchive(ctx, tx, row.Key)
		switch {
		case errors.Is(err, session.ErrNotFound):
			err = s.beginArchive(ctx, tx, row.Key, at.ID)
		case err == nil && found.State == session.Restoring:
			err = session.ErrRestoring
		}
		if err != nil {
			return found, err
		}
		return readArchive(ctx, tx, row.Key)
	})
}

// beginArchive hides a session that this transaction has locked, once the ledger has counted it, and inserts the job
// that archives it. A cold session is archived already.
func (s *Store) beginArchive(ctx context.Context, tx pgx.Tx, key session.Key, id string) error {
	if err := refuseHeld(ctx, tx, key); err != nil {
		return err
	}
	was, err := archiveCold(ctx, tx, key)
	if errors.Is(err, session.ErrNotFound) {
		err = s.freeze(ctx, tx, key, id, true)
	}
	if err != nil {
		return err
	}
	if err := lookAtOwn(ctx, tx, key); err != nil {
		return err
	}
	if was == session.Archived {
		if err := emitArchived(ctx, tx, key, session.EventArchived); err != nil {
			return err
		}
	}
	return record(ctx, tx, key.Tenant, auditEntry{action: audit.SessionArchive, object: audit.Session, id: id})
}

// freeze hides a session that this transaction has locked, once the ledger has counted it, and inserts the job that
// moves what was said into an archive. archived says that somebody asked for it. Cold sessions are noted by the day:
// entries of an index that are equal take less space.
func (s *Store) freeze(ctx context.Context, tx pgx.Tx, key session.Key, id string, archived bool) error {
	archive := uuid.Must(uuid.NewV7())
	batch := &pgx.Batch{}
	queueUsage(batch, key.Tenant, []session.Reading{{Session: id}})
	batch.Queue(`
		UPDATE sessions
		   SET frozen_at = CASE WHEN $3 THEN now() ELSE date_trunc('day', now(), 'UTC') END, archived = $3
		 WHERE tenant_id = $1 AND key = $2`, key.Tenant, key.Key, archived)
	batch.Queue(`
		UPDATE usage_sessions
		   SET away = true
		 WHERE tenant_id = $1 AND session_key = $2`, key.Tenant, key.Key)
	batch.Queue(`
		INSERT INTO session_archives (tenant_id, session_key, id, store)
		VALUES ($1, $2, $3, $4)`, key.Tenant, key.Key, archive, s.results.ForArchives())
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	return s.insertArchiving(ctx, tx, key, archive, false, time.Time{})
}

// insertArchiving inserts the job that archives or restores a session, which starts at a time, the zero time being now.
func (s *Store) insertArchiving(
	ctx context.Context, tx pgx.Tx, key session.Key, archive uuid.UUID, back bool, start time.Time,
) error {
	if err := AddTask(ctx, tx, key.Tenant, TaskArchive); err != nil {
		return err
	}
	args := queue.ArchiveArgs{Tenant: key.Tenant, Session: key.Key, Archive: archive, Back: back}
	_, _, err := s.queue.Insert(ctx, tx, args, start)
	return err
}

// Unarchive has a worker restore an archived session. One whose archive is not complete is back at once, and its state
// is Restored. Doing it twice changes nothing.
//
// Errors: ErrNotFound if there is no such session, or it is not archived; ErrSessionBusy, ErrIdempotencyReused.
func (s *Store) Unarchive(
	ctx context.Context, at session.Address, id *session.Idempotency,
) (session.Archive, bool, error) {
	s = s.Seeing(AllSessions)
	return onceInSession(ctx, s, at, id, func(tx pgx.Tx, row lockedSession) (session.Archive, error) {
		found, err := readArchive(ctx, tx, row.Key)
		if err != nil || found.State == session.Restoring {
			return found, err
		}
		if _, err := s.beginThaw(ctx, tx, row.Key, false, time.Time{}); err != nil {
			return found, err
		}
		if found.State == session.Archiving {
			found.State, found.ExpiresAt = session.Restored, nil
		} else if found, err = readArchive(ctx, tx, row.Key); err != nil {
			return found, err
		}
		return found, recordSession(ctx, tx, at, audit.SessionUnarchive, nil)
	})
}

// endArchive shows a session again whose rows are all there, deletes the rows of its archive, and returns its objects,
// which nothing names any more. The retention of one that was archived counts from now; one that was cold is what it
// was. A compaction that is due is asked for. A part that a worker adds just now is waited for, see AddPart.
func (s *Store) endArchive(ctx context.Context, tx pgx.Tx, key session.Key) (objects []AwayObject, err error) {
	objects, err = RowsIn(ctx, tx, pgx.RowToStructByPos[AwayObject], `
		WITH locked AS (
			SELECT store, session_key, objects
			  FROM session_archives
			 WHERE tenant_id = $1 AND session_key = $2
			   FOR UPDATE
		)
		SELECT store, session_key, unnest(objects)
		  FROM locked`, key.Tenant, key.Key)
	if err != nil {
		return nil, err
	}
	batch := &pgx.Batch{}
	for _, table := range []string{"archive_parts", "session_archives"} {
		batch.Queue(`DELETE FROM `+table+` WHERE tenant_id = $1 AND session_key = $2`, key.Tenant, key.Key)
	}
	batch.Queue(`
		UPDATE usage_sessions u
		   SET away = false, back_at = now(),
		       thawed_at = CASE WHEN s.archived THEN now() ELSE u.thawed_at END
		  FROM sessions s
		 WHERE u.tenant_id = $1 AND u.session_key = $2 AND s.tenant_id = $1 AND s.key = $2`, key.Tenant, key.Key)
	batch.Queue(`
		UPDATE sessions
		   SET frozen_at = NULL, archived = false,
		       restored_at = CASE WHEN archived THEN now() ELSE restored_at END,
		       idle_asked = idle_asked AND NOT archived
		 WHERE tenant_id = $1 AND key = $2`, key.Tenant, key.Key)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, err
	}
	if err := lookAtOwn(ctx, tx, key); err != nil {
		return nil, err
	}
	id, err := idOf(ctx, tx, key)
	if err != nil {
		return nil, err
	}
	if err := s.changed(ctx, tx, key.Tenant, []string{id}); err != nil {
		return nil, err
	}
	_, err = s.sweepOne(ctx, tx, key)
	return objects, err
}

// RequeueArchives inserts the jobs of a tenant's archives that have lost theirs. It returns how many.
func (s *Store) RequeueArchives(ctx context.Context, tenant uuid.UUID) (lost int, err error) {
	type archive struct {
		Key, ID uuid.UUID
		Back    bool
	}
	found, err := QueryRows(ctx, s, tenant, pgx.RowToStructByPos[archive], `
		SELECT session_key, id, state = 'restoring'
		  FROM session_archives
		 WHERE tenant_id = $1 AND state <> 'archived'
		 ORDER BY id
		 LIMIT $2`, tenant, requeuedArchives)
	if err != nil {
		return 0, err
	}
	for _, a := range found {
		args := queue.ArchiveArgs{Tenant: tenant, Session: a.Key, Archive: a.ID, Back: a.Back}
		inserted, err := InTx(ctx, s, tenant, func(tx pgx.Tx) (inserted bool, err error) {
			_, inserted, err = s.queue.Insert(ctx, tx, args, time.Time{})
			return inserted, err
		})
		if err != nil {
			return lost, err
		}
		if inserted {
			lost++
		}
	}
	return lost, nil
}

// requeuedArchives bounds how many archives one sweep looks at.
const requeuedArchives = 1000
