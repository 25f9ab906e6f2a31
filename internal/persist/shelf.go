package persist

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/session"
)

// PutObject puts bytes into a store, as one object of a session, and verifies it. It returns the object, nil if they
// are to lie in PostgreSQL. No transaction may be open.
func (s *Stores) PutObject(ctx context.Context, key session.Key, kind Kind, body []byte) (*uuid.UUID, error) {
	if kind == Postgres {
		return nil, nil
	}
	store, err := s.Store(kind)
	if err != nil {
		return nil, err
	}
	id := uuid.Must(uuid.NewV7())
	return &id, s.putVerified(ctx, store, ObjectName(key, id), body)
}

// GetPart reads bytes of an object of an archive, from at on; *session.DamagedError if it is not there.
func (s *Stores) GetPart(
	ctx context.Context, key session.Key, kind Kind, id uuid.UUID, at int64, size int,
) ([]byte, error) {
	store, err := s.Store(kind)
	if err != nil {
		return nil, err
	}
	name := ObjectName(key, id)
	body, err := store.Get(ctx, name, at, size)
	if errors.Is(err, object.ErrMissing) {
		err = &session.DamagedError{What: "the archive", Cause: fmt.Errorf("%s: %w", name, err)}
	}
	return body, err
}

// Spot is where the bytes of a chunk lie outside.
type Spot struct {
	Object   uuid.UUID
	At, Size int64
}

// PutAway puts chunks, as they are stored, where new bodies go, and verifies them. It returns no spots if that is
// PostgreSQL. No transaction may be open.
func (s *Stores) PutAway(ctx context.Context, key session.Key, stored [][]byte) ([]Spot, error) {
	if s.New == Postgres {
		return nil, nil
	}
	chunks := make([]encoded, len(stored))
	for i := range stored {
		chunks[i].stored = stored[i]
	}
	if err := s.putChunks(ctx, key, s.New, chunks); err != nil {
		return nil, err
	}
	spots := make([]Spot, len(chunks))
	for i := range chunks {
		spots[i] = Spot{Object: *chunks[i].object, At: chunks[i].objectAt, Size: int64(chunks[i].size)}
	}
	return spots, nil
}

// putVerified puts an object and reads it back.
func (s *Stores) putVerified(ctx context.Context, store object.Store, name string, body []byte) error {
	if err := store.Put(ctx, name, body); err != nil {
		return err
	}
	s.Step("put")
	found, err := store.Get(ctx, name, 0, len(body)+1)
	if err != nil {
		return verified(store, name, err)
	}
	if !bytes.Equal(found, body) {
		return fmt.Errorf("%w: %s returns other bytes for %s than were put", session.ErrResultStore, store, name)
	}
	s.Step("verified")
	return nil
}
