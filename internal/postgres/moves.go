package postgres

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/session"
)

// The moves of tenants between databases are made by package cells. Here is what serves a tenant meanwhile: every
// transaction asks, with setTenant, whether its tenant moves.

// isMoving reports whether err says that a tenant is not served here: it has moved away, or has not arrived.
func isMoving(err error) bool { return hasCode(err, "VM001") }

// servedHere returns the condition that the tenant of a column is served here. What lists the work of many tenants has
// it: the old rows of one that has moved stay for a while, and nobody may work on them.
func servedHere(column string) string {
	return `NOT EXISTS (SELECT FROM tenant_moves WHERE tenant = ` + column + ` AND state IN ('moved', 'arriving'))`
}

type evenMovedKey struct{}

// evenMoved returns a context whose queries read, too, of a tenant that has moved away: the lookup of a key, and reads
// of which it is known otherwise that no tenant moves.
func evenMoved(ctx context.Context) context.Context {
	return context.WithValue(ctx, evenMovedKey{}, true)
}

// MovesNoticed is how long a move is written down before its tenant is served elsewhere. By then no process relies any
// more on having seen, movesLook ago at most, that no tenant moves.
const (
	movesLook    = 250 * time.Millisecond
	MovesNoticed = 2 * movesLook
)

// movesSeen is what a process has seen of tenant_moves.
type movesSeen struct {
	at   time.Time // before it looked
	none bool
}

// moveWatch spares reads that are done again and again from asking each time whether their tenant moves.
type moveWatch struct {
	seen    atomic.Pointer[movesSeen]
	looking atomic.Bool
}

// passing returns a context whose query does not ask whether its tenant moves if no tenant does: one read looks four
// times a second. It is for reads alone; a write must ask in its own transaction.
func (s *Store) passing(ctx context.Context) context.Context {
	if readingOf(ctx, s.pool) != nil {
		return ctx // it goes to a standby, and the primary may be away
	}
	seen := s.moves.seen.Load()
	if (seen == nil || time.Since(seen.at) >= movesLook) && s.moves.looking.CompareAndSwap(false, true) {
		seen = s.lookForMoves(ctx)
		s.moves.looking.Store(false)
	}
	if seen == nil || !seen.none || time.Since(seen.at) >= movesLook {
		return ctx
	}
	return evenMoved(ctx)
}

func (s *Store) lookForMoves(ctx context.Context) *movesSeen {
	seen := &movesSeen{at: time.Now()}
	err := s.pool.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM tenant_moves)`).Scan(&seen.none)
	if err != nil {
		return nil
	}
	s.moves.seen.Store(seen)
	return seen
}

// entering returns what the transactions of a context begin with.
func entering(ctx context.Context) string {
	if ctx.Value(evenMovedKey{}) != nil {
		return setTenantEvenMoved
	}
	return setTenant
}

// movedTo is where the tenant of a live key or token is, t, if it has moved to another database by m; NULL if it is
// here. Who has no such key learns nothing.
const movedTo = `CASE WHEN t.id IS NULL THEN coalesce(m.address, '') END`

// movedError returns *session.MovedError for what movedTo found; nil for NULL.
func movedError(address *string) error {
	if address == nil {
		return nil
	}
	return &session.MovedError{Address: *address}
}

// TakesWrites reports whether a database that refused to write in a transaction takes writes in others. If so, the
// tenant of that transaction was being moved.
func (s *Store) TakesWrites(ctx context.Context) (takes bool, err error) {
	err = s.pool.QueryRow(ctx, `
		SELECT NOT pg_is_in_recovery() AND NOT current_setting('transaction_read_only')::boolean`).Scan(&takes)
	return takes, err
}

// RecordMove records in the operators' trail what was done with a tenant that moves.
func RecordMove(ctx context.Context, tx pgx.Tx, action audit.Action, tenant uuid.UUID, detail map[string]any) error {
	return recordOperator(ctx, tx, deed{
		action: action, object: audit.Tenant, id: tenant.String(), detail: about(detail),
	})
}
