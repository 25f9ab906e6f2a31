package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/session"
)

const foreignKeyViolation = "23503"

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
		var violation *pgconn.PgError
		if errors.As(err, &violation) && violation.Code == foreignKeyViolation {
			err = fmt.Errorf("session of results: %w", session.ErrNotFound)
		}
		if err != nil {
			return stored, err
		}
	}
	return stored, nil
}

// Results lists a session's results by seq and part; ErrNotFound if there is no such session.
func (s *Store) Results(ctx context.Context, at session.Address, after persist.Place, limit int) (
	found []persist.Result, err error,
) {
	err = s.readInSession(ctx, at, func(tx pgx.Tx, key session.Key) error {
		found, err = persist.List(ctx, tx, key, after, limit)
		return err
	})
	return found, err
}

// Result reads one result of a session with its body; ErrNotFound, see persist.Read.
func (s *Store) Result(ctx context.Context, at session.Address, ref session.ResultRef) (
	found persist.Result, body []byte, err error,
) {
	err = s.readInSession(ctx, at, func(tx pgx.Tx, key session.Key) error {
		found, body, err = persist.Read(ctx, tx, key, ref)
		return err
	})
	return found, body, err
}

// readInSession calls read in a transaction that writes nothing, with the key of a session; ErrNotFound if there is
// none.
func (s *Store) readInSession(
	ctx context.Context, at session.Address, read func(tx pgx.Tx, key session.Key) error,
) error {
	options := pgx.TxOptions{AccessMode: pgx.ReadOnly}
	return InTenant(ctx, s.pool, at.Tenant, options, func(tx pgx.Tx) error {
		key, err := sessionKey(ctx, tx, at)
		if err != nil {
			return err
		}
		return read(tx, session.Key{Tenant: at.Tenant, Key: key})
	})
}
