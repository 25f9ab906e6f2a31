package cells

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Before writes are refused, what has changed is copied until that is little, but not for ever.
const (
	mostRounds = 10
	littleRows = 500
	littleTime = 500 * time.Millisecond
)

// catchUp copies what has changed while the tables were copied, and while that was copied, until it is little.
func (r *mover) catchUp(ctx context.Context) error {
	for n := range mostRounds {
		began, changed := time.Now(), int64(0)
		if err := r.copyObjects(ctx); err != nil {
			return err
		}
		for _, t := range r.tables {
			if t.Late {
				continue
			}
			rows, err := r.copyChanges(ctx, t)
			if err != nil {
				return fmt.Errorf("table %s: %w", t.Name, err)
			}
			changed += rows
		}
		r.say("round %d: %d rows had changed, in %s", n+1, changed, time.Since(began).Round(time.Millisecond))
		r.step(fmt.Sprint("caught up ", n+1))
		if n > 0 && changed < littleRows || changed == 0 || time.Since(began) < littleTime && n > 0 {
			return nil
		}
	}
	return nil
}

// copyChanges copies the changes of one table in transactions of its own. A copy that differs is forgotten, so that the
// next run makes it anew.
func (r *mover) copyChanges(ctx context.Context, t *table) (rows int64, err error) {
	err = r.inBoth(ctx, func(from, to pgx.Tx) (err error) {
		rows, err = r.changes(ctx, from, to, t)
		return err
	})
	r.done.Rows += rows
	return rows, r.forgetDiffering(ctx, t, err)
}

// forgetDiffering makes the destination copy a table again that differs.
func (r *mover) forgetDiffering(ctx context.Context, t *table, err error) error {
	if !errors.Is(err, ErrDiffers) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	return errors.Join(err, pgx.BeginFunc(ctx, r.To.Pool(), func(tx pgx.Tx) error {
		return noteMark(ctx, tx, r.Tenant, t.Name, nil)
	}))
}

// changes makes a table of the destination what it is at the source: rows that are new or different are put in the
// place of those of the same key, and those that are gone are deleted.
//
// A row of the source that a snapshot does not show has been written by a transaction that is not older than the oldest
// one which ran then, the snapshot's xmin; a row that was changed is a new one. Rows that have become very old count as
// changed once more, which does no harm.
func (r *mover) changes(ctx context.Context, from, to pgx.Tx, t *table) (rows int64, err error) {
	before, err := r.mark(ctx, to, t.Name)
	if err != nil {
		return 0, err
	}
	which := ` AND age(t.xmin) <= age('` + before.Since + `'::xid8::xid)`
	if same, err := r.unchanged(ctx, from, to, t, before, which); err != nil || same {
		return 0, err
	}
	if _, err := to.Exec(ctx, `
		CREATE TEMPORARY TABLE changed_rows ON COMMIT DROP AS
		SELECT `+list(t.Columns, ``)+`
		  FROM `+t.Name+`
		  WITH NO DATA`); err != nil {
		return 0, err
	}
	if rows, err = r.stream(ctx, from, to, t, which, "changed_rows"); err != nil {
		return rows, err
	}
	if _, err := to.Exec(ctx, `ANALYZE changed_rows`); err != nil {
		return rows, err
	}
	if err := r.sameRows(ctx, from, to, t, which, "changed_rows"); err != nil {
		return rows, err
	}
	if err := r.apply(ctx, from, to, t); err != nil {
		return rows, err
	}
	if _, err := to.Exec(ctx, `DROP TABLE changed_rows`); err != nil {
		return rows, err
	}
	return rows, r.note(ctx, from, to, t.Name, before)
}

// unchanged reports whether there is nothing to do for a table, as for most. It returns ErrDiffers if anybody else has
// written to what the destination has of it.
func (r *mover) unchanged(
	ctx context.Context, from, to pgx.Tx, t *table, before *mark, which string,
) (same bool, err error) {
	var want, got sum
	var changed, others int64
	err = from.QueryRow(ctx, `
		SELECT `+keySum(t)+`, count(*) FILTER (WHERE true`+which+`)
		  FROM `+t.Name+` t
		 WHERE tenant_id = $1`, r.Tenant).Scan(&want.Rows, &want.Sum, &changed)
	if err == nil {
		err = to.QueryRow(ctx, `
			SELECT `+keySum(t)+`,
			       count(*) FILTER (WHERE NOT t.xmin = ANY (ARRAY(SELECT x::xid8::xid FROM unnest($2::text[]) x)))
			  FROM `+t.Name+` t
			 WHERE tenant_id = $1`, r.Tenant, before.By).Scan(&got.Rows, &got.Sum, &others)
	}
	if err == nil && others > 0 {
		err = fmt.Errorf("%w: somebody else has written to %d rows at the destination", ErrDiffers, others)
	}
	return changed == 0 && want == got, err
}

