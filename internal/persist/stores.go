package persist

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/session"
)

// Kind is where the bytes of a body lie, the number of result_bodies.store.
type Kind int16

// The kinds of result stores.
const (
	Postgres Kind = 0
	File     Kind = 1
	S3       Kind = 2
)

// String returns the name that settings and commands have for it.
func (k Kind) String() string { return [...]string{"postgres", "file", "s3"}[k] }

// Stores are the result stores that are set up. The zero value is PostgreSQL alone.
type Stores struct {
	New      Kind                  // where new bodies go
	Archives *Kind                 // where new archives go; nil is where new bodies go
	Outside  map[Kind]object.Store // those besides PostgreSQL

	// Trace, if set, is called after each step: put, verified, committed, and those of a move and of a collection.
	Trace func(step string)
}

// Step tells Trace that a step is done.
func (s *Stores) Step(name string) {
	if s.Trace != nil {
		s.Trace(name)
	}
}

// ForArchives returns where new archives go.
func (s *Stores) ForArchives() Kind {
	if s.Archives != nil {
		return *s.Archives
	}
	return s.New
}

// Store returns the store of a kind; ErrResultStore if it is not set up.
func (s *Stores) Store(kind Kind) (object.Store, error) {
	if found := s.Outside[kind]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("%w: bodies lie in the store %q, which is not set up: see VARVE_RESULTS and VARVE_OBJECTS",
		session.ErrResultStore, kind)
}

// ObjectName returns the name of an object of a session.
func ObjectName(key session.Key, id uuid.UUID) string { return Prefix(key) + "/" + id.String() }

// Prefix returns the prefix of the names of all objects of a session.
func Prefix(key session.Key) string { return key.Tenant.String() + "/" + key.Key.String() }

// objectChunks is how many chunks an object has at most.
const objectChunks = 64

// maxPut is the longest time from putting an object to committing the rows that name it. The collection of objects that
// no row names must wait longer, see MinGrace.
const maxPut = 15 * time.Minute

// MinGrace is the shortest time after which a collection may delete what nothing names.
const MinGrace = 4 * maxPut

var errTooSlow = fmt.Errorf("%w: it took longer than %s to store objects", session.ErrResultStore, maxPut)

// InTime returns an error if objects that were put at a time are too old to be named now: a collection may have deleted
// them. The clock is that of the wall, which does not stop while a machine is suspended.
func InTime(put time.Time) error {
	if time.Now().Round(0).Sub(put.Round(0)) > maxPut {
		return errTooSlow
	}
	return nil
}

// putChunks puts the bytes of chunks outside and verifies that they can be read, and notes where they are. It does
// nothing for PostgreSQL. No transaction may be open.
func (s *Stores) putChunks(ctx context.Context, key session.Key, kind Kind, chunks []encoded) error {
	if kind == Postgres {
		return nil
	}
	store, err := s.Store(kind)
	if err != nil {
		return err
	}
	for len(chunks) > 0 {
		n := min(objectChunks, len(chunks))
		if err := s.putObject(ctx, store, key, chunks[:n]); err != nil {
			return err
		}
		chunks = chunks[n:]
	}
	return nil
}

func (s *Stores) putObject(ctx context.Context, store object.Store, key session.Key, chunks []encoded) error {
	id := uuid.Must(uuid.NewV7())
	var body []byte
	for i := range chunks {
		chunks[i].object = &id
		chunks[i].objectAt = int64(len(body))
		chunks[i].size = len(chunks[i].stored)
		body = append(body, chunks[i].stored...)
	}
	return s.putVerified(ctx, store, ObjectName(key, id), body)
}

// verified returns the error of reading an object back that was just put.
func verified(store object.Store, name string, err error) error {
	if errors.Is(err, object.ErrMissing) {
		return fmt.Errorf("%w: %s does not have %s, which was just put", session.ErrResultStore, store, name)
	}
	return err
}

// Forget deletes objects that no row names any more. What it cannot delete, a collection finds later.
func (s *Stores) Forget(ctx context.Context, key session.Key, kind Kind, objects []uuid.UUID) error {
	if len(objects) == 0 {
		return nil
	}
	store, err := s.Store(kind)
	if err != nil {
		return err
	}
	var failed []error
	for _, id := range objects {
		failed = append(failed, store.Delete(ctx, ObjectName(key, id)))
	}
	return errors.Join(failed...)
}
