package cells

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// querier is a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// stateOf returns the state of a tenant's move in a database, "" for none. It waits for a transaction that changes it.
func stateOf(ctx context.Context, pool *pgxpool.Pool, tenant uuid.UUID) (state string, err error) {
	_, state, err = moveOf(ctx, pool, tenant)
	return state, err
}

func moveOf(ctx context.Context, pool *pgxpool.Pool, tenant uuid.UUID) (id uuid.UUID, state string, err error) {
	err = pool.QueryRow(ctx, `
		SELECT move, state
		  FROM tenant_moves
		 WHERE tenant = $1
		   FOR UPDATE`, tenant).Scan(&id, &state)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return id, state, err
}

// states returns the states of the move at the source and at the destination.
func (r *mover) states(ctx context.Context) (here, there string, err error) {
	id, here, err := moveOf(ctx, r.From.Pool(), r.Tenant)
	if err != nil {
		return here, there, err
	}
	other, there, err := moveOf(ctx, r.To.Pool(), r.Tenant)
	if err == nil && (here == switching || there == arriving || there == arrived) && here != "" && id != other {
		err = fmt.Errorf("%w: its move at the source is %s (%s), at the destination %q (%s): name the destination of "+
			"before, or give that move up", ErrRefused, here, id, there, other)
	}
	r.id = id
	return here, there, err
}

// resume begins the move, or finds out how far it is and leaves it at copying, or moved.
func (r *mover) resume(ctx context.Context) (state string, err error) {
	here, there, err := r.states(ctx)
	switch {
	case err != nil:
		return here, err
	case here == moved && there == arrived:
		return moved, r.settle(ctx)
	case here == switching && there == arrived:
		r.say("the destination serves the tenant already")
		return moved, r.leave(ctx)
	case here == moved:
		return here, fmt.Errorf("%w: it has moved away from the source before", ErrRefused)
	case here == "" || here == arrived:
		return copying, r.begin(ctx, there)
	case there == arriving:
		return copying, r.proceed(ctx)
	}
	return here, fmt.Errorf("%w: its move at the source is %s, and the destination knows of none: name the one of "+
		"before, or give that move up", ErrRefused, here)
}

// proceed has the source serve, and says since when the destination may have what was erased meanwhile.
func (r *mover) proceed(ctx context.Context) error {
	var began time.Time
	err := r.From.Pool().QueryRow(ctx, `SELECT began_at FROM tenant_moves WHERE tenant = $1`, r.Tenant).Scan(&began)
	if err != nil {
		return err
	}
	r.say("the move continues that began at %s", began.UTC().Format(time.RFC3339))
	return r.serve(ctx)
}

// begin writes down, in both databases, that the tenant moves.
func (r *mover) begin(ctx context.Context, there string) error {
	if err := r.readTenant(ctx); err != nil {
		return err
	}
	if err := r.refuseWork(ctx); err != nil {
		return err
	}
	if err := r.refuseTaken(ctx, there); err != nil {
		return err
	}
	r.id = uuid.Must(uuid.NewV7())
	begin := func(pool *pgxpool.Pool, state string) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `
				INSERT INTO tenant_moves (tenant, move, name, state, address)
				VALUES ($1, $2, $3, $4, nullif($5, ''))
				    ON CONFLICT (tenant) DO UPDATE
				   SET move = $2, name = $3, state = $4, address = nullif($5, ''), copied = '{}', began_at = now(),
				       frozen_until = NULL`, r.Tenant, r.id, r.name, state, r.Address)
			if err != nil {
				return err
			}
			return postgres.RecordMove(ctx, tx, audit.TenantMove, r.Tenant, map[string]any{
				"move": r.id, "state": state, "address": r.Address,
			})
		})
	}
	// First at the destination: a source whose move the destination doesn't know cannot continue it.
	if err := begin(r.To.Pool(), arriving); err != nil {
		return err
	}
	r.step("begun at the destination")
	return begin(r.From.Pool(), copying)
}

func (r *mover) readTenant(ctx context.Context) error {
	var deleted bool
	err := r.From.Pool().QueryRow(ctx, `
		SELECT name, erasure_id IS NOT NULL
		  FROM tenants
		 WHERE id = $1`, r.Tenant).Scan(&r.name, &deleted)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("tenant %s: %w", r.Tenant, session.ErrNotFound)
	case err == nil && deleted:
		return fmt.Errorf("%w: it is being deleted", ErrRefused)
	}
	return err
}

