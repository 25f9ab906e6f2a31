package cells

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
)

// asItIs has a transaction take as long as it needs, write values as text in one way, and fire no triggers: what is
// copied is numbered, chained and checked already.
const asItIs = `
	SET LOCAL statement_timeout = 0;
	SET LOCAL lock_timeout = 0;
	SET LOCAL idle_in_transaction_session_timeout = 0;
	SET LOCAL datestyle = 'ISO, YMD';
	SET LOCAL intervalstyle = 'postgres';
	SET LOCAL timezone = 'UTC';
	SET LOCAL bytea_output = 'hex';
	SET LOCAL extra_float_digits = 1;
	SET LOCAL session_replication_role = replica`

// inBoth runs do in a transaction of the source, whose statements all read the same moment, and one of the destination.
func (r *mover) inBoth(ctx context.Context, do func(from, to pgx.Tx) error) error {
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginFunc(ctx, r.To.Pool(), func(to pgx.Tx) error {
		if _, err := to.Exec(ctx, asItIs); err != nil {
			return err
		}
		return pgx.BeginTxFunc(ctx, r.From.Pool(), snapshot, func(from pgx.Tx) error {
			if _, err := from.Exec(ctx, asItIs); err != nil {
				return err
			}
			return do(from, to)
		})
	})
}

// copyAll copies the objects and each table that has not been copied yet, those aside that come last. Each is one
// transaction, so that a move that is stopped continues with the next.
func (r *mover) copyAll(ctx context.Context) error {
	if err := r.copyObjects(ctx); err != nil {
		return err
	}
	if err := r.removeUnnamed(ctx); err != nil {
		return err
	}
	for i, t := range r.tables {
		if t.Late {
			continue
		}
		rows, err := r.copyTable(ctx, t)
		if err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
		r.say("%d of %d tables: %s, %d rows", i+1, len(r.tables), t.Name, rows)
		r.step("copied " + t.Name)
	}
	return nil
}

func (r *mover) copyTable(ctx context.Context, t *table) (rows int64, err error) {
	if has, err := r.mark(ctx, r.To.Pool(), t.Name); err != nil || has != nil {
		return 0, err
	}
	err = r.inBoth(ctx, func(from, to pgx.Tx) (err error) {
		if rows, err = r.whole(ctx, from, to, t); err != nil {
			return err
		}
		return r.note(ctx, from, to, t.Name, nil)
	})
	r.done.Rows += rows
	return rows, err
}

// whole copies all rows of a table, in the place of those that the destination has.
func (r *mover) whole(ctx context.Context, from, to pgx.Tx, t *table) (rows int64, err error) {
	if _, err := to.Exec(ctx, `DELETE FROM `+t.Name+` WHERE tenant_id = $1`, r.Tenant); err != nil {
		return 0, err
	}
	rows, err = r.stream(ctx, from, to, t, ``, t.Name)
	if err != nil {
		return rows, err
	}
	return rows, r.sameRows(ctx, from, to, t, ``, t.Name)
}

// stream copies rows of a table to one of the destination, a buffer at a time. which continues the condition.
func (r *mover) stream(
	ctx context.Context, from, to pgx.Tx, t *table, which, into string,
) (rows int64, err error) {
	return stream(ctx, from.Conn().PgConn(), to.Conn().PgConn(), `
		COPY (SELECT `+t.read(r.outside())+`
		        FROM `+t.Name+` t
		       WHERE tenant_id = '`+r.Tenant.String()+`'`+which+t.order()+`)
		  TO STDOUT (FORMAT binary)`, `
		COPY `+into+` (`+list(t.Columns, ``)+`) FROM STDIN (FORMAT binary)`)
}

func stream(ctx context.Context, from, to *pgconn.PgConn, read, write string) (rows int64, err error) {
	in, out := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		_, err := from.CopyTo(ctx, out, read)
		_ = out.CloseWithError(err) // it returns no error
		sent <- err
	}()
	tag, err := to.CopyFrom(ctx, in, write)
	_ = in.CloseWithError(errors.Join(err, io.ErrClosedPipe)) // it returns no error
	return tag.RowsAffected(), errors.Join(err, <-sent)
}

// sum is how many rows there are, and a sum of their digests.
type sum struct {
	Rows int64
	Sum  string
}

// sameRows returns ErrDiffers unless rows of the source and those of a table of the destination are the same.
func (r *mover) sameRows(ctx context.Context, from, to pgx.Tx, t *table, which, in string) error {
	sumOf := func(tx pgx.Tx, columns, table, which string) (s sum, err error) {
		err = tx.QueryRow(ctx, `
			SELECT count(*), coalesce(sum(hashtextextended(ROW(`+columns+`)::text, 0)), 0)::text
			  FROM `+table+` t
			 WHERE tenant_id = $1`+which, r.Tenant).Scan(&s.Rows, &s.Sum)
		return s, err
	}
	want, err := sumOf(from, t.read(r.outside()), t.Name, which)
	if err != nil {
		return err
	}
	got, err := sumOf(to, list(t.Columns, ``), in, ``)
	if err == nil && got != want {
		err = fmt.Errorf("%w: %d rows with the sum %s at the source, %d with %s at the destination", ErrDiffers,
			want.Rows, want.Sum, got.Rows, got.Sum)
	}
	return err
}

// outside returns the kind of store in which the destination has what lies outside of PostgreSQL.
func (r *mover) outside() persist.Kind {
	return r.To.ResultStores().AnyOutside()
}

// remove deletes all that a database and its result stores have of the tenant, but its jobs and its own row.
func (r *mover) remove(ctx context.Context, store *postgres.Store) error {
	for _, outside := range store.ResultStores().Outside {
		for found, err := range outside.List(ctx, r.Tenant.String()) {
			if err == nil {
				err = outside.Delete(ctx, found.Name)
			}
			if err != nil {
				return err
			}
		}
	}
	for _, t := range r.tables {
		if err := r.removeRows(ctx, store.Pool(), t); err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
		r.step("removed " + t.Name)
	}
	return nil
}

func (r *mover) removeRows(ctx context.Context, pool *pgxpool.Pool, t *table) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, asItIs); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `DELETE FROM `+t.Name+` WHERE tenant_id = $1`, r.Tenant)
		return err
	})
}
