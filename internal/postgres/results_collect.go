package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/persist/object"
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

// ForgetUnnamed deletes those of some objects under the prefix of a session that nothing names: an object has the
// chunks of several bodies if an archive was restored, and forks are given some of them. What it cannot delete, a
// collection finds later.
func (s *Store) ForgetUnnamed(ctx context.Context, key session.Key, in persist.Kind, objects []uuid.UUID) error {
	if len(objects) == 0 {
		return nil
	}
	named, err := s.NamedObjects(ctx, key.Tenant, []uuid.UUID{key.Key}, objects)
	if err != nil {
		return err
	}
	isNamed := func(o uuid.UUID) bool { return slices.Contains(named, o) }
	return s.results.Forget(ctx, key, in, slices.DeleteFunc(slices.Clone(objects), isNamed))
}

// UsedResultStores returns the stores outside that this database has ever used.
func (s *Store) UsedResultStores(ctx context.Context) (used []persist.Kind, err error) {
	err = s.pool.QueryRow(ctx, `SELECT stores FROM installation`).Scan(&used)
	return used, err
}

// UsedStores returns the stores outside that this database has ever used. The error names those that are not set up;
// the others are returned nevertheless.
func (s *Store) UsedStores(ctx context.Context) (stores []object.Store, err error) {
	used, err := s.UsedResultStores(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(used)
	var failed []error
	for _, kind := range used {
		store, err := s.results.Store(kind)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		stores = append(stores, store)
	}
	return stores, errors.Join(failed...)
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
