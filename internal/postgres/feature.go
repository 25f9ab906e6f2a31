package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// What follows is for features, whose SQL is in their own folders.

// Queue returns the queue that the store inserts jobs into.
func (s *Store) Queue() *queue.Queue { return s.queue }

// InTx runs do in one transaction that sees this tenant only, and returns its value.
func InTx[T any](ctx context.Context, s *Store, tenant uuid.UUID, do func(tx pgx.Tx) (T, error)) (T, error) {
	return inTx(ctx, s, tenant, do)
}

// QueryRows runs one statement that sees this tenant only, in one round trip, and returns its rows.
func QueryRows[T any](
	ctx context.Context, s *Store, tenant uuid.UUID, scan pgx.RowToFunc[T], sql string, args ...any,
) ([]T, error) {
	return queryRows(ctx, s, tenant, scan, sql, args...)
}

// QueryRow runs one statement like QueryRows and returns its only row; no row is ErrNotFound.
func QueryRow[T any](
	ctx context.Context, s *Store, tenant uuid.UUID, scan pgx.RowToFunc[T], sql string, args ...any,
) (T, error) {
	return queryRow(ctx, s, tenant, scan, sql, args...)
}

// RowsIn runs one statement in a transaction and returns its rows.
func RowsIn[T any](ctx context.Context, tx pgx.Tx, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	return rowsIn(ctx, tx, scan, sql, args...)
}

// RowIn runs one statement in a transaction and returns its only row; no row is ErrNotFound.
func RowIn[T any](ctx context.Context, tx pgx.Tx, scan pgx.RowToFunc[T], sql string, args ...any) (T, error) {
	return rowIn(ctx, tx, scan, sql, args...)
}

// ReadTx runs do in one transaction that only reads, and whose statements all read the same moment.
func ReadTx[T any](ctx context.Context, s *Store, tenant uuid.UUID, do func(tx pgx.Tx) (T, error)) (T, error) {
	return readTx(ctx, s, tenant, do)
}

// ExecOne runs a statement that must concern a row; else it returns missing.
func ExecOne(ctx context.Context, tx pgx.Tx, missing error, sql string, args ...any) error {
	return execOne(ctx, tx, missing, sql, args...)
}

// InSession runs do like ReadTx, with the key of a session; ErrNotFound.
func InSession[T any](
	ctx context.Context, s *Store, at session.Address, do func(tx pgx.Tx, key session.Key) (T, error),
) (T, error) {
	return inSession(ctx, s, at, do)
}

// ChangeInSession runs do like InSession, in a transaction that may write.
func ChangeInSession[T any](
	ctx context.Context, s *Store, at session.Address, do func(tx pgx.Tx, key session.Key) (T, error),
) (T, error) {
	return changeInSession(ctx, s, at, do)
}

// LockSession locks a session until the end of the transaction, and returns its key; ErrNotFound.
func LockSession(ctx context.Context, tx pgx.Tx, at session.Address) (session.Key, error) {
	row, err := lockSession(ctx, tx, at)
	return row.Key, err
}

// AddChore writes a chore down, or begins it anew.
func AddChore(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, kind ChoreKind) error {
	return addChore(ctx, tx, tenant, kind)
}

// Exec runs a statement whose result is not needed.
func Exec(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	return exec(ctx, tx, sql, args...)
}

// NewestFirst returns the end of a statement that reads a page of a tenant's rows, newest first: $1 is the tenant, and
// PageArgs are all its arguments.
func NewestFirst(created, id string) string { return newestFirst(created, id) }

// PageArgs returns the arguments of a statement that NewestFirst ends.
func PageArgs(tenant uuid.UUID, page session.Page) []any { return pageArgs(tenant, page) }

// LockCount lets one transaction at a time add to a table of which a tenant may have a limited number of rows.
func LockCount(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, table string) error {
	return lockCount(ctx, tx, tenant, table)
}

// NotFound returns ErrNotFound for no row.
func NotFound(err error) error { return notFound(err) }

// Record writes a row of the tenant's audit trail in the transaction that does what it says. It takes the lock of the
// chain's head, which everybody else's next row waits for: call it last, behind every other lock of the transaction.
// The detail is written as JSON.
func Record(
	ctx context.Context, tx pgx.Tx, tenant uuid.UUID, action audit.Action, object audit.Object, id string, detail any,
) error {
	return record(ctx, tx, tenant, auditEntry{action: action, object: object, id: id, detail: detail})
}

// Emit writes an event in the transaction of what it tells, with data as JSON.
func Emit(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, kind session.EventType, topic string, data any) error {
	return emit(ctx, tx, tenant, happening{kind: kind, topic: topic, data: data})
}

// ScanEvent reads an event from EventColumns.
func ScanEvent(row pgx.CollectableRow) (session.Event, error) { return scanEvent(row) }
