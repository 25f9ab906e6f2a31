package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// What follows is for features, whose SQL is in their own folders.

// Queue returns the queue that the store inserts jobs into.
func (s *Store) Queue() *queue.Queue { return s.queue }

// LockSession locks a session until the end of the transaction, and returns its key; ErrNotFound.
func LockSession(ctx context.Context, tx pgx.Tx, at session.Address) (session.Key, error) {
	row, err := lockSession(ctx, tx, at)
	return row.Key, err
}

// Locked is a session's row while a transaction holds its lock.
type Locked struct {
	row lockedSession

	LastSeq    int64
	Checkpoint int       // the newest, 0 for none
	Now        time.Time // of the database, when this transaction began
}

// LockKey locks a session until the end of the transaction; ErrNotFound.
func LockKey(ctx context.Context, tx pgx.Tx, key session.Key) (Locked, error) {
	row, err := lockSessionKey(ctx, tx, key)
	return Locked{row: row, LastSeq: row.lastSeq, Checkpoint: row.checkpoint, Now: row.now}, err
}

// OnceInSession runs do like Once, under the lock of a session; ErrNotFound, ErrSessionBusy.
func OnceInSession[T any](
	ctx context.Context, s *Store, at session.Address, id *session.Idempotency,
	do func(tx pgx.Tx, key session.Key) (T, error),
) (T, bool, error) {
	return onceInSession(ctx, s, at, id, func(tx pgx.Tx, row lockedSession) (T, error) { return do(tx, row.Key) })
}

// TellBack tells the followers of a session that is back, and asks for its compaction if it is due.
func (s *Store) TellBack(ctx context.Context, tx pgx.Tx, key session.Key, id string) error {
	if err := s.changed(ctx, tx, key.Tenant, []string{id}); err != nil {
		return err
	}
	_, err := s.sweepOne(ctx, tx, key)
	return err
}

// SeeTenant has a transaction see another tenant than before, and only that.
func SeeTenant(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) error {
	return Exec(ctx, tx, setTenant, tenant.String())
}

// Requeue inserts the jobs, without those that are live, whose arguments a statement about a tenant, $1, finds. It
// returns how many it inserted.
func Requeue[T interface{ Kind() string }](
	ctx context.Context, s *Store, tenant uuid.UUID, sql string,
) (inserted int, err error) {
	found, err := QueryRows(ctx, s, tenant, pgx.RowToStructByPos[T], sql, tenant)
	for i := 0; i < len(found) && err == nil; i++ {
		var isNew bool
		isNew, err = InTx(ctx, s, tenant, func(tx pgx.Tx) (bool, error) {
			_, isNew, err := s.queue.Insert(ctx, tx, found[i], time.Time{})
			return isNew, err
		})
		if isNew && err == nil {
			inserted++
		}
	}
	return inserted, err
}

// EachTenant runs do for tenants, in a transaction that sees each in its turn. It writes for one at a time: the order
// of their ids keeps two such transactions from waiting for each other.
func EachTenant(ctx context.Context, tx pgx.Tx, tenants []uuid.UUID, do func(tenant uuid.UUID) error) error {
	for _, tenant := range tenants {
		if err := SeeTenant(ctx, tx, tenant); err != nil {
			return err
		}
		if err := do(tenant); err != nil {
			return fmt.Errorf("tenant %s: %w", tenant, err)
		}
	}
	return nil
}

// Record writes a row of the tenant's audit trail in the transaction that does what it says. It takes the lock of the
// chain's head, which everybody else's next row waits for: call it last, behind every other lock of the transaction.
// The detail is written as JSON.
func Record(
	ctx context.Context, tx pgx.Tx, tenant uuid.UUID, action audit.Action, object audit.Object, id string, detail any,
) error {
	return record(ctx, tx, tenant, auditEntry{action: action, object: object, id: id, detail: detail})
}

// Log are messages of a session's log as a transaction read them. Some of their bodies may be in packs.
type Log struct{ logOf[session.Message] }

// ReadLog reads messages of a session: those columns that a statement selects, the seq, the body and its digest among
// them.
func ReadLog(ctx context.Context, tx pgx.Tx, key session.Key, sql string, args ...any) (l Log, err error) {
	l.logOf, err = readLog(ctx, tx, key, ofMessage, pgx.RowToStructByNameLax[session.Message], sql, args...)
	return l, err
}

// Complete returns the messages with all their bodies, as they came in. It must not be called in a transaction.
//
// Errors: *session.DamagedError; ErrNotFound if the session was erased meanwhile.
func (l *Log) Complete(ctx context.Context, s *Store) ([]session.Message, error) {
	return l.complete(ctx, s)
}
