package postgres

import (
	"context"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5"
)

// ErrReadOnly reports that the database takes no writes: it is a standby, or was made read-only.
var ErrReadOnly = errors.New("the database takes no writes: it is a standby, or default_transaction_read_only is on")

// IsReadOnly reports whether err says that the database takes no writes.
func IsReadOnly(err error) bool { return hasCode(err, "25006") }

// rowQuerier is a connection or a pool.
type rowQuerier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Readiness asks the database whether it can be served, on a connection of its own: a pool that is full says nothing
// about the database.
type Readiness struct {
	mu   sync.Mutex
	conn *pgx.Conn // nil before the first question, and after one that failed
}

// Check returns an error if the database's schema is older than this program, or the database does not answer.
//
// Errors: ErrReadOnly if that is all that is wrong.
func (r *Readiness) Check(ctx context.Context, s *Store) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn == nil {
		r.conn, err = connect(ctx, s.pool)
		if hasCode(err, "53300") { // too_many_connections: the pool has some
			r.conn = nil
			return ask(ctx, s.pool)
		}
		if err != nil {
			r.conn = nil
			return err
		}
	}
	if err = ask(ctx, r.conn); err != nil && !errors.Is(err, ErrReadOnly) {
		r.close(ctx)
	}
	return err
}

func ask(ctx context.Context, db rowQuerier) error {
	writes := checkWrites(ctx, db)
	if writes != nil && !errors.Is(writes, ErrReadOnly) {
		return writes
	}
	if err := checkSchema(ctx, db); err != nil {
		return err
	}
	return writes
}

// Close ends the connection.
func (r *Readiness) Close(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.close(ctx)
}

func (r *Readiness) close(ctx context.Context) {
	if r.conn != nil {
		_ = r.conn.Close(context.WithoutCancel(ctx)) // it is not needed any more
	}
	r.conn = nil
}
