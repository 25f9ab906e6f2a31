package erasure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// Objects erases what sessions had outside the database.
type Objects struct {
	Store *postgres.Store
	Log   *slog.Logger
	Trace func(step string)
}

// ObjectsWorker erases what a session had outside the database in a job of its own, which programs from before there
// were erasures have inserted. It is completed once nothing is left.
type ObjectsWorker struct {
	river.WorkerDefaults[queue.EraseArgs]
	Objects
}

// Work deletes all objects below the session's prefix that no fork of it has, in every store. It returns an error
// unless they are gone.
func (w *ObjectsWorker) Work(ctx context.Context, job *river.Job[queue.EraseArgs]) error {
	key := session.Key{Tenant: job.Args.Tenant, Key: job.Args.Session}
	erased, err := w.Store.IsErased(ctx, key)
	if err != nil {
		return err
	}
	if !erased {
		return river.JobCancel(fmt.Errorf("session %s is there: nothing of it is erased", key.Key))
	}
	objects, err := w.eraseBelow(ctx, key, 0)
	if err == nil {
		w.Log.InfoContext(ctx, "erased the objects of a session",
			"tenant", key.Tenant, "key", key.Key, "objects", objects)
	}
	return err
}

// eraseBelow deletes the objects below a session's prefix that no row names, in every store, but those that are younger
// than spared.
func (w *Objects) eraseBelow(ctx context.Context, key session.Key, spared time.Duration) (objects int, err error) {
	stores, err := w.Store.UsedStores(ctx)
	failed := []error{err}
	for _, store := range stores {
		n, err := w.erase(ctx, store, key, spared)
		objects += n
		failed = append(failed, err)
	}
	return objects, errors.Join(failed...)
}

// erase deletes what eraseBelow does from one store, and looks again until there is nothing.
func (w *Objects) erase(
	ctx context.Context, store object.Store, key session.Key, spared time.Duration,
) (objects int, err error) {
	for {
		waste, err := w.waste(ctx, store, key, spared)
		if err != nil || len(waste) == 0 {
			return objects, err
		}
		for _, info := range waste {
			if err := store.Delete(ctx, info.Name); err != nil {
				return objects, err
			}
			objects++
			persist.Collected("erased", 1, info.Size)
			w.Trace("object erased")
		}
	}
}

// waste lists the objects below a session's prefix that no row names, but those that are younger than spared.
func (w *Objects) waste(
	ctx context.Context, store object.Store, key session.Key, spared time.Duration,
) (waste []object.Info, err error) {
	var found []object.Info
	var ids []uuid.UUID
	for info, err := range store.List(ctx, persist.Prefix(key)) {
		if err != nil {
			return nil, err
		}
		if time.Since(info.Modified) < spared {
			continue
		}
		found = append(found, info)
		if _, id, ok := persist.ObjectOf(info.Name); ok {
			ids = append(ids, id)
		}
	}
	named, err := w.Store.NamedObjects(ctx, key.Tenant, []uuid.UUID{key.Key}, ids)
	if err != nil {
		return nil, err
	}
	for _, info := range found {
		if _, id, ok := persist.ObjectOf(info.Name); ok && slices.Contains(named, id) &&
			info.Name == persist.ObjectName(key, id) {
			continue
		}
		waste = append(waste, info)
	}
	return waste, nil
}