// refuseWork returns ErrRefused if something is done to the tenant that workers of two databases cannot share.
func (r *mover) refuseWork(ctx context.Context) error {
	var what *string
	err := r.From.Pool().QueryRow(ctx, `
		SELECT (SELECT 'recompaction ' || id || coalesce(' of the campaign ' || campaign_id, '')
		          FROM recompactions
		         WHERE tenant_id = $1 AND finished_at IS NULL
		         UNION ALL
		        SELECT 'erasure ' || id
		          FROM erasures
		         WHERE tenant_id = $1 AND state <> 'done'
		         UNION ALL
		        SELECT 'replay ' || id
		          FROM replays
		         WHERE tenant_id = $1 AND finished_at IS NULL
		         UNION ALL
		        SELECT 'archive of the session ' || session_key || ', which is ' || state
		          FROM session_archives
		         WHERE tenant_id = $1 AND state <> 'archived'
		         LIMIT 1)`, r.Tenant).Scan(&what)
	if err == nil && what != nil {
		err = fmt.Errorf("%w now: there is the %s: wait until it ends, or cancel it", ErrRefused, *what)
	}
	return err
}

// refuseTaken returns ErrRefused if the destination has the tenant, another of its name, or rows of it.
func (r *mover) refuseTaken(ctx context.Context, there string) error {
	var taken bool
	err := r.To.Pool().QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM tenants WHERE id = $1 OR name = $2)`, r.Tenant, r.name).Scan(&taken)
	if err == nil && taken {
		return fmt.Errorf("%w: %w at the destination, %s or %q", ErrRefused, session.ErrTenantExists, r.Tenant, r.name)
	}
	if err != nil || there == arriving { // begun before the source knew
		return err
	}
	for _, t := range r.tables {
		err := r.To.Pool().QueryRow(ctx, `
			SELECT EXISTS (SELECT FROM `+t.Name+` WHERE tenant_id = $1)`, r.Tenant).Scan(&taken)
		if err == nil && taken {
			err = fmt.Errorf("%w: the destination has rows of it in %s: if it moved away from there before, run varve "+
				"tenants move --forget there", ErrRefused, t.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mark is what the destination has of a table, or of the objects.
type mark struct {
	Since string   `json:"since"` // the oldest transaction of the source whose rows it may lack
	By    []string `json:"by"`    // the transactions that wrote it
}

// mark returns what the destination has of a table, nil for nothing.
func (r *mover) mark(ctx context.Context, db querier, name string) (found *mark, err error) {
	err = db.QueryRow(ctx, `
		SELECT copied -> $2::text
		  FROM tenant_moves
		 WHERE tenant = $1`, r.Tenant, name).Scan(&found)
	return found, err
}

// note writes down, in the transaction that copies, that the destination has what a transaction of the source sees.
func (r *mover) note(ctx context.Context, from querier, to pgx.Tx, name string, before *mark) error {
	now := mark{}
	if before != nil {
		now = *before
	}
	own := ""
	err := from.QueryRow(ctx, `SELECT pg_snapshot_xmin(pg_current_snapshot())::text`).Scan(&now.Since)
	if err == nil {
		err = to.QueryRow(ctx, `SELECT pg_current_xact_id()::text`).Scan(&own)
	}
	if err != nil {
		return err
	}
	now.By = append(now.By, own)
	return noteMark(ctx, to, r.Tenant, name, &now)
}

func noteMark(ctx context.Context, to pgx.Tx, tenant uuid.UUID, name string, m *mark) error {
	_, err := to.Exec(ctx, `
		UPDATE tenant_moves
		   SET copied = CASE WHEN $3::jsonb IS NULL THEN copied - $2::text
		                     ELSE jsonb_set(copied, ARRAY[$2::text], $3) END
		 WHERE tenant = $1`, tenant, name, m)
	return err
}

// Named returns the tenant of a name that moves, or has moved away from a database; session.ErrNotFound.
func Named(ctx context.Context, store *postgres.Store, name string) (tenant uuid.UUID, err error) {
	err = store.Pool().QueryRow(ctx, `
		SELECT tenant
		  FROM tenant_moves
		 WHERE name = $1
		 ORDER BY began_at DESC
		 LIMIT 1`, name).Scan(&tenant)
	if errors.Is(err, pgx.ErrNoRows) {
		err = fmt.Errorf("tenant %q: %w", name, session.ErrNotFound)
	}
	return tenant, err
}
