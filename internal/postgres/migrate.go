package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/varve-dev/varve/migrations"
)

const (
	// migrationLock is the key of the advisory lock under which one process at a time migrates: "varve" in ASCII.
	migrationLock = 0x7661727665
	// lockPoll is how often a process that waits for its turn asks. It waits without a statement or transaction open: a
	// blocking pg_advisory_lock would hold a snapshot, for which CREATE INDEX CONCURRENTLY in the other process waits.
	lockPoll = 250 * time.Millisecond
	// lockTimeout bounds how long a migration queues for a table's lock, since all later statements queue behind it.
	lockTimeout = 3 * time.Second
	// lockAttempts is how often a migration that did not get its locks is tried.
	lockAttempts = 10
)

// Migrate brings the schema to the newest version and gives the roles their rights. Several processes may do it at
// once: one works, the others wait. dsn needs a direct connection, not a transaction pooler, of a login that may create
// tables and, unless they exist, roles. It owns the tables then and must not serve: GrantTo lets others do that.
// Errors: ErrLogin; ErrPooler; ErrForeignSchema.
func Migrate(ctx context.Context, dsn string) error { return MigrateTo(ctx, dsn, math.MaxInt) }

// MigrateTo does what Migrate does, up to a version of the schema, without the rights of the roles, which are those on
// the newest. It returns an error if the schema is newer, or if this program does not know the version.
func MigrateTo(ctx context.Context, dsn string, version int) error {
	if err := checkKnown(version); err != nil {
		return err
	}
	return underMigrationLock(ctx, dsn, func(conn *pgx.Conn) error {
		if err := prepare(ctx, conn); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		if err := createRoles(ctx, conn); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		have, newest, err := schemaVersion(ctx, conn)
		if err == nil && have >= newest {
			err = checkSchema(ctx, conn)
		}
		if err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		if have > newest { // a newer program has migrated it, and given the rights
			return nil
		}
		if err := withMigrations(dsn, func(m *migrator) error { return m.up(ctx, conn, version) }); err != nil {
			return fmt.Errorf("migrate: %w", pooled(err))
		}
		if version != math.MaxInt { // the rights are those on the newest schema
			return nil
		}
		if err := grantRights(ctx, conn); err != nil {
			return fmt.Errorf("migrate: rights of the roles: %w", err)
		}
		return nil
	})
}

// prepare makes the schema if it is one of Varve's own, and returns an error if nothing may be changed in it: then the
// first statement of a migration is not executed.
func prepare(ctx context.Context, conn *pgx.Conn) error {
	if err := checkWrites(ctx, conn); err != nil {
		return err
	}
	if err := checkDatabase(ctx, conn); err != nil {
		return err
	}
	if name := schemaOf(conn.Config()); name != migrations.Schema {
		if err := createSchema(ctx, conn, name); err != nil {
			return fmt.Errorf("schema %s (VARVE_SCHEMA): %w", name, err)
		}
	}
	if err := checkSettings(ctx, conn); err != nil {
		return err
	}
	return checkOwner(ctx, conn)
}

