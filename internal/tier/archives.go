package tier

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// archiveColumns are those of an archive a with its session s.
var archiveColumns = `
	s.id, s.key, a.state, s.frozen_at, a.archived_at, ` + postgres.ExpiresAt + `, a.messages, a.results, a.checkpoints,
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
	return postgres.RowIn(ctx, tx, scanArchive, `
		SELECT `+archiveColumns+`
		  FROM session_archives a
		  JOIN sessions s ON s.tenant_id = a.tenant_id AND s.key = a.session_key
		 WHERE a.tenant_id = $1 AND a.session_key = $2 AND s.archived`, key.Tenant, key.Key)
}

// ArchiveOf reads the archive of a session; ErrNotFound if there is no such session, or it is not archived.
func ArchiveOf(ctx context.Context, s *postgres.Store, at session.Address) (session.Archive, error) {
	return postgres.InSession(ctx, s.Seeing(postgres.AllSessions), at,
		func(tx pgx.Tx, key session.Key) (session.Archive, error) { return readArchive(ctx, tx, key) })
}

// Archives lists a tenant's archives, those first that were asked for last.
func Archives(ctx context.Context, s *postgres.Store, tenant uuid.UUID, page session.Page) ([]session.Archive, error) {
	return postgres.QueryRows(ctx, s.Seeing(postgres.AllSessions), tenant, scanArchive, `
		SELECT `+archiveColumns+`
		  FROM sessions s
		  JOIN session_archives a ON a.tenant_id = s.tenant_id AND a.session_key = s.key
		 WHERE s.tenant_id = $1 AND s.archived`+postgres.NewestFirst(`s.frozen_at`, `s.key`),
		postgres.PageArgs(tenant, page)...)
}

// Archive hides a session and has a worker archive it. Doing it twice changes nothing.
//
// Errors: ErrNotFound, ErrHeld, ErrRestoring, ErrSessionBusy, ErrIdempotencyReused.
func Archive(
	ctx context.Context, s *postgres.Store, at session.Address, id *session.Idempotency,
) (session.Archive, bool, error) {
	s = s.Seeing(postgres.AllSessions)
	return postgres.OnceInSession(ctx, s, at, id, func(tx pgx.Tx, key session.Key) (session.Archive, error) {
		found, err := readArchive(ctx, tx, key)
		switch {
		case errors.Is(err, session.ErrNotFound):
			err = Begin(ctx, s, tx, key, at.ID)
		case err == nil && found.State == session.Restoring:
			err = session.ErrRestoring
		}
		if err != nil {
			return found, err
		}
		return readArchive(ctx, tx, key)
	})
}

// Begin hides a session that a transaction has locked, once the ledger has counted it, and inserts the job that
// archives it. The archive of a cold session is what it was.
//
// Errors: ErrHeld, ErrRestoring.
func Begin(ctx context.Context, s *postgres.Store, tx pgx.Tx, key session.Key, id string) error {
	if err := postgres.RefuseHeld(ctx, tx, key); err != nil {
		return err
	}
	was, err := postgres.RowIn(ctx, tx, pgx.RowTo[session.ArchiveState], `
		UPDATE session_archives
		   SET archived_at = CASE WHEN state = 'archived' THEN now() END
		 WHERE tenant_id = $1 AND session_key = $2
		RETURNING state`, key.Tenant, key.Key)
	switch {
	case errors.Is(err, session.ErrNotFound):
		err = freeze(ctx, s, tx, key, id, true)
	case err == nil && was == session.Restoring:
		err = session.ErrRestoring
	case err == nil:
		err = postgres.Exec(ctx, tx, `
			UPDATE sessions
			   SET frozen_at = now(), archived = true
			 WHERE tenant_id = $1 AND key = $2`, key.Tenant, key.Key)
	}
	if err != nil {
		return err
	}
	if err := postgres.LookAtOwn(ctx, tx, key); err != nil {
		return err
	}
	if was == session.Archived {
		if err := emit(ctx, tx, key, session.EventArchived); err != nil {
			return err
		}
	}
	return postgres.Record(ctx, tx, key.Tenant, audit.SessionArchive, audit.Session, id, nil)
}

// freeze hides a session that a transaction has locked, once the ledger has counted it, and inserts the job that moves
// what was said into an archive. archived says that somebody asked for it. Cold sessions are noted by the day: entries
// of an index that are equal take less space.
func freeze(ctx context.Context, s *postgres.Store, tx pgx.Tx, key session.Key, id string, archived bool) error {
	archive := uuid.Must(uuid.NewV7())
	batch := &pgx.Batch{}
	postgres.QueueUsage(batch, key.Tenant, []session.Reading{{Session: id}})
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
		VALUES ($1, $2, $3, $4)`, key.Tenant, key.Key, archive, s.ResultStores().ForArchives())
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	return insertJob(ctx, s, tx, key, archive, false, time.Time{})
}

