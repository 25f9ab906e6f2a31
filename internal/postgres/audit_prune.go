package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/session"
)

// pruneTrail removes rows of a tenant's audit trail whose time is over, in a bounded number of transactions. The
// database says in the trail itself what it has removed.
func (s *Store) pruneTrail(ctx context.Context, tenant uuid.UUID) error {
	if s.retention.Audit == 0 {
		return nil
	}
	for range pruneRounds {
		removed, err := inTx(ctx, s, tenant, func(tx pgx.Tx) (int64, error) {
			return rowIn(ctx, tx, pgx.RowTo[int64], `SELECT audit_prune($1, $2, $3)`,
				tenant, s.retention.Audit, PruneBatch)
		})
		if err != nil || removed < PruneBatch {
			return err
		}
	}
	return nil
}

// trailAnchor returns where a tenant's trail begins if that is behind a place, nil if not.
func trailAnchor(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, after int64) (*audit.Anchor, error) {
	a, err := rowIn(ctx, tx, scanAnchor, `
		SELECT n, hash, removed_by
		  FROM audit_anchors
		 WHERE tenant_id = $1 AND n > $2`, tenant, after)
	if errors.Is(err, session.ErrNotFound) {
		return nil, nil
	}
	if err == nil {
		a.Blanked, err = rowsIn(ctx, tx, scanStub, `
			SELECT n, blanked_by, sum
			  FROM audit_stubs
			 WHERE tenant_id = $1
			 ORDER BY n`, tenant)
	}
	return &a, err
}

func scanAnchor(row pgx.CollectableRow) (a audit.Anchor, err error) {
	var hash []byte
	err = row.Scan(&a.N, &hash, &a.RemovedBy)
	copy(a.Hash[:], hash)
	return a, err
}

func scanStub(row pgx.CollectableRow) (s audit.Stub, err error) {
	var sum []byte
	err = row.Scan(&s.N, &s.BlankedBy, &sum)
	copy(s.Sum[:], sum)
	return s, err
}
