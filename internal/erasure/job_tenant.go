package erasure

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/session"
)

// tenant continues the deletion of a tenant: its sessions, the objects of all of them, its rows, and then its own row
// with the receipt. A legal hold stops it where it is, and it continues when that is lifted.
func (w *Worker) tenant(ctx context.Context, work *Work, until time.Time) error {
	err := w.stepsOfTenant(ctx, work, until)
	if errors.Is(err, session.ErrTenantHeld) || errors.Is(err, session.ErrHeld) {
		return river.JobSnooze(heldWait)
	}
	return err
}

// stepsOfTenant goes through all steps each time: a request or a job of the tenant may have written behind one.
func (w *Worker) stepsOfTenant(ctx context.Context, work *Work, until time.Time) error {
	if done, err := w.sessions(ctx, work, until); err != nil || !done {
		return orSnooze(err, 0)
	}
	if atRest, err := work.atRest(ctx); err != nil || !atRest {
		return orSnooze(err, unfinishedWait)
	}
	if done, err := w.objectsOfTenant(ctx, work, until); err != nil || !done {
		return orSnooze(err, 0)
	}
	if done, err := w.rowsOfTenant(ctx, work, until); err != nil || !done {
		return orSnooze(err, 0)
	}
	if wait := time.Until(work.CreatedAt.Add(w.Settle)); wait > 0 {
		return river.JobSnooze(wait)
	}
	return w.finish(ctx, work, work.finishTenant)
}

// objectsOfTenant erases what a tenant has in result stores.
func (w *Worker) objectsOfTenant(ctx context.Context, work *Work, until time.Time) (done bool, err error) {
	stores, err := w.Store.UsedStores(ctx)
	for _, store := range stores {
		objects, over, failed := w.eraseTenant(ctx, store, work.of(), until)
		if objects > 0 {
			failed = errors.Join(failed, work.store.InTenant(ctx, work.tenant, func(tx pgx.Tx) error {
				return work.countObjects(ctx, tx, objects)
			}))
		}
		if err = errors.Join(err, failed); err != nil || over {
			return false, err
		}
	}
	return err == nil, err
}

// eraseTenant deletes all objects of a tenant in a store, until the time is over.
func (w *Objects) eraseTenant(
	ctx context.Context, store object.Store, tenant uuid.UUID, until time.Time,
) (objects int, over bool, err error) {
	for info, err := range store.List(ctx, tenant.String()) {
		if err == nil {
			err = store.Delete(ctx, info.Name)
		}
		if err != nil {
			return objects, false, err
		}
		objects++
		persist.Collected("erased", 1, info.Size)
		w.Trace("object erased")
		if time.Now().After(until) {
			return objects, true, nil
		}
	}
	return objects, false, nil
}

// rowsOfTenant deletes what a tenant has beside its sessions.
func (w *Worker) rowsOfTenant(ctx context.Context, work *Work, until time.Time) (done bool, err error) {
	for time.Now().Before(until) {
		rows, err := work.eraseRows(ctx, erasedRows)
		if err != nil {
			return false, err
		}
		w.Trace("rows of a tenant erased")
		if rows < erasedRows {
			return true, nil
		}
	}
	return false, nil
}
