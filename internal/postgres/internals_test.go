package postgres

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/migrations"
)

// What only the tests of this package need of its inside.
const Role = role

var (
	ExportSQL     = exportSQL
	SchemaVersion = schemaVersion
	NewestVersion = newestVersion
	Query         = query
)

// MigrateDown takes the newest n migrations back with their data, or the whole schema.
func MigrateDown(ctx context.Context, dsn string, n int) error {
	return underMigrationLock(ctx, dsn, func(conn *pgx.Conn) error {
		files, err := fs.Glob(migrations.FS, "*.down.sql")
		if err != nil {
			return err
		}
		slices.Reverse(files)
		for _, name := range files[:min(n, len(files))] {
			sql, err := fs.ReadFile(migrations.FS, name)
			if err != nil {
				return err
			}
			if _, err := conn.Exec(ctx, string(sql)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		if n >= len(files) {
			_, err = conn.Exec(ctx, `DROP TABLE schema_migrations`)
			return err
		}
		number, _, _ := strings.Cut(files[n], "_")
		_, err = conn.Exec(ctx, `UPDATE schema_migrations SET version = `+number)
		return err
	})
}
