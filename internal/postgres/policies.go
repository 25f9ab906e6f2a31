package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// insertPolicy stores a policy of one session.
func insertPolicy(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, p session.Policy) (uuid.UUID, error) {
	id := uuid.Must(uuid.NewV7())
	_, err := tx.Exec(ctx, `
		INSERT INTO policies (tenant_id, id, trigger_ratio, hard_ratio, cache_ttl, document)
		VALUES ($1, $2, $3, $4, $5, $6)`,
		[16]byte(tenant), [16]byte(id), p.Trigger, p.Hard, p.CacheTTL, p.Document)
	return id, err
}

// deletePolicy removes a policy of one session; the tenant's default stays.
func deletePolicy(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) error {
	_, err := tx.Exec(ctx, `
		DELETE FROM policies
		 WHERE tenant_id = $1 AND id = $2 AND id <> $3`,
		[16]byte(tenant), [16]byte(id), [16]byte(uuid.Nil))
	return err
}
