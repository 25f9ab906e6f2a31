package persist

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// NewBody inserts a body that is written as it arrives, and returns its id. The caller names the id in a row with a
// foreign key: what nothing names is collected.
func NewBody(ctx context.Context, tx pgx.Tx, key session.Key, kind Kind) (id uuid.UUID, err error) {
	id = uuid.Must(uuid.NewV7())
	_, err = tx.Exec(ctx, `
		INSERT INTO result_bodies (tenant_id, session_key, id, store)
		VALUES ($1, $2, $3, $4)`, key.Tenant, key.Key, id, kind)
	return id, err
}

// WriterState is a body that is being written, as it was saved last.
type WriterState struct {
	Saved []byte // what a Writer saved; nil if nothing has arrived
	Bytes int64
	Store Kind
}

// Writing reads a body that is being written; ErrNotFound, ErrWritten if it is complete.
func Writing(ctx context.Context, tx pgx.Tx, key session.Key, id uuid.UUID) (w WriterState, err error) {
	var complete bool
	err = tx.QueryRow(ctx, `
		SELECT writing, bytes, store, sha256 IS NOT NULL
		  FROM result_bodies
		 WHERE tenant_id = $1 AND session_key = $2 AND id = $3`,
		key.Tenant, key.Key, id).Scan(&w.Saved, &w.Bytes, &w.Store, &complete)
	if errors.Is(err, pgx.ErrNoRows) {
		return w, session.ErrNotFound
	}
	if err == nil && complete {
		err = session.ErrWritten
	}
	return w, err
}

// Writer cuts a body that arrives in pieces, and holds at most 8 MiB of it. It is for one goroutine. What it holds is
// stored by Flush, outside of a transaction, and then by Save or Complete in one.
type Writer struct {
	stores *Stores
	key    session.Key
	id     uuid.UUID
	kind   Kind
	cut    *cutter
	held   []encoded // not yet stored
	put    int       // how many of them are objects already
	oldest time.Time // when the first of these was put
	saved  int64     // the offset that the row has
}

// NewWriter returns a writer that continues where another saved.
func NewWriter(stores *Stores, key session.Key, id uuid.UUID, state WriterState) (*Writer, error) {
	w := &Writer{stores: stores, key: key, id: id, kind: state.Store, cut: newCutter(), saved: state.Bytes}
	if state.Saved == nil {
		return w, nil
	}
	var err error
	w.cut, err = loadCutter(state.Saved)
	return w, err
}

// Offset returns how many bytes have arrived, those that are not saved yet included.
func (w *Writer) Offset() int64 { return w.cut.offset() }

// Write takes the next bytes.
func (w *Writer) Write(p []byte) (int, error) {
	w.held = append(w.held, w.cut.write(p)...)
	return len(p), nil
}

// Full reports whether it is time to save.
func (w *Writer) Full() bool { return len(w.held) >= objectChunks }

// Flush stores what is held outside the database, if the body lies there. No transaction may be open.
func (w *Writer) Flush(ctx context.Context) error {
	if w.put == 0 {
		w.oldest = time.Now()
	}
	if err := w.stores.putChunks(ctx, w.key, w.kind, w.held[w.put:]); err != nil {
		return err
	}
	w.put = len(w.held)
	return nil
}

// Save stores what was flushed and the state from which another writer can go on.
//
// Errors: ErrWritten if another writer has saved meanwhile.
func (w *Writer) Save(ctx context.Context, tx pgx.Tx) error {
	state, err := w.cut.save()
	if err != nil {
		return err
	}
	if err := InTime(w.oldest); err != nil && w.kind != Postgres && w.put > 0 {
		return err
	}
	tag, err := tx.Exec(ctx, `
		UPDATE result_bodies
		   SET bytes = $5, writing = $6, touched_at = now()
		 WHERE tenant_id = $1 AND session_key = $2 AND id = $3 AND bytes = $4 AND sha256 IS NULL`,
		w.key.Tenant, w.key.Key, w.id, w.saved, w.Offset(), state)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return session.ErrWritten
	}
	var chunks chunkColumns
	chunks.add(w.id, w.held)
	return chunks.insert(ctx, tx, w.key)
}

// Saved notes that the transaction of a Save is committed.
func (w *Writer) Saved() {
	w.saved = w.Offset()
	w.held = nil
	w.put = 0
	w.stores.Step("committed")
}

// End makes the last chunk of what has arrived, and returns the whole body. Flush and Complete must follow.
func (w *Writer) End() Body {
	last, whole := w.cut.end()
	w.held = append(w.held, last...)
	return whole
}

// Complete stores the rest of a body whose writer has ended. If the session has an equal body, that one stays, and
// Complete returns its id; Drop must then delete this one, once nothing names it.
//
// Errors: ErrWritten.
func (w *Writer) Complete(ctx context.Context, tx pgx.Tx, whole Body) (id uuid.UUID, err error) {
	if err := InTime(w.oldest); err != nil && w.kind != Postgres && w.put > 0 {
		return id, err
	}
	equal := map[[32]byte]uuid.UUID{}
	if err := findBodies(ctx, tx, w.key, []newBody{{Body: whole}}, equal); err != nil {
		return id, err
	}
	if id, ok := equal[whole.SHA256]; ok && id != w.id {
		return id, nil
	}
	tag, err := tx.Exec(ctx, `
		UPDATE result_bodies
		   SET sha256 = $5, bytes = $6, lines = $7, writing = NULL, touched_at = now()
		 WHERE tenant_id = $1 AND session_key = $2 AND id = $3 AND bytes = $4 AND sha256 IS NULL`,
		w.key.Tenant, w.key.Key, w.id, w.saved, whole.SHA256[:], whole.Bytes, whole.Lines)
	if err != nil {
		return id, err
	}
	if tag.RowsAffected() == 0 {
		return id, session.ErrWritten
	}
	var chunks chunkColumns
	chunks.add(w.id, w.held)
	return w.id, chunks.insert(ctx, tx, w.key)
}

// Forget deletes the objects of a body that was dropped, and those that an equal body made needless. What it cannot
// delete, a collection finds later.
func (w *Writer) Forget(ctx context.Context, objects []uuid.UUID) {
	_ = w.stores.Forget(ctx, w.key, w.kind, objects)
}

// Drop deletes the rows of a body that nothing names, and returns the objects that it had.
func Drop(ctx context.Context, tx pgx.Tx, key session.Key, id uuid.UUID) (objects []uuid.UUID, err error) {
	rows, err := tx.Query(ctx, `
		DELETE FROM result_chunks
		 WHERE tenant_id = $1 AND session_key = $2 AND body_id = $3
		RETURNING object`, key.Tenant, key.Key, id)
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[*uuid.UUID])
	if err != nil {
		return nil, err
	}
	_, err = tx.Exec(ctx, `
		DELETE FROM result_bodies
		 WHERE tenant_id = $1 AND session_key = $2 AND id = $3`, key.Tenant, key.Key, id)
	return distinct(found), err
}

// distinct returns the objects that chunks have, in the order of the chunks.
func distinct(objects []*uuid.UUID) (ids []uuid.UUID) {
	seen := map[uuid.UUID]bool{}
	for _, id := range objects {
		if id != nil && !seen[*id] {
			seen[*id] = true
			ids = append(ids, *id)
		}
	}
	return ids
}
