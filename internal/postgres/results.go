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
		bytes, err := s.putResults(ctx, key, batch)
		if err != nil {
			return stored, err
		}
		stored += bytes
	}
	return stored, nil
}

// putResults persists results in one transaction, after their bodies were put outside if new ones go there.
func (s *Store) putResults(ctx context.Context, key session.Key, batch []persist.NewResult) (stored int64, err error) {
	p, err := persist.Prepare(batch)
	if err != nil {
		return 0, err
	}
	if s.results.New != persist.Postgres {
		known, err := QueryRows(ctx, s, key.Tenant, pgx.RowTo[[]byte], `
			SELECT sha256
			  FROM result_bodies
			 WHERE tenant_id = $1 AND session_key = $2 AND sha256 = ANY ($3)`, key.Tenant, key.Key, p.Sums())
		if err != nil {
			return 0, err
		}
		if err := p.PutOutside(ctx, &s.results, key, known); err != nil {
			return 0, err
		}
	}
	err = s.InTenant(ctx, key.Tenant, func(tx pgx.Tx) error { return p.Commit(ctx, tx, key) })
	if hasCode(err, "23503") { // foreign_key_violation
		err = fmt.Errorf("session of results: %w", session.ErrNotFound)
	}
	if err == nil {
		s.results.Step("committed")
	}
	return p.Stored, err
}

// Results lists those of a session's results that fit a filter, by seq and part; ErrNotFound if there is no such
// session.
func (s *Store) Results(
	ctx context.Context, at session.Address, filter persist.Filter, after persist.Place, limit int,
) ([]persist.Result, error) {
	return InSession(ctx, s, at, func(tx pgx.Tx, key session.Key) ([]persist.Result, error) {
		return persist.List(ctx, tx, key, filter, after, limit)
	})
}

// NearestResults returns the refs of the persisted results nearest to message seq; ErrNotFound for the session.
func (s *Store) NearestResults(ctx context.Context, at session.Address, seq int64, limit int) ([]string, error) {
	return InSession(ctx, s, at, func(tx pgx.Tx, key session.Key) ([]string, error) {
		return persist.Nearest(ctx, tx, key, seq, limit)
	})
}
