package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/session"
)

// PutResults persists results of a session, in as many transactions as their size needs, and returns how many bytes
// their compressed bodies have. ErrNotFound if the session is gone.
func (s *Store) PutResults(ctx context.Context, key session.Key, results []persist.NewResult) (
	stored int64, err error,
) {
	for batch := range persist.Batches(results) {
		err := s.inTenant(ctx, key.Tenant, func(tx pgx.Tx) error {
			bytes, err := persist.Put(ctx, tx, key, batch)
			stored += bytes
			return err
		})
		if hasCode(err, "23503") { // foreign_key_violation
			err = fmt.Errorf("session of results: %w", session.ErrNotFound)
		}
		if err != nil {
			return stored, err
		}
	}
	return stored, nil
}

// Results lists a session's results by seq and part; ErrNotFound if there is no such session.
func (s *Store) Results(
	ctx context.Context, at session.Address, after persist.Place, limit int,
) ([]persist.Result, error) {
	return inSession(ctx, s, at, func(tx pgx.Tx, key session.Key) ([]persist.Result, error) {
		return persist.List(ctx, tx, key, after, limit)
	})
}

// NearestResults returns the refs of the persisted results nearest to message seq; ErrNotFound for the session.
func (s *Store) NearestResults(ctx context.Context, at session.Address, seq int64, limit int) ([]string, error) {
	return inSession(ctx, s, at, func(tx pgx.Tx, key session.Key) ([]string, error) {
		return persist.Nearest(ctx, tx, key, seq, limit)
	})
}
