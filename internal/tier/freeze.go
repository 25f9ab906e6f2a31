package tier

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier/frozen"
)

// Freeze writes the rows of a session into parts, reads them back, and deletes the rows. It calls trace after each
// step. It may be stopped at any time: only its last transaction changes what the session is.
//
// Errors: ErrNotFound and ErrEnded if the attempt is not the archive's any more; ErrMoved: it must begin anew; ErrHeld,
// ErrResultStore, *session.DamagedError.
func (w *Work) Freeze(ctx context.Context, trace func(step string)) error {
	var at Cursor
	written := sha256.New()
	for n, done := 0, false; !done; n++ {
		part, err := w.beginPart(ctx, n)
		if err != nil {
			return err
		}
		if done, err = w.Fill(ctx, &at, part); err != nil {
			return err
		}
		made, err := part.End()
		if err != nil {
			return err
		}
		if err := w.AddPart(ctx, n, made); err != nil {
			return err
		}
		written.Write(made.Digest[:])
		trace("part added")
	}
	parts, digest, tables, err := w.Check(ctx)
	if err == nil && !bytes.Equal(digest, written.Sum(nil)) {
		err = &session.DamagedError{What: "the archive"}
	}
	if err != nil {
		return err
	}
	trace("archive checked")
	objects, err := w.Finish(ctx, parts, digest, tables)
	if err != nil {
		return err
	}
	trace("session archived")
	forget(ctx, w.store, w.Tenant, objects)
	trace("objects forgotten")
	return nil
}

// beginPart begins a part. The first of a cold session begins with the view, which is read so without the others.
func (w *Work) beginPart(ctx context.Context, n int) (*frozen.Writer, error) {
	part, err := frozen.NewWriter()
	if err != nil || n > 0 || !w.Cold {
		return part, err
	}
	view, err := w.store.ViewOfHidden(ctx, w.Key)
	if err == nil && view != nil {
		err = part.View(view...)
	}
	return part, err
}

// Cursor is how far the rows of a session are read.
type Cursor struct {
	table int
	after []string // the key of the last row; nil at the beginning of the table
}

// archivedRow is a row on its way into an archive.
type archivedRow struct {
	texts []*string
	key   []string
	whole bool
	bytes *persist.Row // where its column body is, if that may lie outside
}

// Fill reads the next rows of a session into a part until it is full, and reports whether there are no more.
//
// Errors: ErrResultStore, *session.DamagedError.
func (w *Work) Fill(ctx context.Context, at *Cursor, part *frozen.Writer) (bool, error) {
	for !part.Full() {
		if at.table == len(archivedTables) {
			return true, nil
		}
		of, rows, err := w.page(ctx, at)
		if err != nil {
			return false, err
		}
		if len(rows) == 0 {
			*at = Cursor{table: at.table + 1}
			continue
		}
		if err := w.addBytes(ctx, of, rows); err != nil {
			return false, err
		}
		for i := range rows {
			codings := archivedTables[at.table].codings
			if !rows[i].whole {
				codings = nil
			}
			if err := part.Add(of, rows[i].texts, codings); err != nil {
				return false, err
			}
			rows[i].texts = nil
		}
		at.after = rows[len(rows)-1].key
	}
	return false, nil
}

// page reads the next rows of a table, with where their bytes are if these may lie outside.
func (w *Work) page(ctx context.Context, at *Cursor) (of frozen.Table, rows []archivedRow, err error) {
	t := &archivedTables[at.table]
	rows, err = postgres.ReadTx(ctx, w.store, w.Tenant, func(tx pgx.Tx) ([]archivedRow, error) {
		if err := postgres.Exec(ctx, tx, asText); err != nil {
			return nil, err
		}
		columns, err := t.columns(ctx, tx)
		if err != nil {
			return nil, err
		}
		var sql string
		sql, of = t.pageSQL(columns, at.after)
		args := []any{w.Tenant, w.Key.Key}
		for _, value := range at.after {
			args = append(args, value)
		}
		return postgres.RowsIn(ctx, tx, t.scan, sql, args...)
	})
	return of, rows, err
}

func (t *archivedTable) scan(row pgx.CollectableRow) (r archivedRow, err error) {
	dest := []any{&r.texts, &r.key, &r.whole}
	if t.mayBeOutside() {
		r.bytes = &persist.Row{}
		c := r.bytes
		dest = append(dest, &c.Codec, &c.Body, &c.Store, &c.Prefix, &c.Object, &c.ObjectAt, &c.ObjectSize)
	}
	return r, row.Scan(dest...)
}

