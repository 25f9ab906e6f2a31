package postgres

import (
	"context"

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

// evenMoved returns a context whose queries read, too, of a tenant that has moved away: only the lookup of a key does.
func evenMoved(ctx context.Context) context.Context {
	return context.WithValue(ctx, evenMovedKey{}, true)
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
