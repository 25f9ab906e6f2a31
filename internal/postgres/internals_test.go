package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/golang-migrate/migrate/v4"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// What only the tests of this package need of its inside.
var (
	ExportSQL     = exportSQL
	SchemaVersion = schemaVersion
	Query         = query
	Pooled        = pooled
)

// InSession calls inSession.
func InSession[T any](
	ctx context.Context, s *Store, at session.Address, do func(tx pgx.Tx, key session.Key) (T, error),
) (T, error) {
	return inSession(ctx, s, at, do)
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
