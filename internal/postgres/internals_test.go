package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/session"
)

// What only the tests of this package need of its inside.
var (
	ExportSQL     = exportSQL(``)
	SchemaVersion = schemaVersion
	SessionTables = sessionTables
	Pooled        = pooled
	WhoIsInTheWay = whoIsInTheWay
	WhyItFailed   = failure
)

// Query runs one statement that sees a tenant only.
func Query(
	ctx context.Context, s *Store, tenant uuid.UUID, sql string, args []any, read func(rows pgx.Rows) error,
) error {
	return s.query(ctx, tenant, sql, args, read)
}

// ReadLineage is readLineage.
var ReadLineage = readLineage

// MigrateSteps applies the next n migrations, or takes the last -n back.
func MigrateSteps(dsn string, n int) error {
	return withMigrations(dsn, func(m *migrator) error { return m.Steps(n) })
}

// MigrateDown takes the whole schema back, with all data.
func MigrateDown(ctx context.Context, dsn string) error {
	return underMigrationLock(ctx, dsn, func(conn *pgx.Conn) error {
		err := withMigrations(dsn, func(m *migrator) error { return m.Down() })
		if err != nil && !errors.Is(err, migrate.ErrNoChange) {
			return fmt.Errorf("migrate down: %w", err)
		}
		_, err = conn.Exec(ctx, `DROP TABLE schema_migrations`)
		return err
	})
}

// HoldAppends makes appends arrive together: all that are made while every connection of the pool is held are tried in
// one transaction when release is called.
func HoldAppends(ctx context.Context, s *Store) (release func(), err error) {
	s.groups = newGroups(groupLimits{slots: 1, members: 32, bytes: 256 << 10, patience: time.Hour})
	var held []*pgxpool.Conn
	release = func() {
		for _, conn := range held {
			conn.Release()
		}
	}
	for range s.pool.Config().MaxConns {
		conn, err := s.pool.Acquire(ctx)
		if err != nil {
			release()
			return nil, err
		}
		held = append(held, conn)
	}
	return release, nil
}

// ArrivedAppends returns how many appends have arrived and are not done.
func ArrivedAppends(s *Store) int {
	groups, waiting := s.groups.load()
	return groups + waiting
}

// load returns how many groups have a slot, and how many appends wait in line.
func (q *groups) load() (groups, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lines {
		waiting += len(l.waiting)
	}
	return q.running, waiting
}

// InLockOrder returns the ids of sessions in the order in which a transaction locks them.
func InLockOrder(at ...session.Address) (ids []string) {
	var all []*appending
	for _, a := range at {
		all = append(all, &appending{Append: session.Append{Session: a}})
	}
	inLockOrder(all)
	for _, a := range all {
		ids = append(ids, a.Session.ID)
	}
	return ids
}

// AppendStatement returns the statement of one append.
func AppendStatement(a session.Append) (sql string, args []any) {
	p := newAppendParams(a)
	return p.statement()
}

// ManyStatement returns the statement of several appends.
func ManyStatement(appends ...session.Append) (sql string, args []any) {
	var all []*appending
	for _, a := range appends {
		all = append(all, &appending{Append: a, params: newAppendParams(a)})
	}
	return manyStatement(all)
}
