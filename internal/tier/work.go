// Package tier moves what was said in sessions down the ladder from rows to packs to objects, and back.
//
// A Packer moves old messages out of their rows into packs. Work.Freeze moves all rows of a session into the parts of
// an archive, because somebody asked for it (Archive), or because the session sleeps: then it is cold (FreezeSleeping).
// A Thawer brings them back, in the worker, or for whoever uses a cold session, in the meantime of a request. What
// packs and parts are is packages pack's and frozen's.
package tier

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier/frozen"
)

// ErrMoved says that rows of a session have changed since its archive was begun.
var ErrMoved = errors.New("rows of the session have changed since its archive was begun")

// Work is an archive that is made, or restored.
type Work struct {
	session.Key
	Cold bool // the session is frozen, or thawed

	store   *postgres.Store // which sees all sessions
	id      uuid.UUID
	attempt uuid.UUID
	back    bool
	in      persist.Kind // the store of the parts
	parts   int          // that a complete archive has
	stored  int64        // bytes of those
	count   int64        // of rows that a complete archive has
	digest  []byte
	tables  map[string]int64 // rows by table of the archive that was read
	rows    string           // the sum of the session's rows when it was begun
}

// Start begins an attempt to make an archive, or to restore it, from the beginning: nobody else's attempt continues.
// ErrNotFound if there is nothing to do any more.
func Start(ctx context.Context, s *postgres.Store, key session.Key, id uuid.UUID, back bool) (*Work, error) {
	w := &Work{Key: key, store: s.Seeing(postgres.AllSessions), id: id, back: back, attempt: uuid.New()}
	state := session.Archiving
	if back {
		state = session.Restoring
	}
	err := w.underFamilyLock(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			UPDATE session_archives
			   SET attempt = $5, done = 0
			 WHERE tenant_id = $1 AND session_key = $2 AND id = $3 AND state = $4
			RETURNING NOT (SELECT archived FROM sessions WHERE tenant_id = $1 AND key = $2),
			          store, parts, stored, rows, digest`, key.Tenant, key.Key, id, state, w.attempt).
			Scan(&w.Cold, &w.in, &w.parts, &w.stored, &w.count, &w.digest)
		if err != nil {
			return postgres.NotFound(err)
		}
		if back {
			_, err := deleteRows(ctx, tx, key)
			return err
		}
		if w.rows, err = sumOfRows(ctx, tx, key); err != nil {
			return err
		}
		w.in = s.ResultStores().ForArchives()
		err = postgres.Exec(ctx, tx, `
			UPDATE session_archives
			   SET store = $3, objects = '{}', sizes = '{}', view_end = NULL
			 WHERE tenant_id = $1 AND session_key = $2`, key.Tenant, key.Key, w.in)
		if err != nil {
			return err
		}
		return postgres.Exec(ctx, tx, `
			DELETE FROM archive_parts
			 WHERE tenant_id = $1 AND session_key = $2`, key.Tenant, key.Key)
	})
	return w, err
}

// underFamilyLock runs do in a transaction that holds the locks of the session and of those that share what it has.
func (w *Work) underFamilyLock(ctx context.Context, do func(tx pgx.Tx) error) error {
	return w.store.InTenant(ctx, w.Tenant, func(tx pgx.Tx) error {
		if _, err := postgres.LockFamily(ctx, tx, w.Key); err != nil {
			return err
		}
		return do(tx)
	})
}

// underLock runs do in a transaction that holds the lock of a session; ErrNotFound.
func underLock(ctx context.Context, s *postgres.Store, key session.Key, do func(tx pgx.Tx) error) error {
	return s.InTenant(ctx, key.Tenant, func(tx pgx.Tx) error {
		if _, err := postgres.LockKey(ctx, tx, key); err != nil {
			return err
		}
		return do(tx)
	})
}

// goOn counts rows that are done, and keeps another attempt from beginning until the transaction ends; ErrEnded. It
// reads again whether the archive is that of a cold session: somebody may have asked for it meanwhile.
//
// The session's row comes before that of its archive, as for everybody else: the foreign keys of what is restored would
// lock it later, and an erasure, which has it, waits for the archive's row.
func (w *Work) goOn(ctx context.Context, tx pgx.Tx, rows int64) error {
	archived, err := postgres.RowIn(ctx, tx, pgx.RowTo[bool], `
		SELECT archived
		  FROM sessions
		 WHERE tenant_id = $1 AND key = $2
		   FOR KEY SHARE`, w.Tenant, w.Key.Key)
	if errors.Is(err, session.ErrNotFound) {
		return session.ErrEnded
	}
	if err != nil {
		return err
	}
	w.Cold = !archived
	return postgres.ExecOne(ctx, tx, session.ErrEnded, `
		UPDATE session_archives
		   SET done = done + $5
		 WHERE tenant_id = $1 AND session_key = $2 AND id = $3 AND attempt = $4`,
		w.Tenant, w.Key.Key, w.id, w.attempt, rows)
}

// fail notes why an attempt has failed. A session that was thawed is cold again, so that the next request tries at
// once; the objects of what was restored are forgotten. ErrEnded if another attempt has taken over; ErrNotFound.
func (w *Work) fail(ctx context.Context, why error) error {
	var objects []object
	err := w.underFamilyLock(ctx, func(tx pgx.Tx) (err error) {
		if err := w.goOn(ctx, tx, 0); err != nil {
			return err
		}
		again := w.Cold && w.back
		if again {
			if objects, err = deleteRows(ctx, tx, w.Key); err != nil {
				return err
			}
		}
		return postgres.Exec(ctx, tx, `
			UPDATE session_archives
			   SET state = CASE WHEN $3 THEN 'archived' ELSE state END,
			       attempt = CASE WHEN $3 THEN NULL ELSE attempt END,
			       error = $4, failed_at = now()
			 WHERE tenant_id = $1 AND session_key = $2`, w.Tenant, w.Key.Key, again, postgres.Text(why.Error()))
	})
	if err == nil {
		forget(ctx, w.store, w.Tenant, objects)
	}
	return err
}

// EachPart calls do with each part of an archive, and returns their number and the digest of their digests.
//
// Errors: ErrNotFound if the archive is gone; *session.DamagedError if the parts of a complete archive are not what was
// written, maybe after do was called; ErrResultStore, and those of do.
func (w *Work) EachPart(ctx context.Context, do func(body []byte) error) (parts int, digest []byte, err error) {
	at, err := postgres.QueryRow(ctx, w.store, w.Tenant, pgx.RowToStructByPos[struct {
		Objects []uuid.UUID
		Sizes   []int
	}], `
		SELECT objects, sizes
		  FROM session_archives
		 WHERE tenant_id = $1 AND session_key = $2 AND id = $3`, w.Tenant, w.Key.Key, w.id)
	if err != nil {
		return 0, nil, err
	}
	sum := sha256.New()
	for ; len(at.Objects) == 0 || parts < len(at.Objects); parts++ {
		var body []byte
		if len(at.Objects) > 0 {
			body, err = w.store.ResultStores().GetPart(ctx, w.Key, w.in, at.Objects[parts], 0, at.Sizes[parts])
		} else {
			body, err = postgres.QueryRow(ctx, w.store, w.Tenant, pgx.RowTo[[]byte], `
				SELECT body
				  FROM archive_parts
				 WHERE tenant_id = $1 AND session_key = $2 AND n = $3`, w.Tenant, w.Key.Key, parts)
			if errors.Is(err, session.ErrNotFound) {
				break
			}
		}
		if err == nil {
			is := sha256.Sum256(body)
			sum.Write(is[:])
			err = do(body)
		}
		if errors.Is(err, frozen.ErrFormat) {
			err = &session.DamagedError{What: "the archive", Cause: err}
		}
		if err != nil {
			return parts, nil, err
		}
	}
	digest = sum.Sum(nil)
	if w.digest != nil && !bytes.Equal(digest, w.digest) {
		return parts, digest, &session.DamagedError{What: "the archive"}
	}
	return parts, digest, nil
}

// Check reads all parts of an archive, and returns their number, the digest of their digests and the rows that they
// have by table. It calls told with each part.
//
// Errors: *session.DamagedError, ErrResultStore.
func (w *Work) Check(ctx context.Context, told ...func(body []byte)) (
	parts int, digest []byte, tables map[string]int64, err error,
) {
	tables = map[string]int64{}
	parts, digest, err = w.EachPart(ctx, func(body []byte) error {
		for _, tell := range told {
			tell(body)
		}
		return frozen.Read(body, func(of *frozen.Table, _ frozen.Row) error {
			tables[of.Name]++
			return nil
		})
	})
	return parts, digest, tables, err
}

// expectWhole reads all parts of a complete archive, and calls told with each.
//
// Errors: *session.DamagedError if they are not what was written; ErrResultStore.
func (w *Work) expectWhole(ctx context.Context, told ...func(body []byte)) error {
	parts, _, tables, err := w.Check(ctx, told...)
	if err != nil {
		return err
	}
	rows := int64(0)
	for _, n := range tables {
		rows += n
	}
	if parts != w.parts || rows != w.count {
		return &session.DamagedError{What: "the archive"}
	}
	w.tables = tables
	return nil
}

// Verify reads a complete archive, also one that a worker restores the session from. It returns the session's id, and
// how many bytes the archive has.
//
// Errors: ErrNotFound if the session has none; *session.DamagedError, ErrResultStore.
func Verify(ctx context.Context, s *postgres.Store, key session.Key) (id string, stored int64, err error) {
	w := &Work{Key: key, store: s.Seeing(postgres.AllSessions)}
	read := func() error {
		_, err := postgres.QueryRow(ctx, w.store, key.Tenant, func(row pgx.CollectableRow) (struct{}, error) {
			return struct{}{}, row.Scan(&id, &w.id, &w.in, &w.parts, &w.count, &w.digest, &stored)
		}, `
			SELECT s.id, a.id, a.store, a.parts, a.rows, a.digest, a.stored
			  FROM session_archives a
			  JOIN sessions s ON s.tenant_id = a.tenant_id AND s.key = a.session_key
			 WHERE a.tenant_id = $1 AND a.session_key = $2 AND a.state IN ('archived', 'restoring')`,
			key.Tenant, key.Key)
		return err
	}
	if err := read(); err != nil {
		return "", 0, err
	}
	was := w.id
	err = w.expectWhole(ctx)
	if err != nil {
		gone := read() // it was restored or erased meanwhile
		if gone == nil && w.id != was {
			gone = session.ErrNotFound // and archived again
		}
		if gone != nil {
			return "", 0, gone
		}
	}
	return id, stored, err
}

// object is one that something no longer names.
type object struct {
	In     persist.Kind
	Prefix uuid.UUID // the session under whose prefix it lies
	ID     uuid.UUID
}

// forget deletes those of some objects that nothing names any more. What it cannot delete, a collection finds later.
func forget(ctx context.Context, s *postgres.Store, tenant uuid.UUID, objects []object) {
	if len(objects) == 0 {
		return
	}
	prefixes, ids := make([]uuid.UUID, len(objects)), make([]uuid.UUID, len(objects))
	for i := range objects {
		prefixes[i], ids[i] = objects[i].Prefix, objects[i].ID
	}
	named, err := s.NamedObjects(ctx, tenant, prefixes, ids)
	if err != nil {
		return
	}
	for _, o := range objects {
		if !slices.Contains(named, o.ID) {
			_ = s.ResultStores().Forget(ctx, session.Key{Tenant: tenant, Key: o.Prefix}, o.In, []uuid.UUID{o.ID})
		}
	}
}
