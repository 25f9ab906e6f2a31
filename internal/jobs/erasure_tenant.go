package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// tenant continues the deletion of a tenant: its sessions, the objects of all of them, its rows, and then its own row
// with the receipt. A legal hold stops it where it is, and it continues when that is lifted.
func (w *erasureWorker) tenant(ctx context.Context, work postgres.ErasureWork, until time.Time) error {
	err := w.stepsOfTenant(ctx, work, until)
	if errors.Is(err, session.ErrTenantHeld) || errors.Is(err, session.ErrHeld) {
		return river.JobSnooze(heldWait)
	}
	return err
}

// stepsOfTenant goes through all steps each time: a request or a job of the tenant may have written behind one.
func (w *erasureWorker) stepsOfTenant(ctx context.Context, work postgres.ErasureWork, until time.Time) error {
	if done, err := w.sessions(ctx, work, until); err != nil || !done {
		return orSnooze(err, 0)
	}
	if atRest, err := w.Store.TenantAtRest(ctx, work); err != nil || !atRest {
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
	return w.finish(ctx, work, w.Store.FinishTenant)
}

// objectsOfTenant erases what a tenant has in result stores.
func (w *erasureWorker) objectsOfTenant(
	ctx context.Context, work postgres.ErasureWork, until time.Time,
) (done bool, err error) {
	stores, err := usedStores(ctx, w.Store)
	for _, store := range stores {
		objects, over, failed := w.Objects.eraseTenant(ctx, store, work.Of(), until)
		if objects > 0 {
			failed = errors.Join(failed, w.Store.CountObjects(ctx, work, objects))
		}
		if err = errors.Join(err, failed); err != nil || over {
			return false, err
		}
	}
	return err == nil, err
}

// eraseTenant deletes all objects of a tenant in a store, until the time is over.
func (w *eraseWorker) eraseTenant(
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
		collectedTotal.WithLabelValues("erased").Inc()
		collectedBytes.WithLabelValues("erased").Add(float64(info.Size))
		w.Trace("object erased")
		if time.Now().After(until) {
			return objects, true, nil
		}
	}
	return objects, false, nil
}

// rowsOfTenant deletes what a tenant has beside its sessions.
func (w *erasureWorker) rowsOfTenant(
	ctx context.Context, work postgres.ErasureWork, until time.Time,
) (done bool, err error) {
	for time.Now().Before(until) {
		rows, err := w.Store.EraseRows(ctx, work, erasedRows)
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
