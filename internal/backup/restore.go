package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
)

// Restore puts a backup into the database that dsn names, which must have no tenants, and brings its schema to the
// newest version. It makes the schema if there is none. The login is one that migrates. All rows come in one
// transaction, or none.
//
// Errors: ErrDamaged before anything is changed, ErrNotEmpty.
func Restore(ctx context.Context, dsn, file string) (Manifest, error) {
	opened, err := os.Open(file)
	if err != nil {
		return Manifest{}, err
	}
	defer opened.Close()
	r, err := newReader(opened)
	if err != nil {
		return Manifest{}, err
	}
	if err := r.check(ctx); err != nil {
		return r.Manifest, err
	}
	if err := postgres.MigrateTo(ctx, dsn, r.Schema); err != nil {
		return r.Manifest, err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return r.Manifest, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return r.restore(ctx, tx) }); err != nil {
		return r.Manifest, err
	}
	if _, err := conn.Exec(ctx, `ANALYZE`); err != nil {
		return r.Manifest, err
	}
	return r.Manifest, postgres.Migrate(ctx, dsn)
}

func (r *reader) restore(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, unlimited); err != nil {
		return err
	}
	if err := checkEmpty(ctx, tx); err != nil {
		return err
	}
	order, err := loadingOrder(ctx, tx, r.Tables)
	if err != nil {
		return err
	}
	bound, err := unbind(ctx, tx, order)
	if err != nil {
		return err
	}
	for _, t := range order {
		if err := r.load(ctx, tx, t); err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	for _, s := range r.Sequences {
		if err := setSequence(ctx, tx, s); err != nil {
			return err
		}
	}
	// ALTER TABLE needs that no check is left to do.
	if _, err := tx.Exec(ctx, `SET CONSTRAINTS ALL IMMEDIATE`); err != nil {
		return err
	}
	return bind(ctx, tx, order, bound)
}

func checkEmpty(ctx context.Context, tx pgx.Tx) error {
	var active, some bool
	err := tx.QueryRow(ctx, `SELECT row_security_active('tenants'), EXISTS (SELECT FROM tenants)`).Scan(&active, &some)
	if err == nil && active {
		err = fmt.Errorf("%w: the login must be the one that migrates", ErrHidden)
	}
	if err == nil && some {
		err = ErrNotEmpty
	}
	return err
}

// loadingOrder returns the tables so that what a foreign key names comes first. Keys that are checked at the end of the
// transaction do not count.
func loadingOrder(ctx context.Context, tx pgx.Tx, all []Table) ([]*Table, error) {
	rows, err := tx.Query(ctx, `
		SELECT DISTINCT f.relname::text, t.relname::text
		  FROM pg_constraint k
		  JOIN pg_class f ON f.oid = k.conrelid
		  JOIN pg_class t ON t.oid = k.confrelid
		 WHERE k.contype = 'f'
		   AND k.connamespace = current_schema()::regnamespace
		   AND NOT k.condeferred
		   AND f.oid <> t.oid`)
	if err != nil {
		return nil, err
	}
	needs := map[string][]string{}
	var from, to string
	if _, err := pgx.ForEachRow(rows, []any{&from, &to}, func() error {
		needs[from] = append(needs[from], to)
		return nil
	}); err != nil {
		return nil, err
	}
	return sorted(all, needs)
}

func sorted(all []Table, needs map[string][]string) (order []*Table, err error) {
	waits := func(t *Table) bool {
		return slices.ContainsFunc(all, func(other Table) bool {
			loaded := slices.ContainsFunc(order, func(l *Table) bool { return l.Name == other.Name })
			return !loaded && slices.Contains(needs[t.Name], other.Name)
		})
	}
	for len(order) < len(all) {
		before := len(order)
		for i := range all {
			if t := &all[i]; !slices.Contains(order, t) && !waits(t) {
				order = append(order, t)
			}
		}
		if len(order) == before {
			return nil, errors.New("the foreign keys of the tables go round in a circle")
		}
	}
	return order, nil
}

// unbind lets the owner of the tables write rows of all tenants, as they are, and empties the tables: a migration may
// have written rows. It returns the tables on which row-level security was forced.
func unbind(ctx context.Context, tx pgx.Tx, order []*Table) (forced []string, err error) {
	for _, t := range order {
		var was bool
		err := tx.QueryRow(ctx, `
			SELECT relforcerowsecurity
			  FROM pg_class
			 WHERE oid = $1::regclass`, t.ident()).Scan(&was)
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", t.Name, err)
		}
		if was {
			forced = append(forced, t.Name)
		}
	}
	truncate := `TRUNCATE `
	for i, t := range order {
		if i > 0 {
			truncate += `, `
		}
		truncate += t.ident()
		alter := `ALTER TABLE ` + t.ident() + ` NO FORCE ROW LEVEL SECURITY, DISABLE TRIGGER USER`
		if _, err := tx.Exec(ctx, alter); err != nil {
			return nil, err
		}
	}
	_, err = tx.Exec(ctx, truncate)
	return forced, err
}

// bind takes back what unbind did.
func bind(ctx context.Context, tx pgx.Tx, order []*Table, forced []string) error {
	for _, t := range order {
		alter := `ALTER TABLE ` + t.ident() + ` ENABLE TRIGGER USER`
		if slices.Contains(forced, t.Name) {
			alter += `, FORCE ROW LEVEL SECURITY`
		}
		if _, err := tx.Exec(ctx, alter); err != nil {
			return err
		}
	}
	return nil
}

// load copies a table into the database and counts its rows there.
func (r *reader) load(ctx context.Context, tx pgx.Tx, t *Table) error {
	entry, err := r.zip.Open(tableName(t))
	if err != nil {
		return err
	}
	defer entry.Close()
	if _, err := tx.Conn().PgConn().CopyFrom(ctx, entry, `COPY `+t.copied()+` FROM STDIN`); err != nil {
		return err
	}
	var rows int64
	if err := tx.QueryRow(ctx, `SELECT count(*) FROM `+t.ident()).Scan(&rows); err != nil {
		return err
	}
	if rows != t.Rows {
		return fmt.Errorf("%w: of %d rows %d are in the database", ErrDamaged, t.Rows, rows)
	}
	return nil
}

func setSequence(ctx context.Context, tx pgx.Tx, s Sequence) error {
	if s.Last == 0 { // it has given no number
		return nil
	}
	_, err := tx.Exec(ctx, `SELECT setval($1::text::regclass, `+strconv.FormatInt(s.Last, 10)+`)`,
		pgx.Identifier{s.Name}.Sanitize())
	return err
}
