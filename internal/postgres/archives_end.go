package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/session"
)

// ErrArchiveMoved says that rows of a session have changed since its archive was begun.
var ErrArchiveMoved = errors.New("rows of the session have changed since its archive was begun")

// FinishArchive deletes the rows of a session whose archive was read back whole, and gives the bodies that forks share
// to them. tables are the numbers of rows that were read back. It returns the objects that nothing names any more.
//
// Errors: ErrNotFound and ErrEnded if the attempt is not the archive's any more; ErrArchiveMoved: it must begin anew;
// ErrHeld.
func (s *Store) FinishArchive(
	ctx context.Context, w *ArchiveWork, parts int, digest []byte, tables map[string]int64,
) (objects []AwayObject, err error) {
	err = s.Seeing(AllSessions).underFamilyLock(ctx, w.Key, func(tx pgx.Tx, _ lockedSession) error {
		if err := waitForBodies(ctx, tx, w.Key); err != nil {
			return err
		}
		if err := w.goOn(ctx, tx, 0); err != nil {
			return err
		}
		if err := refuseHeld(ctx, tx, w.Key); err != nil {
			return err
		}
		rows, err := sumOfRows(ctx, tx, w.Key)
		if err == nil && rows != w.rows {
			err = ErrArchiveMoved
		}
		if err == nil {
			err = expectRows(ctx, tx, w.Key, tables)
		}
		if err != nil {
			return err
		}
		if err := countArchived(ctx, tx, w, parts, digest); err != nil {
			return err
		}
		if objects, err = deleteArchived(ctx, tx, w.Key); err != nil || w.Cold {
			return err
		}
		return emitArchived(ctx, tx, w.Key, session.EventArchived)
	})
	return objects, err
}

// expectRows returns ErrArchiveMoved unless a session has as many rows as an archive of it.
func expectRows(ctx context.Context, tx pgx.Tx, key session.Key, archived map[string]int64) error {
	found, err := RowIn(ctx, tx, pgx.RowTo[map[string]int64], countRowsSQL, key.Tenant, key.Key)
	for table, rows := range found {
		if rows != archived[table] {
			err = ErrArchiveMoved
		}
	}
	return err
}

// countArchived makes an archive complete, with what a session has before its rows are deleted.
func countArchived(ctx context.Context, tx pgx.Tx, w *ArchiveWork, parts int, digest []byte) error {
	var messages, results, bodies, checkpoints, bytes int64
	var contents []byte
	err := tx.QueryRow(ctx, erasedCountsSQL, w.Tenant, w.Key.Key).
		Scan(&messages, &results, &bodies, &checkpoints, &bytes, &contents)
	if err != nil {
		return err
	}
	use, err := modelUseOf(ctx, tx, w.Key)
	if err != nil {
		return err
	}
	return ExecOne(ctx, tx, session.ErrEnded, `
		UPDATE session_archives
		   SET state = 'archived', archived_at = now(), attempt = NULL, error = NULL, failed_at = NULL,
		       rows = done, messages = $4, results = $5, bodies = $6, checkpoints = $7, bytes = $8, contents = $9,
		       model_use = CASE $10::jsonb ->> 'calls' WHEN '0' THEN '{}' ELSE $10::jsonb END,
		       parts = $11, digest = $12,
		       message_bytes = (SELECT coalesce(sum(`+messageBytes+`), 0)
		                          FROM messages
		                         WHERE tenant_id = $1 AND session_key = $2),
		       stored = (SELECT coalesce(sum(size), 0) FROM unnest(sizes) size)
		              + (SELECT coalesce(sum(octet_length(body)), 0)
		                   FROM archive_parts
		                  WHERE tenant_id = $1 AND session_key = $2)
		 WHERE tenant_id = $1 AND session_key = $2 AND id = $3 AND state = 'archiving'`,
		w.Tenant, w.Key.Key, w.ID, messages, results, bodies, checkpoints, bytes, contents, use, parts, digest)
}

