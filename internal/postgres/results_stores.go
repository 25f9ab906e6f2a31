package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/persist/object"
)

// marker is the name of the object that says which database a store belongs to, probe that of one to write.
const (
	marker = "varve-database"
	probe  = "varve-probe"
)

// UseResultStores sets where results lie besides PostgreSQL. It must be called before the store is used.
func (s *Store) UseResultStores(stores persist.Stores) { s.results = stores }

// ResultStores returns where results lie.
func (s *Store) ResultStores() *persist.Stores { return &s.results }

// CheckResultStores returns an error if a result store does not answer, cannot be written to, or belongs to another
// database: a collection would delete the other's objects. It makes a store this database's that has no owner yet.
func (s *Store) CheckResultStores(ctx context.Context) error {
	var failed []error
	for kind, store := range s.results.Outside {
		if err := s.claim(ctx, kind, store); err != nil {
			failed = append(failed, fmt.Errorf("result store %s: %w", store, err))
		}
	}
	return errors.Join(failed...)
}

// claim checks one store. Its marker is written before the database notes that it uses the store.
func (s *Store) claim(ctx context.Context, kind persist.Kind, store object.Store) error {
	var id uuid.UUID
	var used []persist.Kind
	err := s.pool.QueryRow(ctx, `SELECT id, stores FROM installation`).Scan(&id, &used)
	if err != nil {
		return err
	}
	found, err := store.Get(ctx, marker, 0, len(id.String()))
	switch {
	case errors.Is(err, object.ErrMissing) && slices.Contains(used, kind):
		return fmt.Errorf("it is not the one that this database has used, because its object %s is missing "+
			"(is the right directory mounted, or the right bucket named?)", marker)
	case errors.Is(err, object.ErrMissing):
		err = store.Put(ctx, marker, []byte(id.String()))
	case err == nil && string(found) != id.String():
		return fmt.Errorf("it belongs to another database, whose id is %q in the object %s; this one's is %s: "+
			"take another directory, bucket or prefix", found, marker, id)
	}
	if err == nil && !slices.Contains(used, kind) {
		_, err = s.pool.Exec(ctx, `SELECT use_store($1)`, kind)
	}
	if err == nil {
		err = errors.Join(store.Put(ctx, probe, []byte(id.String())), store.Delete(ctx, probe))
	}
	return err
}
