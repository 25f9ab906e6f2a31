package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/golang-migrate/migrate/v4/source"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/varve-dev/varve/migrations"
)

const (
	// migrationLock is the key of the advisory lock under which one process at a time migrates: "varve" in ASCII.
	migrationLock = 0x7661727665
	// lockPoll is how often a process that waits for its turn asks. It waits without a statement or transaction open: a
	// blocking pg_advisory_lock would hold a snapshot, for which CREATE INDEX CONCURRENTLY in the other process waits.
	lockPoll = 250 * time.Millisecond
	// lockTimeout bounds how long a migration queues for a table's lock, since all later statements queue behind it.
	lockTimeout = `3s`
	// lockAttempts is how often a migration that did not get its locks is tried.
	lockAttempts = 10
)

// Migrate brings the schema to the newest version and gives role its rights. Several processes may do it at once: one
// works, the others wait. dsn needs a direct connection, not a transaction pooler, of a user who may create tables and,
// unless role exists, roles.
func Migrate(ctx context.Context, dsn string) error {
	return underMigrationLock(ctx, dsn, func(conn *pgx.Conn) error {
		if err := up(ctx, conn); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		if err := bootstrapRole(ctx, conn); err != nil {
			return fmt.Errorf("role %s: %w", role, err)
		}
		return nil
	})
}

// schemaVersion returns the version of the database's schema, 0 if it has none. golang-migrate marks a version before
// it applies the file; as the file is one transaction, the database has what was there before it.
func schemaVersion(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) (version uint, err error) {
	err = db.QueryRow(ctx, `
		SELECT CASE WHEN dirty THEN version - 1 ELSE version END
		  FROM schema_migrations`).Scan(&version)
	if errors.Is(err, pgx.ErrNoRows) || hasCode(err, "42P01") { // undefined_table
		err = nil
	}
	return version, err
}

// newestVersion returns the version of the newest file.
func newestVersion() (newest uint, err error) {
	files, err := iofs.New(migrations.FS, ".")
	if err != nil {
		return 0, err
	}
	defer files.Close()
	for version, err := files.First(); err == nil; version, err = files.Next(version) {
		newest = version
	}
	return newest, nil
}

// CheckSchema returns an error if the database's schema is older than this program, or the database does not answer. A
// newer one is served: every migration after 0030 leaves the programs of the version before it working.
func (s *Store) CheckSchema(ctx context.Context) error {
	have, err := schemaVersion(ctx, s.pool)
	if err != nil {
		return err
	}
	want, err := newestVersion()
	if err == nil && have < want {
		err = fmt.Errorf("the database's schema is version %d, this program needs %d: run varve migrate", have, want)
	}
	return err
}

func underMigrationLock(ctx context.Context, dsn string, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) // which also gives the lock back
	ticker := time.NewTicker(lockPoll)
	defer ticker.Stop()
	for {
		var mine bool
		if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, int64(migrationLock)).Scan(&mine); err != nil {
			return err
		}
		if mine {
			return do(conn)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("another process is migrating: %w", ctx.Err())
		case <-ticker.C:
		}
	}
}

// up applies the files after the database's version. One that does not get its locks is tried again.
func up(ctx context.Context, conn *pgx.Conn) error {
	files, err := iofs.New(migrations.FS, ".")
	if err != nil {
		return err
	}
	defer files.Close()
	_, err = conn.Exec(ctx, `
		SET lock_timeout = '`+lockTimeout+`';
		CREATE TABLE IF NOT EXISTS schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL)`)
	for refused := 0; err == nil; {
		var have uint
		if have, err = schemaVersion(ctx, conn); err != nil {
			return err
		}
		next, missing := files.First()
		if have > 0 {
			next, missing = files.Next(have)
		}
		if errors.Is(missing, fs.ErrNotExist) {
			_, err = conn.Exec(ctx, `RESET lock_timeout`)
			return err
		}
		err = apply(ctx, conn, files, next)
		if hasCode(err, "55P03") && refused < lockAttempts { // lock_not_available
			refused++
			err = nil
		}
	}
	return err
}

// apply applies a file and records its version, as golang-migrate does, in one transaction: what PostgreSQL makes of
// several statements that are sent as one text.
func apply(ctx context.Context, conn *pgx.Conn, files source.Driver, version uint) error {
	file, name, err := files.ReadUp(version)
	if err != nil {
		return err
	}
	defer file.Close()
	sql, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, fmt.Sprintf(`%s
		;
		DELETE FROM schema_migrations;
		INSERT INTO schema_migrations VALUES (%d, false)`, sql, version))
	if err != nil {
		return fmt.Errorf("%d %s: %w", version, name, err)
	}
	return nil
}

// bootstrapRole makes role, lets the user of conn become it, and grants it its rights. Roles belong to the server, and
// the migration lock to a database, so another database's bootstrap may get in between: then it is tried again.
func bootstrapRole(ctx context.Context, conn *pgx.Conn) error {
	var err error
	for range lockAttempts {
		err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if err := createRole(ctx, tx); err != nil {
				return err
			}
			return exec(ctx, tx, migrations.Grants)
		})
		// duplicate_object, unique_violation, and "tuple concurrently updated", which has no code of its own
		if !hasCode(err, "42710", "23505", "XX000") {
			return err
		}
	}
	return err
}

func createRole(ctx context.Context, tx pgx.Tx) error {
	var exists bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)`, role).Scan(&exists)
	if err != nil {
		return err
	}
	if !exists {
		if _, err := tx.Exec(ctx, `CREATE ROLE `+role+` NOLOGIN NOSUPERUSER NOBYPASSRLS`); err != nil {
			return err
		}
	}
	// Whether it may be assumed is asked by trying: being a member is not enough since PostgreSQL 16.
	err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		return exec(ctx, tx, `SET LOCAL ROLE `+role+`; SET LOCAL ROLE NONE`)
	})
	if hasCode(err, "42501") { // insufficient_privilege
		_, err = tx.Exec(ctx, `GRANT `+role+` TO CURRENT_USER`)
	}
	return err
}

// hasCode reports whether an error is PostgreSQL's, with one of these codes.
func hasCode(err error, codes ...string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && slices.Contains(codes, pg.Code)
}