// addBytes reads the bytes of chunks and packs, wherever they lie, and adds them to their rows as the last column.
func (w *Work) addBytes(ctx context.Context, of frozen.Table, rows []archivedRow) error {
	if rows[0].bytes == nil {
		return nil
	}
	places := make([]persist.Row, len(rows))
	for i := range rows {
		places[i] = *rows[i].bytes
	}
	found, err := w.store.ResultStores().Load(ctx, w.Tenant, places)
	if persist.IsMissing(err) {
		err = &session.DamagedError{What: "what lies outside", Cause: err}
	}
	if err != nil {
		return err
	}
	digest := slices.Index(of.Columns, "digest")
	for i := range rows {
		rows[i].texts = append(rows[i].texts, new(`\x`+hex.EncodeToString(found[i].Bytes)))
		if of.Name == "message_packs" && places[i].Object != nil { // PostgreSQL could not compare
			sum := sha256.Sum256(found[i].Bytes)
			rows[i].whole = *rows[i].texts[digest] == `\x`+hex.EncodeToString(sum[:])
		}
	}
	return nil
}

// AddPart puts a part of an archive into the store and notes it. ErrEnded if the attempt is not the archive's any more.
func (w *Work) AddPart(ctx context.Context, n int, part frozen.Part) error {
	id, err := w.store.ResultStores().PutObject(ctx, w.Key, w.in, part.Body)
	if err != nil {
		return err
	}
	err = w.store.InTenant(ctx, w.Tenant, func(tx pgx.Tx) error {
		if err := w.goOn(ctx, tx, part.Rows); err != nil {
			return err
		}
		if id == nil {
			return postgres.Exec(ctx, tx, `
				INSERT INTO archive_parts (tenant_id, session_key, n, body)
				VALUES ($1, $2, $3, $4)`, w.Tenant, w.Key.Key, n, part.Body)
		}
		return postgres.Exec(ctx, tx, `
			UPDATE session_archives
			   SET objects = objects || $3::uuid, sizes = sizes || $4::integer,
			       view_end = coalesce(view_end, nullif($5::integer, 0))
			 WHERE tenant_id = $1 AND session_key = $2`,
			w.Tenant, w.Key.Key, id, len(part.Body), part.ViewEnd)
	})
	if errors.Is(err, session.ErrEnded) && id != nil {
		forget(ctx, w.store, w.Tenant, []object{{w.in, w.Key.Key, *id}})
	}
	return err
}

// Finish deletes the rows of a session whose archive was read back whole, and gives the bodies that forks share to
// them. tables are the numbers of rows that were read back. It returns the objects that nothing names any more.
//
// Errors: ErrNotFound and ErrEnded if the attempt is not the archive's any more; ErrMoved: it must begin anew; ErrHeld.
func (w *Work) Finish(
	ctx context.Context, parts int, digest []byte, tables map[string]int64,
) (objects []object, err error) {
	err = w.underFamilyLock(ctx, func(tx pgx.Tx) error {
		if err := postgres.WaitForBodies(ctx, tx, w.Key); err != nil {
			return err
		}
		if err := w.goOn(ctx, tx, 0); err != nil {
			return err
		}
		if err := postgres.RefuseHeld(ctx, tx, w.Key); err != nil {
			return err
		}
		rows, err := sumOfRows(ctx, tx, w.Key)
		if err == nil && rows != w.rows {
			err = ErrMoved
		}
		if err == nil {
			err = expectRows(ctx, tx, w.Key, tables)
		}
		if err != nil {
			return err
		}
		if err := w.complete(ctx, tx, parts, digest); err != nil {
			return err
		}
		if objects, err = deleteRows(ctx, tx, w.Key); err != nil || w.Cold {
			return err
		}
		return emit(ctx, tx, w.Key, session.EventArchived)
	})
	return objects, err
}

// expectRows returns ErrMoved unless a session has as many rows as an archive of it.
func expectRows(ctx context.Context, tx pgx.Tx, key session.Key, archived map[string]int64) error {
	found, err := postgres.RowIn(ctx, tx, pgx.RowTo[map[string]int64], countRowsSQL, key.Tenant, key.Key)
	for table, rows := range found {
		if rows != archived[table] {
			err = ErrMoved
		}
	}
	return err
}

