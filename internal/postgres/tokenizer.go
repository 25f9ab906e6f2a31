package postgres

import (
	"context"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
)

// CountsExactly reports whether any policy of a tenant names an exact tokenizer.
func (s *Store) CountsExactly(ctx context.Context, tenant uuid.UUID) (exact bool, err error) {
	sql := `
		SELECT EXISTS (
		       SELECT
		         FROM policies
		        WHERE tenant_id = $1 AND tokenizer <> 'estimate')`
	err = Query(ctx, s.pool, tenant, sql, []any{[16]byte(tenant)}, one(&exact))
	return exact, err
}

// Tokenizer is the one that the policy of a session names; ErrNotFound.
func (s *Store) Tokenizer(ctx context.Context, at session.Address) (name string, err error) {
	sql := `
		SELECT p.tokenizer
		  FROM sessions s
		  JOIN policies p ON p.tenant_id = s.tenant_id AND p.id = s.policy_id
		 WHERE s.tenant_id = $1 AND s.id = $2`
	err = Query(ctx, s.pool, at.Tenant, sql, []any{[16]byte(at.Tenant), at.ID}, one(&name))
	return name, err
}
