package cells

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// finish refuses writes, copies the rest, and has the destination serve. The source serves again if that fails before
// the destination has the tenant.
func (r *mover) finish(ctx context.Context) error {
	if err := r.awaitOlder(ctx, r.Freeze); err != nil { // those that never end refuse nobody's writes
		return err
	}
	began := time.Now()
	if err := r.freeze(ctx); err != nil {
		return r.thaw(ctx, err)
	}
	err := r.readTenant(ctx) // its deletion may have begun meanwhile
	if err == nil {
		err = r.refuseWork(ctx)
	}
	if err == nil {
		err = r.copyObjects(ctx)
	}
	if err == nil {
		err = r.arrive(ctx)
	}
	var unknown *unknownCommit
	switch {
	case errors.As(err, &unknown):
		return err // the source waits: another run asks the destination
	case err != nil:
		return r.thaw(ctx, err)
	}
	r.step("arrived")
	if err := r.leave(ctx); err != nil {
		return err
	}
	r.done.Frozen = time.Since(began)
	r.say("the destination serves the tenant; writes were refused for %s", r.done.Frozen.Round(time.Millisecond))
	return nil
}

// unknownCommit reports that it is not known whether the destination has the tenant.
type unknownCommit struct{ cause error }

func (e *unknownCommit) Error() string {
	return fmt.Sprintf("it is not known whether the destination has the tenant (%s): both refuse its writes until the "+
		"move is run again", e.cause)
}

func (e *unknownCommit) Unwrap() error { return e.cause }

// arrive makes the destination what the source is, in one transaction, and has it serve.
func (r *mover) arrive(ctx context.Context) error {
	to, err := r.To.Pool().Begin(ctx)
	if err != nil {
		return err
	}
	defer to.Rollback(context.WithoutCancel(ctx)) // does nothing after the commit
	if _, err := to.Exec(ctx, asItIs); err != nil {
		return err
	}
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, r.From.Pool(), snapshot, func(from pgx.Tx) error {
		if _, err := from.Exec(ctx, asItIs); err != nil {
			return err
		}
		return r.copyRest(ctx, from, to)
	})
	if err == nil {
		err = r.welcome(ctx, to)
	}
	if err != nil {
		return err
	}
	r.step("compared")
	if err := r.hold(ctx); err != nil {
		return err
	}
	r.step("held")
	return committed(to.Commit(ctx))
}

// committed returns *unknownCommit unless the error of a commit says that nothing was committed.
func committed(err error) error {
	var pg *pgconn.PgError
	if err == nil || errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR" {
		return err
	}
	return &unknownCommit{err}
}

// copyRest copies what changed since the last round, what comes last, and the tenant's own row.
func (r *mover) copyRest(ctx context.Context, from, to pgx.Tx) error {
	for _, t := range r.tables {
		var rows int64
		var err error
		if t.Late {
			rows, err = r.whole(ctx, from, to, t)
		} else {
			rows, err = r.changes(ctx, from, to, t)
		}
		r.done.Rows += rows
		if err != nil {
			return fmt.Errorf("table %s: %w", t.Name, r.forgetLater(ctx, to, t, err))
		}
		r.step("last of " + t.Name)
	}
	if err := r.copyTenant(ctx, from, to); err != nil {
		return err
	}
	return r.copyJobs(ctx, from, to)
}

// forgetLater does what forgetDiffering does; the transaction has the lock of the row, and ends first.
func (r *mover) forgetLater(ctx context.Context, to pgx.Tx, t *table, err error) error {
	if !errors.Is(err, ErrDiffers) || t.Late {
		return err
	}
	if undone := to.Rollback(context.WithoutCancel(ctx)); undone != nil {
		return errors.Join(err, undone)
	}
	return r.forgetDiffering(ctx, t, err)
}

// copyTenant copies the tenant's own row. With it, the destination knows the tenant.
func (r *mover) copyTenant(ctx context.Context, from, to pgx.Tx) error {
	var columns []string
	err := to.QueryRow(ctx, `
		SELECT array_agg(attname::text ORDER BY attnum)
		  FROM pg_attribute
		 WHERE attrelid = 'tenants'::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`).Scan(&columns)
	if err != nil {
		return err
	}
	rows, err := stream(ctx, from.Conn().PgConn(), to.Conn().PgConn(), `
		COPY (SELECT `+list(columns, ``)+` FROM tenants WHERE id = '`+r.Tenant.String()+`')
		  TO STDOUT (FORMAT binary)`, `
		COPY tenants (`+list(columns, ``)+`) FROM STDIN (FORMAT binary)`)
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && pg.Code == "23505":
		return fmt.Errorf("%w: %w at the destination, %s or of the same name", ErrRefused, session.ErrTenantExists,
			r.Tenant)
	case err == nil && rows != 1:
		return fmt.Errorf("%w: the source has %d rows of it in tenants", ErrRefused, rows)
	}
	return err
}

// welcome notes, in the last transaction of the destination, that the tenant has arrived.
func (r *mover) welcome(ctx context.Context, to pgx.Tx) error {
	noted, err := to.Exec(ctx, `
		UPDATE tenant_moves
		   SET state = 'arrived', copied = '{}'
		 WHERE tenant = $1 AND state = 'arriving'`, r.Tenant)
	if err == nil && noted.RowsAffected() != 1 {
		err = fmt.Errorf("%w: somebody has given the move up", ErrRefused)
	}
	if err == nil {
		_, err = to.Exec(ctx, `SET LOCAL session_replication_role = origin`) // the row of the trail is chained
	}
	if err != nil {
		return err
	}
	return postgres.RecordMove(ctx, to, audit.TenantArrive, r.Tenant, map[string]any{"move": r.id, "rows": r.done.Rows})
}

// leave has the source tell callers where the tenant is, and takes from its workers what they would find of it. Its
// other rows stay until they are forgotten.
func (r *mover) leave(ctx context.Context) error {
	err := pgx.BeginFunc(ctx, r.From.Pool(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, asItIs); err != nil {
			return err
		}
		for _, t := range r.tables {
			if !t.Late {
				continue
			}
			if _, err := tx.Exec(ctx, `DELETE FROM `+t.Name+` WHERE tenant_id = $1`, r.Tenant); err != nil {
				return err
			}
		}
		for _, sql := range []string{
			`DELETE FROM river_job WHERE args ->> 'tenant' = $1::text`,
			`DELETE FROM tenants WHERE id = $1::text::uuid`,
			`UPDATE tenant_moves SET state = 'moved', frozen_until = NULL WHERE tenant = $1::text::uuid`,
		} {
			if _, err := tx.Exec(ctx, sql, r.Tenant.String()); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, `SET LOCAL session_replication_role = origin`); err != nil {
			return err
		}
		return postgres.RecordMove(ctx, tx, audit.TenantLeave, r.Tenant, map[string]any{"move": r.id})
	})
	if err != nil {
		return err
	}
	r.step("left")
	return r.settle(ctx)
}

// settle ends the move at the destination, once the source knows that it serves.
func (r *mover) settle(ctx context.Context) error {
	_, err := r.To.Pool().Exec(ctx, `
		DELETE FROM tenant_moves
		 WHERE tenant = $1 AND state = 'arrived'`, r.Tenant)
	return err
}
