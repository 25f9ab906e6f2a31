package postgres

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/session"
)

// isOutside reports whether the bytes of the pack have yet to be read from a store.
func (p *storedPack) isOutside() bool { return p.Object != nil && p.Body == nil }

// object returns the object that has the pack's bytes; ok is false if its row has them.
func (p *storedPack) object() (o AwayObject, ok bool) {
	if p.Object == nil {
		return o, false
	}
	return AwayObject{p.Store, p.Prefix, *p.Object}, true
}

// loadPack reads the bytes of a pack that lies outside. They are never nil, even if the object is empty: what was read
// lies outside no more. No transaction may be open.
//
// Errors: those of persist.Stores.Load.
func (s *Store) loadPack(ctx context.Context, tenant uuid.UUID, p *storedPack) ([]byte, error) {
	found, err := s.results.Load(ctx, tenant, []persist.Row{{
		Store: p.Store, Prefix: p.Prefix, Object: p.Object, ObjectAt: new(int64(0)), ObjectSize: p.Size,
	}})
	if err != nil {
		return nil, err
	}
	if found[0].Bytes == nil {
		return []byte{}, nil
	}
	return found[0].Bytes, nil
}

// packAttempts is how often the row of a pack is read whose object is gone: it may have been made anew, or moved.
const packAttempts = 3

// openPack opens the pack that has message seq, if it lies outside. No transaction may be open.
//
// Errors: *session.DamagedError, ErrResultStore; ErrNotFound if the session was erased meanwhile.
func (s *Store) openPack(ctx context.Context, p *packs, seq int64) error {
	for attempt := 1; ; attempt++ {
		i, found := p.find(seq)
		if !found || p.opened == i+1 || !p.stored[i].isOutside() {
			return nil
		}
		at := p.stored[i]
		var err error
		if at.Body, err = s.loadPack(ctx, p.key.Tenant, &at); err == nil {
			return p.openAt(i, &at, seq)
		}
		if !persist.IsMissing(err) {
			return err
		}
		if attempt == packAttempts {
			return session.DamagedMessage(seq, err)
		}
		if err := s.readPacksAgain(ctx, p); err != nil {
			return err
		}
	}
}

// readPacksAgain reads the rows of packs again; ErrNotFound if the session is gone.
func (s *Store) readPacksAgain(ctx context.Context, p *packs) error {
	seqs := []int64{p.stored[0].First, p.stored[len(p.stored)-1].Last}
	now, err := readTx(ctx, s, p.key.Tenant, func(tx pgx.Tx) (packs, error) { return readPacks(ctx, tx, p.key, seqs) })
	if err != nil {
		return err
	}
	if *p = now; len(p.stored) == 0 {
		there, err := s.isThere(ctx, p.key)
		if err != nil || there {
			return err
		}
		return session.ErrNotFound
	}
	return nil
}

// packsOutside is the error of a transaction that needs packs which lie outside: none may be open while they are read.
type packsOutside struct{ packs []storedPack }

func (*packsOutside) Error() string { return "packs lie outside the database" }

// outside returns an error that names the packs that have yet to be read from a store.
func (p *packs) outside() *packsOutside {
	e := &packsOutside{}
	for i := range p.stored {
		if p.stored[i].isOutside() {
			e.packs = append(e.packs, p.stored[i])
		}
	}
	return e
}

type loadedPacksKey struct{}

// loadedPacks returns the packs that withPacks has read, by their objects.
func loadedPacks(ctx context.Context) map[uuid.UUID][]byte {
	loaded, _ := ctx.Value(loadedPacksKey{}).(map[uuid.UUID][]byte)
	return loaded
}

// withPacks calls do, which runs a transaction that may need packs which lie outside. If it does, they are read when it
// has ended, and do is called again with them.
//
// Errors: those of do; ErrResultStore, *session.DamagedError.
func (s *Store) withPacks(ctx context.Context, tenant uuid.UUID, do func(ctx context.Context) error) error {
	loaded := map[uuid.UUID][]byte{}
	ctx = context.WithValue(ctx, loadedPacksKey{}, loaded)
	for missing := 0; ; {
		err := do(ctx)
		var outside *packsOutside
		if !errors.As(err, &outside) {
			return err
		}
		for i := range outside.packs {
			p := &outside.packs[i]
			body, err := s.loadPack(ctx, tenant, p)
			if persist.IsMissing(err) {
				if missing++; missing == packAttempts {
					return session.DamagedMessage(p.First, err)
				}
				break // its row has changed: do reads it again
			}
			if err != nil {
				return err
			}
			loaded[*p.Object] = body
		}
	}
}

