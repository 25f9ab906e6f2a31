// Package cells moves a tenant from one Varve cluster to another: its rows and its objects, under the same ids, while
// it is served. It is the operator's, with a login at both databases that row-level security does not bind.
//
// Start at Move.Run. The tables are copied one after the other while the tenant writes (copy.go), then what has changed
// meanwhile, twice or more (delta.go). For the last of these, the database refuses what the tenant writes (freeze.go).
// Then the tenant is served at the destination and not at the source any more (switch.go). What was copied is compared
// with what is at the source each time. The tables are those that have a tenant, from the catalogue (tables.go).
//
// How far a move is stands in the table tenant_moves of both databases, so that it continues wherever it was stopped:
// see ADR 90.
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

// Errors of a move, which are wrapped with what it was.
var (
	// ErrRefused reports that nothing was moved, and what has to be done before.
	ErrRefused = errors.New("the tenant cannot be moved")

	// ErrDiffers reports that the destination does not have what the source has.
	ErrDiffers = errors.New("the copy is not what is at the source")
)

// Move is the move of one tenant. Its stores have logins that row-level security does not bind.
type Move struct {
	From, To *postgres.Store
	Tenant   uuid.UUID
	Address  string        // what callers are told of where the tenant is; "" for nothing
	Freeze   time.Duration // how long writes are refused at most
	Say      func(text string)
	Step     func(name string) // for tests: called after each step
}

// DefaultFreeze is how long writes are refused at most, unless the operator says otherwise.
const DefaultFreeze = 10 * time.Second

// Moved says what a move did.
type Moved struct {
	Tenant  uuid.UUID     `json:"tenant"`
	Rows    int64         `json:"rows"`
	Objects int           `json:"objects"`
	Frozen  time.Duration `json:"frozen_ns"` // how long writes were refused
}

// The states of a move, in table tenant_moves.
const (
	copying   = "copying"   // at the source, which serves
	frozen    = "frozen"    // at the source, for a time: it refuses writes
	switching = "switching" // at the source, until the destination says whether it has the tenant
	moved     = "moved"     // at the source
	arriving  = "arriving"  // at the destination
	arrived   = "arrived"   // at the destination, until the source knows
)

// mover is a move that runs.
type mover struct {
	*Move
	id     uuid.UUID
	name   string
	tables []*table
	done   Moved
}

// Run moves the tenant. If it fails or is stopped, the source keeps serving, after Freeze at the latest, and another
// Run continues; only between two commits at the end of it, both may refuse until another Run.
//
// Errors: ErrRefused, ErrDiffers.
func (m *Move) Run(ctx context.Context) (Moved, error) {
	r, release, err := m.open(ctx)
	if err != nil {
		return Moved{}, err
	}
	defer release()
	r.done.Tenant = m.Tenant
	before, err := r.resume(ctx)
	if err != nil || before == moved {
		return r.done, err
	}
	if err := r.copyAll(ctx); err != nil {
		return r.done, err
	}
	if err := r.awaitNotice(ctx); err != nil {
		return r.done, err
	}
	if err := r.catchUp(ctx); err != nil {
		return r.done, err
	}
	return r.done, r.finish(ctx)
}

// open compares both databases and takes them for the move. release gives them back.
func (m *Move) open(ctx context.Context) (r *mover, release func(), err error) {
	r = &mover{Move: m}
	first, err := take(ctx, m.From.Pool(), m.Tenant)
	if err != nil {
		return nil, nil, fmt.Errorf("source: %w", err)
	}
	second, err := take(ctx, m.To.Pool(), m.Tenant)
	if err != nil {
		first()
		return nil, nil, fmt.Errorf("destination: %w", err)
	}
	release = func() { second(); first() }
	if r.tables, err = m.compareSchemas(ctx); err == nil {
		err = errors.Join(m.From.CheckResultStores(ctx), m.To.CheckResultStores(ctx))
	}
	if err == nil { // giving the move up deletes from all of them
		err = checkKinds(ctx, m.To)
	}
	if err != nil {
		release()
	}
	return r, release, err
}

// take has no other move of the tenant use a database until it is released: two moves would copy to the same tables,
// and a database is not moved into itself.
func take(ctx context.Context, pool *pgxpool.Pool, tenant uuid.UUID) (release func(), err error) {
	conn, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig.Copy())
	if err != nil {
		return nil, err
	}
	free := false
	err = postgres.CheckDirect(ctx, conn, "a move needs")
	if err == nil {
		free, err = lock(ctx, conn, tenant)
	}
	if err == nil && !free {
		err = fmt.Errorf("%w: it is the same database as the source, or another move of the tenant runs", ErrRefused)
	}
	if err == nil {
		err = checkLogin(ctx, conn)
	}
	if err != nil {
		_ = conn.Close(context.WithoutCancel(ctx)) // the error is the one of before
		return nil, err
	}
	return func() { _ = conn.Close(context.WithoutCancel(ctx)) }, nil // the lock goes with the connection
}

// lockTime is how long a database may take to notice that the move before is gone.
const lockTime = 3 * time.Second

func lock(ctx context.Context, conn *pgx.Conn, tenant uuid.UUID) (free bool, err error) {
	for up := time.Now().Add(lockTime); err == nil && !free && time.Now().Before(up); {
		err = conn.QueryRow(ctx, `SELECT pg_try_advisory_lock(hashtextextended('move ' || $1, 0))`, tenant.String()).
			Scan(&free)
		if err == nil && !free {
			err = sleep(ctx, 50*time.Millisecond)
		}
	}
	return free, err
}