// createSchema makes a schema unless it is there. (CREATE SCHEMA IF NOT EXISTS needs the right even then.)
func createSchema(ctx context.Context, conn *pgx.Conn, name string) error {
	var exists bool
	err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)`, name).Scan(&exists)
	if err == nil && !exists {
		_, err = conn.Exec(ctx, `CREATE SCHEMA `+pgx.Identifier{name}.Sanitize())
	}
	return err
}

// checkKnown returns an error if this program has no migration to a version, math.MaxInt being the newest.
func checkKnown(version int) error {
	all, err := migrations.Versions()
	if err != nil {
		return err
	}
	if !slices.Contains(all, version) && version != math.MaxInt {
		return fmt.Errorf("this program does not know version %d of the schema: use a newer release", version)
	}
	return nil
}

// schemaVersion returns the version that the database has, 0 if none, and the one that this program was built for.
// While a migration is under way, the database has what was there before it.
func schemaVersion(ctx context.Context, db rowQuerier) (have, want int, err error) {
	all, err := migrations.Versions()
	if err != nil {
		return 0, 0, err
	}
	want = all[len(all)-1]
	err = db.QueryRow(ctx, `
		SELECT CASE WHEN dirty THEN version - 1 ELSE version END
		  FROM schema_migrations`).Scan(&have)
	if errors.Is(err, pgx.ErrNoRows) || hasCode(err, "42P01") { // undefined_table
		err = nil
	}
	return have, want, err
}

// CheckVersion returns the version of a database's schema, and an error unless it is the one of this program.
func CheckVersion(ctx context.Context, conn *pgx.Conn) (version int, err error) {
	have, want, err := schemaVersion(ctx, conn)
	if err == nil && have != want {
		err = fmt.Errorf("the database's schema is version %d, this program's %d: use the release of the schema, "+
			"or run varve migrate", have, want)
	}
	return have, err
}

// ErrForeignSchema is wrapped where a database's schema was not made by released migrations, or is newer than this
// program may serve. Trying again does not help.
var ErrForeignSchema = errors.New("the database's schema is not one that this program can use")

// CheckSchema returns an error if the database's schema is older than this program, or newer than it may serve, or if
// the database does not answer; ErrForeignSchema.
func (s *Store) CheckSchema(ctx context.Context) error {
	return checkSchema(ctx, s.pool)
}

func checkSchema(ctx context.Context, db rowQuerier) error {
	_, err := SchemaOf(ctx, db)
	return err
}

// SchemaOf returns the version of a database's schema, and an error unless this program may serve it.
func SchemaOf(ctx context.Context, db rowQuerier) (have int, err error) {
	have, want, err := schemaVersion(ctx, db)
	if err == nil && have < want {
		err = fmt.Errorf("the database's schema is version %d, this program needs %d: run varve migrate", have, want)
	}
	if err != nil {
		return have, err
	}
	var oldest int
	err = db.QueryRow(ctx, `SELECT oldest_program FROM installation`).Scan(&oldest)
	if hasCode(err, "42P01", "42703") { // undefined_table, undefined_column
		return have, fmt.Errorf("%w: a version of Varve that was never released made it (%d): move its sessions with "+
			"the varve export of that program and varve import", ErrForeignSchema, have)
	}
	if err == nil && oldest > want {
		err = fmt.Errorf("%w: it has version %d, this program was made for %d, and only programs for %d or newer may "+
			"serve it: use the release that migrated it", ErrForeignSchema, have, want, oldest)
	}
	return have, err
}

func underMigrationLock(ctx context.Context, dsn string, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return pooled(err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) // which also gives the lock back
	if err := CheckDirect(ctx, conn, "migrations need"); err != nil {
		return err
	}
	if err := unbound(ctx, conn); err != nil { // it is idle while another connection applies a file
		return err
	}
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
			holder := migrating(context.WithoutCancel(ctx), dsn)
			return fmt.Errorf("another process is migrating%s: %w", holder, ctx.Err())
		case <-ticker.C:
		}
	}
}

// migrator applies one file at a time, so that it can try a file again.
type migrator struct {
	*migrate.Migrate
	source  source.Driver
	session string // the name of the session that applies files
}

func withMigrations(dsn string, do func(*migrator) error) (err error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return err
	}
	name := "varve migrate " + rand.Text()
	config.RuntimeParams["application_name"] = name
	config.RuntimeParams["lock_timeout"] = fmt.Sprint(lockTimeout.Milliseconds())
	src, err := iofs.New(migrations.FS, ".")
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(unbound))
	driver, err := migratepgx.WithInstance(db, &migratepgx.Config{})
	if err != nil {
		return errors.Join(failure("schema_migrations", err, nil), src.Close(), db.Close())
	}
	m, err := migrate.NewWithInstance("iofs", atomicSource{src, schemaOf(config)}, "pgx5", driver)
	if err != nil {
		return errors.Join(err, src.Close(), driver.Close())
	}
	defer func() {
		srcErr, dbErr := m.Close()
		err = errors.Join(err, srcErr, dbErr)
	}()
	return do(&migrator{m, src, name})
}

// up applies the files up to a version. conn asks meanwhile who is in the way.
func (m *migrator) up(ctx context.Context, conn *pgx.Conn, version int) error {
	for refused := 0; ; {
		if err := errors.Join(ctx.Err(), m.takeBackDirty()); err != nil {
			return err
		}
		if done, err := m.reached(version); done || err != nil {
			return err
		}
		name := m.next()
		holders, err := whoIsInTheWay(ctx, conn, m.session, func() error { return m.Steps(1) })
		switch {
		case errors.Is(err, fs.ErrNotExist): // there is no next file
			return nil
		case isRefused(err) && refused < lockAttempts:
			refused++
		case err != nil:
			return failure(name, err, holders)
		}
	}
}

// reached reports whether the schema has a version that is wanted, math.MaxInt being the newest.
func (m *migrator) reached(version int) (bool, error) {
	have, _, err := m.Version()
	if version == math.MaxInt || errors.Is(err, migrate.ErrNilVersion) {
		return false, nil
	}
	if err == nil && int(have) > version {
		err = fmt.Errorf("the schema is version %d, which is newer than %d", have, version)
	}
	return int(have) == version, err
}

// takeBackDirty sets the version back to the file before the one that was interrupted. A version that is marked dirty
// was not applied, not even in part: atomicSource sees to that.
func (m *migrator) takeBackDirty() error {
	version, dirty, err := m.Version()
	if errors.Is(err, migrate.ErrNilVersion) {
		return nil
	}
	if err != nil || !dirty {
		return err
	}
	before, err := m.source.Prev(version)
	if errors.Is(err, fs.ErrNotExist) {
		return m.Force(database.NilVersion)
	}
	if err != nil {
		return fmt.Errorf("version %d of the database is not one of this program: %w", version, err)
	}
	return m.Force(int(before))
}

// atomicSource has every file end by clearing the mark that golang-migrate sets before it. A file of several statements
// is one transaction, so the mark shows for certain whether the file was applied, even after a kill -9. It names the
// schema that the files are applied to.
type atomicSource struct {
	source.Driver
	schema string
}

const clearMark = "\n;\nUPDATE schema_migrations SET dirty = false;\n"

// ReadUp implements source.Driver.
func (s atomicSource) ReadUp(version uint) (io.ReadCloser, string, error) {
	file, name, err := s.Driver.ReadUp(version)
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, "", err
	}
	return io.NopCloser(strings.NewReader(migrations.In(s.schema, string(text)) + clearMark)), name, nil
}

// hasClass reports whether an error has a SQLSTATE that begins so.
func hasClass(err error, class string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && strings.HasPrefix(pg.Code, class)
}

func hasCode(err error, codes ...string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && slices.Contains(codes, pg.Code)
}