// task is that of tenants with archives on their way.
const task postgres.TaskKind = "archive"

// insertJob inserts the job that archives or restores a session, which starts at a time, the zero time being now.
func insertJob(
	ctx context.Context, s *postgres.Store, tx pgx.Tx, key session.Key, archive uuid.UUID, back bool, start time.Time,
) error {
	if err := postgres.AddTask(ctx, tx, key.Tenant, task); err != nil {
		return err
	}
	args := queue.ArchiveArgs{Tenant: key.Tenant, Session: key.Key, Archive: archive, Back: back}
	_, _, err := s.Queue().Insert(ctx, tx, args, start)
	return err
}

// Unarchive has a worker restore an archived session. One whose archive is not complete is back at once, and its state
// is Restored. Doing it twice changes nothing.
//
// Errors: ErrNotFound if there is no such session, or it is not archived; ErrSessionBusy, ErrIdempotencyReused.
func Unarchive(
	ctx context.Context, s *postgres.Store, at session.Address, id *session.Idempotency,
) (session.Archive, bool, error) {
	s = s.Seeing(postgres.AllSessions)
	return postgres.OnceInSession(ctx, s, at, id, func(tx pgx.Tx, key session.Key) (session.Archive, error) {
		found, err := readArchive(ctx, tx, key)
		if err != nil || found.State == session.Restoring {
			return found, err
		}
		if _, err := beginThaw(ctx, s, tx, key, false, time.Time{}); err != nil {
			return found, err
		}
		if found.State == session.Archiving {
			found.State, found.ExpiresAt = session.Restored, nil
		} else if found, err = readArchive(ctx, tx, key); err != nil {
			return found, err
		}
		return found, postgres.Record(ctx, tx, at.Tenant, audit.SessionUnarchive, audit.Session, at.ID, nil)
	})
}

// end shows a session again whose rows are all there, deletes the rows of its archive, and returns the session's id and
// the archive's objects, which nothing names any more. The retention of one that was archived counts from now; one that
// was cold is what it was. A compaction that is due is asked for. A part that a worker adds just now is waited for, see
// AddPart.
func end(ctx context.Context, s *postgres.Store, tx pgx.Tx, key session.Key) (id string, objects []object, err error) {
	objects, err = postgres.RowsIn(ctx, tx, pgx.RowToStructByPos[object], `
		WITH locked AS (
			SELECT store, session_key, objects
			  FROM session_archives
			 WHERE tenant_id = $1 AND session_key = $2
			   FOR UPDATE
		)
		SELECT store, session_key, unnest(objects)
		  FROM locked`, key.Tenant, key.Key)
	if err != nil {
		return "", nil, err
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
		 WHERE tenant_id = $1 AND key = $2
		RETURNING id`, key.Tenant, key.Key).QueryRow(func(row pgx.Row) error { return row.Scan(&id) })
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return "", nil, err
	}
	if err := postgres.LookAtOwn(ctx, tx, key); err != nil {
		return "", nil, err
	}
	return id, objects, s.TellBack(ctx, tx, key, id)
}

// requeuedArchives bounds how many archives one sweep looks at.
const requeuedArchives = 1000

// onTheirWaySQL finds the jobs of archives that are made or restored.
var onTheirWaySQL = `
	SELECT tenant_id, session_key, id, state = 'restoring'
	  FROM session_archives
	 WHERE tenant_id = $1 AND state <> 'archived'
	 ORDER BY id
	 LIMIT ` + strconv.Itoa(requeuedArchives)

// Duty returns what the sweep does for the tenants with archives on their way: it inserts the jobs of those that have
// lost theirs.
func Duty(s *postgres.Store, log *slog.Logger) postgres.Duty {
	return postgres.Duty{
		Kind:   task,
		Needed: `EXISTS (SELECT FROM session_archives WHERE tenant_id = $1 AND state <> 'archived')`,
		Do: func(ctx context.Context, tenant uuid.UUID) error {
			lost, err := postgres.Requeue[queue.ArchiveArgs](ctx, s, tenant, onTheirWaySQL)
			if lost > 0 {
				log.WarnContext(ctx, "archives of sessions had lost their job", "tenant", tenant, "archives", lost)
			}
			return err
		},
	}
}