// MovablePack is a pack that lies elsewhere than it shall.
type MovablePack struct {
	Session uuid.UUID
	First   int64
}

// PacksInRows returns the packs of a session that lie in their rows, and whose last message is at least a number of
// messages behind the newest.
func (s *Store) PacksInRows(ctx context.Context, key session.Key, behind int64) ([]int64, error) {
	return queryRows(ctx, s, key.Tenant, pgx.RowTo[int64], `
		SELECT p.first_seq
		  FROM message_packs p
		  JOIN sessions s ON s.tenant_id = p.tenant_id AND s.key = p.session_key
		 WHERE p.tenant_id = $1 AND p.session_key = $2 AND p.object IS NULL AND p.last_seq <= s.last_seq - $3
		 ORDER BY p.first_seq`, key.Tenant, key.Key, behind)
}

// MovePack moves the bytes of a pack to a store, where they are verified before its row names them. It returns how many
// there are, 0 if the pack lies there already. What its row named before is deleted if nothing else names it.
//
// Errors: *session.DamagedError: what is damaged is not moved; ErrResultStore; ErrStale if the pack has changed
// meanwhile, or a fork copies it; ErrNotFound.
func (s *Store) MovePack(ctx context.Context, key session.Key, first int64, to persist.Kind) (bytes int, err error) {
	p, err := queryRow(ctx, s, key.Tenant, scanPack, `
		SELECT `+packColumns+`
		  FROM message_packs
		 WHERE tenant_id = $1 AND session_key = $2 AND first_seq = $3`, key.Tenant, key.Key, first)
	if err != nil || p.Store == to {
		return 0, err
	}
	was, lay := p.object()
	if lay {
		if p.Body, err = s.loadPack(ctx, key.Tenant, &p); persist.IsMissing(err) {
			err = session.DamagedMessage(p.First, err)
		}
	}
	if sum := sha256.Sum256(p.Body); err == nil && string(sum[:]) != string(p.Digest) {
		err = session.DamagedMessage(p.First, errPackDigest)
	}
	if err != nil {
		return 0, err
	}
	put := time.Now()
	made, err := s.results.PutObject(ctx, key, to, p.Body)
	if err != nil {
		return 0, err
	}
	err = s.named(ctx, key, to, made, put, func(tx pgx.Tx) error { return p.move(ctx, tx, key, to, made) })
	if err == nil && lay {
		s.ForgetObjects(context.WithoutCancel(ctx), key.Tenant, []AwayObject{was})
	}
	return len(p.Body), err
}

// named runs do under the lock of a session, which has a row name an object that was put at a time, nil for none. If do
// refuses, the object is deleted; if it is not known what became of the transaction, a collection finds the object.
func (s *Store) named(
	ctx context.Context, key session.Key, in persist.Kind, object *uuid.UUID, put time.Time, do func(tx pgx.Tx) error,
) error {
	err := s.underLock(ctx, key, func(tx pgx.Tx, _ lockedSession) error {
		if object != nil {
			if err := persist.InTime(put); err != nil {
				return err
			}
		}
		return do(tx)
	})
	if object != nil && (errors.Is(err, session.ErrStale) || errors.Is(err, session.ErrNotFound)) {
		forgotten := s.results.Forget(context.WithoutCancel(ctx), key, in, []uuid.UUID{*object})
		return errors.Join(err, forgotten)
	}
	return err
}

// move has the row of the pack name another place. A row that a fork copies is left alone.
func (p *storedPack) move(ctx context.Context, tx pgx.Tx, key session.Key, to persist.Kind, object *uuid.UUID) error {
	body, size := p.Body, (*int)(nil)
	if object != nil {
		body, size = nil, new(len(p.Body))
	}
	return execAll(ctx, tx, 1, `
		UPDATE message_packs
		   SET body = $5, store = $6, object = $7, object_size = $8, objects_in = NULL
		 WHERE tenant_id = $1 AND session_key = $2 AND first_seq IN (
		       SELECT first_seq
		         FROM message_packs
		        WHERE tenant_id = $1 AND session_key = $2 AND first_seq = $3 AND digest = $4
		          AND object IS NOT DISTINCT FROM $9
		          FOR UPDATE SKIP LOCKED)`,
		key.Tenant, key.Key, p.First, p.Digest, body, to, object, size, p.Object)
}
