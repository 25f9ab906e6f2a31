package cells

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// objectsMark is the name of the mark that says which objects the destination has; no table has such a name.
const objectsMark = "(objects)"

// outsideObject is an object that lies outside of PostgreSQL.
type outsideObject struct {
	Session uuid.UUID // whose name it has
	ID      uuid.UUID
	Store   persist.Kind
	Size    int64 // up to the end of what a row names
}

// namedSQL are the objects that rows of a tenant name which are not older than a transaction, $2, or all for NULL.
const namedSQL = `
	SELECT coalesce(b.objects_in, b.session_key), c.object, b.store, max(c.object_at + c.object_size)
	  FROM result_chunks c
	  JOIN result_bodies b ON b.tenant_id = c.tenant_id AND b.session_key = c.session_key AND b.id = c.body_id
	 WHERE c.tenant_id = $1 AND c.object IS NOT NULL
	 GROUP BY 1, 2, 3
	HAVING $2::text IS NULL OR bool_or(age(c.xmin) <= age($2::text::xid8::xid))
	 UNION ALL
	SELECT p.session_key, p.object, a.store, p.size + coalesce(p.view_size, 0)
	  FROM archive_parts p
	  JOIN session_archives a ON a.tenant_id = p.tenant_id AND a.session_key = p.session_key
	 WHERE p.tenant_id = $1 AND p.object IS NOT NULL AND ($2::text IS NULL OR age(p.xmin) <= age($2::text::xid8::xid))
	 UNION ALL
	SELECT DISTINCT coalesce(p.objects_in, p.session_key), p.object, p.store, p.object_size
	  FROM message_packs p
	 WHERE p.tenant_id = $1 AND p.object IS NOT NULL AND ($2::text IS NULL OR age(p.xmin) <= age($2::text::xid8::xid))
	 UNION ALL
	SELECT session_key, object, store, stored
	  FROM session_archives
	 WHERE tenant_id = $1 AND object IS NOT NULL AND ($2::text IS NULL OR age(xmin) <= age($2::text::xid8::xid))`

// copyObjects copies the objects that are named and that the destination lacks. They are listed first, at 48 bytes
// each: no transaction is open while a store is asked.
func (r *mover) copyObjects(ctx context.Context) error {
	before, err := r.mark(ctx, r.To.Pool(), objectsMark)
	if err != nil {
		return err
	}
	var since *string
	if before != nil {
		since = &before.Since
	}
	objects, now, err := r.objectsSince(ctx, since)
	if err != nil {
		return err
	}
	if err := r.copyEach(ctx, objects); err != nil {
		return err
	}
	if r.done.Objects += len(objects); len(objects) > 0 {
		r.say("%d objects", len(objects))
	}
	r.step("copied objects")
	return pgx.BeginFunc(ctx, r.To.Pool(), func(tx pgx.Tx) error {
		return noteMark(ctx, tx, r.Tenant, objectsMark, &mark{Since: now})
	})
}

// removeUnnamed deletes the objects of the destination that the source no longer names: they have been erased
// since they were copied. What is at the destination is listed first, so that nothing is deleted that is named and
// copied later.
func (r *mover) removeUnnamed(ctx context.Context) error {
	for _, to := range r.To.ResultStores().Outside {
		unnamed := map[string]bool{}
		for found, err := range to.List(ctx, r.Tenant.String()) {
			if err != nil {
				return err
			}
			unnamed[found.Name] = true
		}
		objects, _, err := r.objectsSince(ctx, nil)
		if err != nil {
			return err
		}
		for _, o := range objects {
			delete(unnamed, persist.ObjectName(session.Key{Tenant: r.Tenant, Key: o.Session}, o.ID))
		}
		for name := range unnamed {
			if err := to.Delete(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// objectsSince lists objects, all for a since of nil, and says from which transaction on others are to be listed later.
func (r *mover) objectsSince(ctx context.Context, since *string) (objects []outsideObject, now string, err error) {
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, r.From.Pool(), snapshot, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `SELECT pg_snapshot_xmin(pg_current_snapshot())::text`).Scan(&now)
		if err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, namedSQL, r.Tenant, since)
		objects, err = pgx.CollectRows(rows, pgx.RowToStructByPos[outsideObject])
		return err
	})
	return objects, now, err
}

// together is how many objects are copied at once.
const together = 8

func (r *mover) copyEach(ctx context.Context, objects []outsideObject) error {
	if len(objects) == 0 {
		return nil
	}
	to, err := r.To.ResultStores().Store(r.outside())
	if err != nil {
		return fmt.Errorf("%w: results of the tenant lie outside of PostgreSQL, and the destination has no result "+
			"store: name it with --to-results", ErrRefused)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(together)
	for _, o := range objects {
		group.Go(func() error { return r.copyObject(ctx, to, o) })
	}
	return group.Wait()
}

// copyObject copies one object and reads the copy back.
func (r *mover) copyObject(ctx context.Context, to object.Store, o outsideObject) error {
	from, err := r.From.ResultStores().Store(o.Store)
	if err != nil {
		return err
	}
	name := persist.ObjectName(session.Key{Tenant: r.Tenant, Key: o.Session}, o.ID)
	body, err := from.Get(ctx, name, 0, int(o.Size))
	if errors.Is(err, object.ErrMissing) {
		return r.missing(ctx, name, o)
	}
	if err != nil {
		return err
	}
	if int64(len(body)) != o.Size {
		return fmt.Errorf("%w: %s has %d bytes of the object %s, not %d: run varve verify", ErrRefused, from, len(body),
			name, o.Size)
	}
	if err := to.Put(ctx, name, body); err != nil {
		return err
	}
	copied, err := to.Get(ctx, name, 0, len(body)+1)
	if err != nil {
		return err
	}
	want, got := sha256.Sum256(body), sha256.Sum256(copied)
	if !bytes.Equal(want[:], got[:]) {
		return fmt.Errorf("%w: the object %s at %s has the SHA-256 %x, not %x", ErrDiffers, name, to, got, want)
	}
	return nil
}

// missing returns an error if an object is gone that a row still names: else its row is gone, too.
func (r *mover) missing(ctx context.Context, name string, o outsideObject) error {
	var named []uuid.UUID
	err := postgres.InTenant(ctx, r.From.Pool(), r.Tenant, pgx.TxOptions{}, func(tx pgx.Tx) (err error) {
		named, err = persist.Named(ctx, tx, r.Tenant, []uuid.UUID{o.Session}, []uuid.UUID{o.ID})
		return err
	})
	if err == nil && len(named) > 0 {
		err = fmt.Errorf("%w: the source's result store lacks the object %s: run varve verify", ErrRefused, name)
	}
	return err
}