// deleteArchived deletes the rows of a session that an archive has and those that are made anew, and gives the bodies
// that forks share to them, whose sessions are locked. It returns the objects that nothing names any more.
func deleteArchived(ctx context.Context, tx pgx.Tx, key session.Key) (objects []AwayObject, err error) {
	batch := &pgx.Batch{}
	queueHandOver(batch, key)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, err
	}
	objects, err = RowsIn(ctx, tx, pgx.RowToStructByPos[AwayObject], `
		SELECT DISTINCT b.store, coalesce(b.objects_in, b.session_key), c.object
		  FROM result_chunks c
		  JOIN result_bodies b ON b.tenant_id = c.tenant_id AND b.session_key = c.session_key AND b.id = c.body_id
		 WHERE c.tenant_id = $1 AND c.session_key = $2 AND c.object IS NOT NULL`, key.Tenant, key.Key)
	if err != nil {
		return nil, err
	}
	batch = &pgx.Batch{}
	archived, anew := ArchivedTables()
	for _, table := range append(archived, anew...) {
		batch.Queue(`DELETE FROM `+table+` WHERE tenant_id = $1 AND session_key = $2`, key.Tenant, key.Key)
	}
	return objects, tx.SendBatch(ctx, batch).Close()
}

// CancelArchive shows a session again whose archive is not complete, and returns its objects; ErrNotFound, ErrEnded.
func (s *Store) CancelArchive(ctx context.Context, w *ArchiveWork, why string) (objects []AwayObject, err error) {
	err = s.Seeing(AllSessions).underLock(ctx, w.Key, func(tx pgx.Tx, _ lockedSession) error {
		if err := w.goOn(ctx, tx, 0); err != nil {
			return err
		}
		if w.Cold {
			if err := noteUse(ctx, tx, w.Key); err != nil { // it is not tried again at once
				return err
			}
		}
		if objects, err = s.endArchive(ctx, tx, w.Key); err != nil || w.Cold {
			return err
		}
		id, err := idOf(ctx, tx, w.Key)
		if err != nil {
			return err
		}
		return recordSession(ctx, tx, session.Address{Tenant: w.Tenant, ID: id}, audit.SessionUnarchive,
			about{"reason": why})
	})
	return objects, err
}

// FinishRestoring shows a session again whose rows are all back, and deletes the rows of its archive. It returns the
// objects of the archive, which nothing names any more.
//
// Errors: ErrNotFound and ErrEnded if the attempt is not the archive's any more; ErrArchiveMoved: it must begin anew.
func (s *Store) FinishRestoring(ctx context.Context, w *ArchiveWork) (objects []AwayObject, err error) {
	err = s.Seeing(AllSessions).underLock(ctx, w.Key, func(tx pgx.Tx, _ lockedSession) error {
		if err := w.goOn(ctx, tx, 0); err != nil {
			return err
		}
		if err := expectRows(ctx, tx, w.Key, w.tables); err != nil {
			return err
		}
		if objects, err = s.endArchive(ctx, tx, w.Key); err != nil || w.Cold {
			return err
		}
		return emitArchived(ctx, tx, w.Key, session.EventRestored)
	})
	return objects, err
}

// emitArchived tells that a session was archived or is back.
func emitArchived(ctx context.Context, tx pgx.Tx, key session.Key, kind session.EventType) error {
	data, err := RowIn(ctx, tx, pgx.RowToStructByPos[archivedCounts], `
		SELECT last_seq, total_tokens
		  FROM sessions
		 WHERE tenant_id = $1 AND key = $2`, key.Tenant, key.Key)
	if err != nil {
		return err
	}
	return emitOf(ctx, tx, key, kind, data)
}

type archivedCounts struct {
	LastSeq     int64 `json:"last_seq"`
	TotalTokens int64 `json:"total_tokens"`
}
