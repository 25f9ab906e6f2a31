package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/session"
)

// BodyWriter writes the body of a result as it arrives. It is for one goroutine, and holds at most 8 MiB.
type BodyWriter struct {
	store *Store
	key   session.Key
	id    uuid.UUID
	w     *persist.Writer
}

// WriteBody returns a writer for a body that persist.NewBody has inserted. It continues after what was saved last.
//
// Errors: ErrNotFound, ErrWritten if the body is complete.
func (s *Store) WriteBody(ctx context.Context, key session.Key, id uuid.UUID) (*BodyWriter, error) {
	state, err := InTx(ctx, s, key.Tenant, func(tx pgx.Tx) (persist.WriterState, error) {
		return persist.Writing(ctx, tx, key, id)
	})
	if err != nil {
		return nil, err
	}
	w, err := persist.NewWriter(&s.results, key, id, state)
	return &BodyWriter{store: s, key: key, id: id, w: w}, err
}

// Offset returns how many bytes have arrived.
func (w *BodyWriter) Offset() int64 { return w.w.Offset() }

// Write takes the next bytes, and stores them from time to time.
//
// Errors: those of Save.
func (w *BodyWriter) Write(ctx context.Context, p []byte) error {
	const piece = persist.ChunkBytes
	for len(p) > 0 {
		n := min(piece, len(p))
		if _, err := w.w.Write(p[:n]); err != nil {
			return err
		}
		p = p[n:]
		if w.w.Full() {
			if err := w.Save(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// Save stores all that has arrived: another writer can continue after it. It may be called when nothing has.
//
// Errors: ErrWritten if another writer has saved meanwhile: this one must not be used any more.
func (w *BodyWriter) Save(ctx context.Context) error {
	if err := w.w.Flush(ctx); err != nil {
		return err
	}
	err := w.store.InTenant(ctx, w.key.Tenant, func(tx pgx.Tx) error { return w.w.Save(ctx, tx) })
	if err == nil {
		w.w.Saved()
	}
	return err
}

// Complete ends the body. In its transaction it calls also with the id of the body that the session has now, which is
// another one if an equal body was there already: also must see to it that nothing names the body that was written
// then, because it is deleted. The writer must not be used any more.
//
// Errors: ErrWritten, and those of also.
func (w *BodyWriter) Complete(
	ctx context.Context, also func(tx pgx.Tx, id uuid.UUID, whole persist.Body) error,
) (id uuid.UUID, whole persist.Body, err error) {
	whole = w.w.End()
	if err := w.w.Flush(ctx); err != nil {
		return id, whole, err
	}
	var dropped []uuid.UUID
	complete := func() error {
		return w.store.InTenant(ctx, w.key.Tenant, func(tx pgx.Tx) (err error) {
			if id, err = w.w.Complete(ctx, tx, whole); err != nil {
				return err
			}
			if err := also(tx, id, whole); err != nil || id == w.id {
				return err
			}
			dropped, err = persist.Drop(ctx, tx, w.key, w.id)
			return err
		})
	}
	if err = complete(); Violates(err, "result_bodies_content") {
		err = complete() // an equal body was completed at the same time: now it is there to be found
	}
	if err != nil {
		return id, whole, err
	}
	w.w.Saved()
	w.w.Forget(ctx, dropped)
	return id, whole, nil
}