// checkLogin returns ErrRefused for a login that cannot copy whole tables.
func checkLogin(ctx context.Context, conn *pgx.Conn) error {
	bound := true
	err := conn.QueryRow(ctx, `SELECT row_security_active('messages')`).Scan(&bound)
	if err == nil && bound {
		return fmt.Errorf("%w: row-level security binds the login %s: take a superuser, or a role with BYPASSRLS that "+
			"owns the tables and may set session_replication_role", ErrRefused, conn.Config().User)
	}
	if err != nil {
		return err
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) // it is a trial
	if _, err = tx.Exec(ctx, `SET LOCAL session_replication_role = replica`); err != nil {
		err = fmt.Errorf("%w: the login %s may not set session_replication_role, which keeps triggers from changing "+
			"what is copied (GRANT SET ON PARAMETER): %w", ErrRefused, conn.Config().User, err)
	}
	return err
}

// compareSchemas returns the tables of a tenant, ErrRefused if both databases do not have the same.
func (m *Move) compareSchemas(ctx context.Context) ([]*table, error) {
	from, version, err := tablesOf(ctx, m.From.Pool())
	if err != nil {
		return nil, err
	}
	to, other, err := tablesOf(ctx, m.To.Pool())
	if err != nil {
		return nil, err
	}
	if version != other || !sameTables(from, to) {
		return nil, fmt.Errorf("%w: the source's schema is version %d, the destination's %d: run varve migrate until "+
			"both are the same", ErrRefused, version, other)
	}
	return from, nil
}

func (m *Move) say(format string, args ...any) {
	if m.Say != nil {
		m.Say(fmt.Sprintf(format, args...))
	}
}

func (m *Move) step(name string) {
	if m.Step != nil {
		m.Step(name)
	}
}

// Abort gives a move up: the source serves, and the destination has nothing of the tenant. A move that has come so far
// that the destination serves is not given up.
//
// Errors: ErrRefused.
func (m *Move) Abort(ctx context.Context) error {
	r, release, err := m.open(ctx)
	if err != nil {
		return err
	}
	defer release()
	here, there, err := r.states(ctx)
	switch {
	case err != nil:
		return err
	case there == arrived || here == moved:
		return fmt.Errorf("%w back: the destination serves it already; run the move again, which ends it", ErrRefused)
	case there != "" && there != arriving:
		return fmt.Errorf("%w: it moved away from the destination before", ErrRefused)
	}
	if there == arriving {
		if err := r.remove(ctx, m.To); err != nil {
			return err
		}
	}
	return r.giveUp(ctx, here != "", there != "")
}

func (r *mover) giveUp(ctx context.Context, here, there bool) error {
	said := map[string]any{"aborted": true}
	if there {
		err := pgx.BeginFunc(ctx, r.To.Pool(), func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `DELETE FROM tenant_moves WHERE tenant = $1`, r.Tenant); err != nil {
				return err
			}
			return postgres.RecordMove(ctx, tx, audit.TenantMove, r.Tenant, said)
		})
		if err != nil {
			return err
		}
	}
	if !here {
		return nil
	}
	return pgx.BeginFunc(ctx, r.From.Pool(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM tenant_moves WHERE tenant = $1`, r.Tenant); err != nil {
			return err
		}
		return postgres.RecordMove(ctx, tx, audit.TenantMove, r.Tenant, said)
	})
}

// checkKinds returns ErrRefused if a database has used a result store of a kind that is not set up here: its objects
// would be left when those of the tenant are deleted.
func checkKinds(ctx context.Context, store *postgres.Store) error {
	used, err := store.UsedResultStores(ctx)
	if err != nil {
		return err
	}
	for _, kind := range used {
		if _, err := store.ResultStores().Store(kind); err != nil {
			return fmt.Errorf("%w: the database %s has objects in the result store %q, which is not named, and they "+
				"would be left: name it with --results or --results-also, at the destination with --to-results or "+
				"--to-results-also", ErrRefused, store.Pool().Config().ConnConfig.Database, kind)
		}
	}
	return nil
}

// Forget deletes what the source still has of a tenant that has moved away. Callers who ask there are not told any more
// where the tenant is: their keys are unknown.
//
// Errors: ErrRefused; session.ErrNotFound if the tenant has not moved away.
func Forget(ctx context.Context, store *postgres.Store, tenant uuid.UUID) error {
	release, err := take(ctx, store.Pool(), tenant)
	if err != nil {
		return err
	}
	defer release()
	m := &mover{Move: &Move{From: store, Tenant: tenant}}
	if m.tables, _, err = tablesOf(ctx, store.Pool()); err != nil {
		return err
	}
	state, err := stateOf(ctx, store.Pool(), tenant)
	if err == nil && state != moved {
		err = fmt.Errorf("tenant %s has not moved away: %w", tenant, session.ErrNotFound)
	}
	if err == nil {
		err = store.CheckResultStores(ctx)
	}
	if err == nil {
		err = checkKinds(ctx, store)
	}
	if err == nil {
		err = m.remove(ctx, store)
	}
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, store.Pool(), func(tx pgx.Tx) error {
		return postgres.RecordMove(ctx, tx, audit.TenantForget, tenant, nil)
	})
}
