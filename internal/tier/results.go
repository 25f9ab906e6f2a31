package tier

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// ResultMove moves the bodies of results to another store, while they are read and written. It can be stopped at any
// time, and done again: what lies there already is left alone.
type ResultMove struct {
	Tenant  uuid.UUID
	Session *uuid.UUID // nil for all
	To      persist.Kind

	Rate int64 // stored bytes a second, 0 for as fast as it goes

	// Each is called after each body, with the error that kept it from being moved.
	Each func(body persist.Movable, stored int64, err error)
}

// movePage is how many bodies are looked for at once.
const movePage = 100

// MoveResults moves bodies one after another. One that cannot be moved does not keep it from the
// others; an error of a store that does not answer ends it.
func MoveResults(ctx context.Context, s *postgres.Store, m ResultMove) error {
	after := persist.Movable{}
	for {
		bodies, err := postgres.InTx(ctx, s, m.Tenant, func(tx pgx.Tx) ([]persist.Movable, error) {
			return persist.MovableBodies(ctx, tx, m.Tenant, m.Session, m.To, after, movePage)
		})
		if err != nil || len(bodies) == 0 {
			return err
		}
		for _, body := range bodies {
			begun := time.Now()
			one := bodyMove{store: s, key: session.Key{Tenant: m.Tenant, Key: body.Session}, body: body, to: m.To}
			err := one.move(ctx)
			if errors.Is(err, session.ErrNotFound) { // it is gone, or another move was first
				err, one.stored = nil, 0
			}
			m.Each(body, one.stored, err)
			if errors.Is(err, session.ErrResultStore) || ctx.Err() != nil {
				return errors.Join(err, ctx.Err())
			}
			if err := m.pause(ctx, one.stored, time.Since(begun)); err != nil {
				return err
			}
			after = body
		}
	}
}

// pause waits until that number of bytes may have been moved.
func (m *ResultMove) pause(ctx context.Context, bytes int64, took time.Duration) error {
	if m.Rate == 0 {
		return nil
	}
	wait := time.Duration(float64(bytes)/float64(m.Rate)*float64(time.Second)) - took
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}

// bodyMove is the move of one body.
type bodyMove struct {
	store  *postgres.Store
	key    session.Key
	body   persist.Movable
	to     persist.Kind
	parts  []persist.Moving // copied, and not yet named by their rows
	put    []uuid.UUID      // objects that were put
	old    []uuid.UUID      // objects that rows named
	stored int64            // bytes of the copy
}

// move copies a body, verifies the copy, makes the rows name it, and deletes the objects that they named before. A
// reader finds the one or the other.
func (m *bodyMove) move(ctx context.Context) error {
	stores, begun := m.store.ResultStores(), time.Now()
	err := m.copyAll(ctx)
	if err == nil {
		err = persist.InTime(begun)
	}
	unnamed := err != nil
	if err == nil {
		err = m.switchParts(ctx, true)
		unnamed = errors.Is(err, session.ErrNotFound) // else the rows may name it, if only the answer was lost
	}
	if unnamed {
		err = errors.Join(err, stores.Forget(context.WithoutCancel(ctx), m.key, m.to, m.put))
	}
	if err != nil {
		m.stored = 0
		return err
	}
	stores.Step("switched")
	err = m.store.ForgetUnnamed(ctx, m.key, m.body.Store, m.old)
	stores.Step("deleted")
	return err
}

// copyAll copies the whole body. What goes to PostgreSQL is not all held at once: each part is switched for itself.
func (m *bodyMove) copyAll(ctx context.Context) error {
	content, err := m.store.OpenBody(ctx, m.key, m.body.ID)
	if err != nil {
		return err
	}
	fetch := func(ctx context.Context, first, limit int) ([]persist.StoredChunk, error) {
		return m.store.Chunks(ctx, m.key, m.body.ID, first, limit)
	}
	for first := 0; first < len(content.Index()); first += persist.MoveChunks {
		part, err := m.store.ResultStores().Copy(ctx, m.key, content, first, fetch, m.to)
		m.put = append(m.put, part.Objects()...)
		if err != nil {
			return err
		}
		m.stored += part.Stored()
		part.Lean()
		m.parts = append(m.parts, part)
		if m.to == persist.Postgres {
			if err := m.switchParts(ctx, false); err != nil {
				return err
			}
			m.store.ResultStores().Step("part switched")
		}
	}
	return nil
}

// switchParts makes the rows of the parts name their copies; all says that it is all of the body then.
func (m *bodyMove) switchParts(ctx context.Context, all bool) error {
	old := m.old
	err := m.store.InTenant(ctx, m.key.Tenant, func(tx pgx.Tx) error {
		m.old = old
		if err := persist.LockMoving(ctx, tx, m.key, m.body); err != nil {
			return err
		}
		for i := range m.parts {
			before, err := m.parts[i].Switch(ctx, tx, m.key, m.body.ID)
			if err != nil {
				return err
			}
			m.old = append(m.old, before...)
		}
		if !all {
			return nil
		}
		return persist.SetStore(ctx, tx, m.key, m.body.ID, m.to)
	})
	m.parts = nil
	return err
}

// ResultStats returns what a tenant, or one session if it is given, has in each result store.
func ResultStats(ctx context.Context, s *postgres.Store, tenant uuid.UUID, of *uuid.UUID) ([]persist.Stat, error) {
	return postgres.InTx(ctx, s, tenant, func(tx pgx.Tx) ([]persist.Stat, error) {
		return persist.Stats(ctx, tx, tenant, of)
	})
}
