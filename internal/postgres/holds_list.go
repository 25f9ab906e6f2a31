package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// holdsSQL reads a page of the legal holds of the tenant $1, newest first: those of sessions, and that of the tenant,
// whose key is the nil UUID.
var holdsSQL = `
	SELECT s.id, l.key, l.reason, l.placed_by, l.placed_at
	  FROM (SELECT *
	          FROM (SELECT session_key AS key, reason, placed_by, placed_at
	                  FROM session_holds
	                 WHERE tenant_id = $1` + NewestFirst(`placed_at`, `session_key`) + `) of_sessions
	         UNION ALL
	        SELECT '00000000-0000-0000-0000-000000000000', hold, held_by, held_at
	          FROM tenants
	         WHERE id = $1 AND hold IS NOT NULL
	           AND (held_at, '00000000-0000-0000-0000-000000000000'::uuid) < ($2, $3)
	         ORDER BY 4 DESC, 1 DESC
	         LIMIT $4) l
	  LEFT JOIN sessions s ON s.tenant_id = $1 AND s.key = l.key
	 ORDER BY l.placed_at DESC, l.key DESC`

// Holds lists a tenant's legal holds, newest first, its own among them.
func (s *Store) Holds(ctx context.Context, tenant uuid.UUID, page session.Page) ([]session.ListedHold, error) {
	return QueryRows(ctx, s, tenant, pgx.RowToStructByPos[session.ListedHold], holdsSQL, PageArgs(tenant, page)...)
}
