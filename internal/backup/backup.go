// Package backup writes a whole database into a file and reads it back. It owns the file's form.
//
// Start at Write and Restore. The file is a zip with one entry for each table, in PostgreSQL's text form of COPY and
// compressed with zstd, and a manifest at the end with the number of rows and the SHA-256 of each. It is made by COPY
// and not by pg_dump, which is not on every machine, must be as new as the server, and refuses to read behind row-level
// security even where a policy shows it everything. The schema is not in it: the migrations make it.
//
// Bodies of results that lie in a directory or a bucket are not in it either, only their names.
package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
)

// Errors of Write, Open and Restore, which wrap them with what it was.
var (
	ErrEmpty    = errors.New("the database has no tenant: there is nothing to back up")
	ErrHidden   = errors.New("row-level security hides rows from this login")
	ErrNotEmpty = errors.New("the database is not empty: a backup is restored into one without tenants")
	ErrDamaged  = errors.New("the backup is damaged")
)

// format is the version of the file's form.
const format = 1

// Manifest says what a backup holds.
type Manifest struct {
	Format    int        `json:"format"`
	Program   string     `json:"program"` // its version
	Schema    int        `json:"schema"`  // the database's version
	At        time.Time  `json:"at"`      // of the moment that the backup shows
	Tables    []Table    `json:"tables"`
	Sequences []Sequence `json:"sequences"`
	Outside   int64      `json:"outside"` // bodies of results that lie in a directory or a bucket
}

// Table is one entry of a backup.
type Table struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"` // without generated ones
	Rows    int64    `json:"rows"`
	Bytes   int64    `json:"bytes"` // before compression
	SHA256  string   `json:"sha256"`
}

// Sequence is the last number that a sequence gave.
type Sequence struct {
	Name string `json:"name"`
	Last int64  `json:"last"`
}

// Rows returns how many rows a backup has.
func (m *Manifest) Rows() (sum int64) {
	for i := range m.Tables {
		sum += m.Tables[i].Rows
	}
	return sum
}

// Write backs up the database that dsn names into a file that does not exist, as it is at one moment. The file appears
// once it is whole, on disk, and read back. The login must see all rows: a member of postgres.BackupRole, or a
// superuser.
//
// Errors: os.ErrExist, ErrEmpty, ErrHidden, ErrDamaged if what was written is not what is read.
func Write(ctx context.Context, dsn, file, program string) (made Manifest, err error) {
	if _, err := os.Lstat(file); !errors.Is(err, os.ErrNotExist) {
		return made, errors.Join(err, fmt.Errorf("%s: %w", file, os.ErrExist))
	}
	part, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*") // with mode 0600
	if err != nil {
		return made, err
	}
	defer os.Remove(part.Name()) // does nothing once it is renamed
	made, err = writeTo(ctx, dsn, part, program)
	if err = errors.Join(err, part.Close()); err != nil {
		return made, err
	}
	if err := os.Link(part.Name(), file); err != nil { // which fails if there is such a file now
		return made, err
	}
	return made, syncDir(filepath.Dir(file))
}

func syncDir(dir string) error {
	opened, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(opened.Sync(), opened.Close())
}

func writeTo(ctx context.Context, dsn string, to *os.File, program string) (Manifest, error) {
	w := writer{Manifest: Manifest{Format: format, Program: program}}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return w.Manifest, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := postgres.CheckConnection(ctx, conn); err != nil {
		return w.Manifest, err
	}
	if w.Schema, err = postgres.CheckVersion(ctx, conn); err != nil {
		return w.Manifest, err
	}
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, conn, options, func(tx pgx.Tx) error { return w.write(ctx, tx, to) })
	return w.Manifest, err
}

// skipped are the tables that a backup leaves out: what the migrations write, and what River's processes tell each
// other.
const skipped = `'schema_migrations', 'schema_fingerprints', 'river_migration', 'river_leader', 'river_notification'`

// unlimited lets statements of a transaction take as long as they need.
const unlimited = `
	SET LOCAL statement_timeout = 0;
	SET LOCAL lock_timeout = 0;
	SET LOCAL idle_in_transaction_session_timeout = 0`

// checkVisible returns ErrHidden unless the login sees all rows of all tables.
func checkVisible(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
		SELECT c.relname::text
		  FROM pg_class c
		 WHERE c.relnamespace = current_schema()::regnamespace
		   AND c.relkind = 'r'
		   AND row_security_active(c.oid)
		   AND NOT EXISTS (
		       SELECT
		         FROM pg_policy p
		         JOIN pg_roles r ON r.oid = ANY (p.polroles) AND r.rolname = $1
		        WHERE p.polrelid = c.oid AND pg_get_expr(p.polqual, c.oid) = 'true' AND pg_has_role(r.oid, 'USAGE'))
		 ORDER BY 1`, postgres.BackupRole)
	if err != nil {
		return err
	}
	hidden, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(hidden) == 0 {
		return err
	}
	return fmt.Errorf("%w: tables %s; let the login that migrates run varve migrate --grant-to LOGIN:backup",
		ErrHidden, strings.Join(hidden, ", "))
}

func tables(ctx context.Context, tx pgx.Tx) ([]Table, error) {
	rows, err := tx.Query(ctx, `
		SELECT c.relname::text, array_agg(a.attname::text ORDER BY a.attnum)
		  FROM pg_class c
		  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
		 WHERE c.relnamespace = current_schema()::regnamespace
		   AND c.relkind = 'r'
		   AND c.relname NOT IN (`+skipped+`)
		 GROUP BY c.relname
		 ORDER BY c.relname`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t Table, err error) {
		err = row.Scan(&t.Name, &t.Columns)
		return t, err
	})
}

// copied returns the columns of a table as COPY names them.
func (t *Table) copied() string {
	names := make([]string, len(t.Columns))
	for i, name := range t.Columns {
		names[i] = pgx.Identifier{name}.Sanitize()
	}
	return t.ident() + ` (` + strings.Join(names, `, `) + `)`
}

func (t *Table) ident() string { return pgx.Identifier{t.Name}.Sanitize() }
