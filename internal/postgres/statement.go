package postgres

import (
	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
)

// The hot statements with their arguments, as Query sends them. The bench runs them bare: a copy there would drift
// from what the store does.

// TenantStatement returns the statement that precedes every other.
func TenantStatement(tenant uuid.UUID) (sql string, args []any) {
	return setTenant, []any{tenant.String()}
}

// AppendStatement returns the one statement of Append.
func AppendStatement(a session.Append) (sql string, args []any) {
	p := newAppendParams(a)
	return appendSQLOf(a).plain, p.args()
}

// ViewStatement returns the one statement of View.
func ViewStatement(at session.Address, known Version) (sql string, args []any) {
	return newestView, viewArgs(at, known, heldBody{})
}