// complete makes an archive complete, with what a session has before its rows are deleted, and what language models
// cost for it, by the answers that are kept.
func (w *Work) complete(ctx context.Context, tx pgx.Tx, parts int, digest []byte) error {
	has, err := postgres.ContentsOf(ctx, tx, w.Key)
	if err != nil {
		return err
	}
	return postgres.ExecOne(ctx, tx, session.ErrEnded, `
		UPDATE session_archives
		   SET state = 'archived', archived_at = now(), attempt = NULL, error = NULL, failed_at = NULL,
		       rows = done, messages = $4, results = $5, bodies = $6, checkpoints = $7, bytes = $8, contents = $9,
		       model_use = coalesce((
		                   SELECT jsonb_build_object(
		                          'calls', count(*), 'input', coalesce(sum(input_tokens), 0),
		                          'output', coalesce(sum(output_tokens), 0), 'cost', coalesce(sum(cost_micros), 0))
		                     FROM model_answers
		                    WHERE tenant_id = $1 AND session_key = $2 AND answer IS NOT NULL
		                   HAVING count(*) > 0), '{}'),
		       message_bytes = $10, parts = $11, digest = $12,
		       stored = (SELECT coalesce(sum(size), 0) FROM unnest(sizes) size)
		              + (SELECT coalesce(sum(octet_length(body)), 0)
		                   FROM archive_parts
		                  WHERE tenant_id = $1 AND session_key = $2)
		 WHERE tenant_id = $1 AND session_key = $2 AND id = $3 AND state = 'archiving'`,
		w.Tenant, w.Key.Key, w.id, has.Messages, has.Results, has.Bodies, has.Checkpoints, has.Bytes, has.Digest,
		has.MessageBytes, parts, digest)
}

// deleteRows deletes the rows of a session that an archive has and those that are made anew, and gives the bodies that
// forks share to them, whose sessions are locked. It returns the objects that nothing names any more.
func deleteRows(ctx context.Context, tx pgx.Tx, key session.Key) (objects []object, err error) {
	batch := &pgx.Batch{}
	postgres.QueueHandOver(batch, key)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, err
	}
	objects, err = postgres.RowsIn(ctx, tx, pgx.RowToStructByPos[object], `
		SELECT DISTINCT b.store, coalesce(b.objects_in, b.session_key), c.object
		  FROM result_chunks c
		  JOIN result_bodies b ON b.tenant_id = c.tenant_id AND b.session_key = c.session_key AND b.id = c.body_id
		 WHERE c.tenant_id = $1 AND c.session_key = $2 AND c.object IS NOT NULL`, key.Tenant, key.Key)
	if err != nil {
		return nil, err
	}
	batch = &pgx.Batch{}
	archived, anew := Tables()
	for _, table := range append(archived, anew...) {
		batch.Queue(`DELETE FROM `+table+` WHERE tenant_id = $1 AND session_key = $2`, key.Tenant, key.Key)
	}
	return objects, tx.SendBatch(ctx, batch).Close()
}

// cancel shows a session again whose archive is not complete; ErrNotFound, ErrEnded.
func (w *Work) cancel(ctx context.Context, why error) error {
	var objects []object
	err := underLock(ctx, w.store, w.Key, func(tx pgx.Tx) (err error) {
		if err := w.goOn(ctx, tx, 0); err != nil {
			return err
		}
		if w.Cold {
			if err := noteUse(ctx, tx, w.Key); err != nil { // it is not tried again at once
				return err
			}
		}
		var id string
		if id, objects, err = end(ctx, w.store, tx, w.Key); err != nil || w.Cold {
			return err
		}
		return postgres.Record(ctx, tx, w.Tenant, audit.SessionUnarchive, audit.Session, id,
			map[string]string{"reason": why.Error()})
	})
	forget(ctx, w.store, w.Tenant, objects)
	return err
}

// emit tells that a session was archived or is back.
func emit(ctx context.Context, tx pgx.Tx, key session.Key, kind session.EventType) error {
	type counts struct {
		LastSeq     int64 `json:"last_seq"`
		TotalTokens int64 `json:"total_tokens"`
	}
	data, err := postgres.RowIn(ctx, tx, pgx.RowToStructByPos[counts], `
		SELECT last_seq, total_tokens
		  FROM sessions
		 WHERE tenant_id = $1 AND key = $2`, key.Tenant, key.Key)
	if err != nil {
		return err
	}
	return postgres.EmitOf(ctx, tx, key, kind, data)
}