// keySum counts rows and sums up the digests of their keys.
func keySum(t *table) string {
	return `count(*), coalesce(sum(hash_record_extended(ROW(` + list(t.Key, ``) + `), 0)), 0)::text`
}

// apply puts the rows of changed_rows into a table, and deletes those that the source does not have any more.
func (r *mover) apply(ctx context.Context, from, to pgx.Tx, t *table) error {
	if _, err := to.Exec(ctx, `
		DELETE FROM `+t.Name+`
		 WHERE tenant_id = $1 AND (`+list(t.Key, ``)+`) IN (SELECT `+list(t.Key, ``)+` FROM changed_rows)`,
		r.Tenant); err != nil {
		return err
	}
	want, got, err := r.keys(ctx, from, to, t)
	if err != nil {
		return err
	}
	if want != got {
		if err := r.deleteGone(ctx, from, to, t); err != nil {
			return err
		}
	}
	if _, err := to.Exec(ctx, `
		INSERT INTO `+t.Name+` (`+list(t.Columns, ``)+`)
		SELECT `+list(t.Columns, ``)+`
		  FROM changed_rows`); err != nil {
		return err
	}
	if want == got {
		return nil
	}
	if _, err := to.Exec(ctx, `DELETE FROM changed_rows`); err != nil { // whose keys the table has now
		return err
	}
	if want, got, err = r.keys(ctx, from, to, t); err == nil && want != got {
		err = fmt.Errorf("%w: the keys of %d rows at the source are not those of %d at the destination", ErrDiffers,
			want.Rows, got.Rows)
	}
	return err
}

// keys returns how many rows there are with a sum of their keys: at the source, and in a table of the destination
// together with changed_rows.
func (r *mover) keys(ctx context.Context, from, to pgx.Tx, t *table) (want, got sum, err error) {
	err = from.QueryRow(ctx, `
		SELECT `+keySum(t)+`
		  FROM `+t.Name+`
		 WHERE tenant_id = $1`, r.Tenant).Scan(&want.Rows, &want.Sum)
	if err == nil {
		err = to.QueryRow(ctx, `
			SELECT `+keySum(t)+`
			  FROM (SELECT `+list(t.Key, ``)+`
			          FROM `+t.Name+`
			         WHERE tenant_id = $1
			         UNION ALL
			        SELECT `+list(t.Key, ``)+`
			          FROM changed_rows) k`, r.Tenant).Scan(&got.Rows, &got.Sum)
	}
	return want, got, err
}

// deleteGone deletes the rows whose keys the source does not have.
func (r *mover) deleteGone(ctx context.Context, from, to pgx.Tx, t *table) error {
	if _, err := to.Exec(ctx, `
		CREATE TEMPORARY TABLE kept_keys ON COMMIT DROP AS
		SELECT `+list(t.Key, ``)+`
		  FROM `+t.Name+`
		  WITH NO DATA`); err != nil {
		return err
	}
	_, err := stream(ctx, from.Conn().PgConn(), to.Conn().PgConn(), `
		COPY (SELECT `+list(t.Key, ``)+`
		        FROM `+t.Name+`
		       WHERE tenant_id = '`+r.Tenant.String()+`')
		  TO STDOUT (FORMAT binary)`, `COPY kept_keys FROM STDIN (FORMAT binary)`)
	if err == nil {
		_, err = to.Exec(ctx, `ANALYZE kept_keys`)
	}
	if err != nil {
		return err
	}
	if _, err := to.Exec(ctx, `
		DELETE FROM `+t.Name+` t
		 WHERE tenant_id = $1
		   AND NOT EXISTS (SELECT FROM kept_keys k WHERE (`+list(t.Key, `k.`)+`) = (`+list(t.Key, `t.`)+`))`,
		r.Tenant); err != nil {
		return err
	}
	_, err = to.Exec(ctx, `DROP TABLE kept_keys`)
	return err
}
