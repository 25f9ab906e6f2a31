package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// pruneTrail removes rows of a tenant's audit trail whose time is over, in a bounded number of transactions. The
// database says in the trail itself what it has removed.
func (s *Store) pruneTrail(ctx context.Context, tenant uuid.UUID) error {
	if s.retention.Audit == 0 {
		return nil
	}
	for range pruneRounds {
		removed, err := InTx(ctx, s, tenant, func(tx pgx.Tx) (int64, error) {
			return RowIn(ctx, tx, pgx.RowTo[int64], `SELECT audit_prune($1, $2, $3)`,
				tenant, s.retention.Audit, PruneBatch)
		})
		if err != nil || removed < PruneBatch {
			return err
		}
	}
	return nil
}
