package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/session"
)

// CollectBodies deletes the rows of at most limit bodies of a tenant that nothing names and nobody has written to for
// grace. It ends the uploads that were given up first. The caller deletes their objects.
func (s *Store) CollectBodies(ctx context.Context, tenant uuid.UUID, grace time.Duration, limit int) (
	[]persist.Waste, error,
) {
	return InTx(ctx, s, tenant, func(tx pgx.Tx) ([]persist.Waste, error) {
		if err := ExpireUploads(ctx, tx, tenant, nil); err != nil {
			return nil, err
		}
		return persist.Collect(ctx, tx, tenant, grace, limit)
	})
}

// NamedObjects returns which of some objects of a tenant are named by a body or an archive. prefixes are the sessions
// under whose prefixes they lie.
func (s *Store) NamedObjects(
	ctx context.Context, tenant uuid.UUID, prefixes, objects []uuid.UUID,
) ([]uuid.UUID, error) {
	return InTx(ctx, s, tenant, func(tx pgx.Tx) ([]uuid.UUID, error) {
		return persist.Named(ctx, tx, tenant, prefixes, objects)
	})
}

// unnamed returns those of some objects that nothing names. What a session has lost may be named by others: an object
// has the chunks of several bodies if an archive was restored, and forks are given some of them.
func (s *Store) unnamed(ctx context.Context, tenant uuid.UUID, prefixes, objects []uuid.UUID) ([]uuid.UUID, error) {
	if len(objects) == 0 {
		return nil, nil
	}
	named, err := s.NamedObjects(ctx, tenant, prefixes, objects)
	isNamed := func(o uuid.UUID) bool { return slices.Contains(named, o) }
	return slices.DeleteFunc(slices.Clone(objects), isNamed), err
}

// ForgetUnnamed deletes those of some objects under the prefix of a session that nothing names. What it cannot delete,
// a collection finds later.
func (s *Store) ForgetUnnamed(ctx context.Context, key session.Key, in persist.Kind, objects []uuid.UUID) error {
	unnamed, err := s.unnamed(ctx, key.Tenant, []uuid.UUID{key.Key}, objects)
	if err != nil {
		return err
	}
	return s.results.Forget(ctx, key, in, unnamed)
}

// UsedResultStores returns the stores outside that this database has ever used.
func (s *Store) UsedResultStores(ctx context.Context) (used []persist.Kind, err error) {
	err = s.pool.QueryRow(ctx, `SELECT stores FROM installation`).Scan(&used)
	return used, err
}

// IsErased reports whether a session is gone.
func (s *Store) IsErased(ctx context.Context, key session.Key) (bool, error) {
	_, err := QueryRow(ctx, s.Seeing(AllSessions), key.Tenant, pgx.RowTo[uuid.UUID], `
		SELECT key
		  FROM sessions
		 WHERE tenant_id = $1 AND key = $2`, key.Tenant, key.Key)
	if errors.Is(err, session.ErrNotFound) {
		return true, nil
	}
	return false, err
}
