package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// State counts the sessions of a tenant that need something now.
func (s *Store) State(ctx context.Context, tenant uuid.UUID) (session.State, error) {
	return QueryRow(ctx, s, tenant, pgx.RowToStructByPos[session.State], `
		SELECT (SELECT count(*)
		          FROM (SELECT
		                  FROM usage_sessions
		                 WHERE tenant_id = $1 AND over_window
		                 LIMIT $2) o),
		       (SELECT count(*)
		          FROM (SELECT
		                  FROM session_failures
		                 WHERE tenant_id = $1
		                 LIMIT $2) f),
		       (SELECT count(*)
		          FROM (SELECT
		                  FROM session_failures
		                 WHERE tenant_id = $1 AND quarantined_at IS NOT NULL
		                 LIMIT $2) q),
		       (SELECT count(*)
		          FROM (SELECT
		                  FROM due_sessions
		                 WHERE tenant_id = $1
		                 LIMIT $2) d),
		       (SELECT min(since)
		          FROM due_sessions
		         WHERE tenant_id = $1)`, tenant, session.MaxStateCount)
}
