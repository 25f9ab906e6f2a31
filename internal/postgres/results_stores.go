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
func (s *Store) CheckResultStores(ctx context.Context) error { return s.eachResultStore(ctx, s.claim) }

// ProbeResultStores returns what CheckResultStores does, and leaves a store alone that has no owner yet.
func (s *Store) ProbeResultStores(ctx context.Context) error {
	return s.eachResultStore(ctx, func(ctx context.Context, kind persist.Kind, store object.Store) error {
		found, err := s.ownerOf(ctx, kind, store)
		if err == nil {
			err = tryToWrite(ctx, store, found.id)
		}
		return err
	})
}

func (s *Store) eachResultStore(
	ctx context.Context, check func(context.Context, persist.Kind, object.Store) error,
) error {
	var failed []error
	for kind, store := range s.results.Outside {
		if err := check(ctx, kind, store); err != nil {
			failed = append(failed, fmt.Errorf("result store %s: %w", store, err))
		}
	}
	return errors.Join(failed...)
}

// claim checks one store. Its marker is written before the database notes that it uses the store.
func (s *Store) claim(ctx context.Context, kind persist.Kind, store object.Store) error {
	found, err := s.ownerOf(ctx, kind, store)
	if err == nil && !found.marked {
		err = store.Put(ctx, marker, []byte(found.id.String()))
	}
	if err == nil && !found.used {
		_, err = s.pool.Exec(ctx, `SELECT use_store($1)`, kind)
	}
	if err == nil {
		err = tryToWrite(ctx, store, found.id)
	}
	return err
}

// tryToWrite writes an object and deletes it.
func tryToWrite(ctx context.Context, store object.Store, id uuid.UUID) error {
	return errors.Join(store.Put(ctx, probe, []byte(id.String())), store.Delete(ctx, probe))
}

// owned is what binds a store to this database.
type owned struct {
	id     uuid.UUID // of the database
	marked bool      // the store names it
	used   bool      // the database has noted that it uses the store
}

// ownerOf returns an error if a store belongs to another database, or is not the one that this database has used.
func (s *Store) ownerOf(ctx context.Context, kind persist.Kind, store object.Store) (of owned, err error) {
	var used []persist.Kind
	err = s.pool.QueryRow(ctx, `SELECT id, stores FROM installation`).Scan(&of.id, &used)
	if err != nil {
		return of, err
	}
	of.used = slices.Contains(used, kind)
	found, err := store.Get(ctx, marker, 0, len(of.id.String()))
	switch {
	case errors.Is(err, object.ErrMissing) && of.used:
		return of, fmt.Errorf("it is not the one that this database has used, because its object %s is missing "+
			"(is the right directory mounted, or the right bucket named?)", marker)
	case errors.Is(err, object.ErrMissing):
		return of, nil
	case err == nil && string(found) != of.id.String():
		return of, fmt.Errorf("it belongs to another database, whose id is %q in the object %s; this one's is %s: "+
			"take another directory, bucket or prefix", found, marker, of.id)
	}
	of.marked = err == nil
	return of, err
}
