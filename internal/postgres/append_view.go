package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// Viewing is the view that an append returns.
type Viewing struct {
	Read ViewRead
	Into *View
	Done bool // it was read with the append; otherwise the caller reads it

	held heldBody
}

// queue puts the statement of the view behind that of the append.
func (v *Viewing) queue(batch *pgx.Batch, at session.Address) {
	if v == nil {
		return
	}
	args := viewArgs(at, v.Read, v.held)
	v.Into.begin(newestView, args)
	batch.Queue(newestView, args...)
}

// read reads the view behind an append, which is of no use if that did nothing.
func (v *Viewing) read(results pgx.BatchResults, of fate) error {
	if v == nil {
		return nil
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	err = one(v.Into.columns()...)(rows)
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	v.Done = err == nil && of == appended
	return err
}

// finishViewing does what is left to do when the append is committed. A view that fails then is read again.
func (s *Store) finishViewing(ctx context.Context, at session.Address, v *Viewing) {
	if v == nil || !v.Done {
		return
	}
	err := s.finishRead(ctx, at, v.Into)
	if err == nil {
		err = s.withBody(ctx, at, v.Read, v.held, v.Into)
	}
	v.Done = err == nil
}
