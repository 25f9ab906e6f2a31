package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// CountsExactly reports whether any policy of a tenant names an exact tokenizer.
func (s *Store) CountsExactly(ctx context.Context, tenant uuid.UUID) (bool, error) {
	return queryRow(ctx, s, tenant, pgx.RowTo[bool], `
		SELECT EXISTS (
		       SELECT
		         FROM policies
		        WHERE tenant_id = $1 AND tokenizer <> 'estimate')`, tenant)
}

// Tokenizer returns the name of the tokenizer of a session's policy; ErrNotFound.
func (s *Store) Tokenizer(ctx context.Context, at session.Address) (string, error) {
	return queryRow(ctx, s, at.Tenant, pgx.RowTo[string], `
		SELECT p.tokenizer
		  FROM sessions s
		  JOIN policies p ON p.tenant_id = s.tenant_id AND p.id = s.policy_id
		 WHERE s.tenant_id = $1 AND s.id = $2`, at.Tenant, at.ID)
}
