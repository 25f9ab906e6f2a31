package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

const (
	// collectEvery is how often waste is looked for.
	collectEvery = time.Hour

	// collectTimeout bounds one collection: a list of a large store takes long.
	collectTimeout = 50 * time.Minute

	// collectBatch is how many bodies one transaction deletes, and objectBatch how many objects one asks for.
	collectBatch = 100
	objectBatch  = 500
)

// Collection deletes what nothing names: first bodies, then objects that no row names, because a process that was
// killed put them and did not commit, or deleted their rows and not them. It may be killed at any time.
type Collection struct {
	Store *postgres.Store
	Log   *slog.Logger
	Grace time.Duration // how old waste must be
	Trace func(step string)
}

// Run collects the bodies of one tenant after another, and then the orphans of each store. A failure does not keep it
// from the rest.
func (w *Collection) Run(ctx context.Context) error {
	tenants, err := w.Store.Tenants(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, i := range rand.Perm(len(tenants)) {
		if err := w.collect(ctx, tenants[i].ID); err != nil {
			failed = append(failed, fmt.Errorf("tenant %s: %w", tenants[i].ID, err))
		}
	}
	stores, err := w.Store.UsedStores(ctx)
	failed = append(failed, err)
	for _, store := range stores {
		failed = append(failed, w.orphans(ctx, store))
	}
	return errors.Join(failed...)
}

type collectWorker struct {
	river.WorkerDefaults[queue.CollectArgs]
	Collection
}

// Timeout bounds one collection.
func (w *collectWorker) Timeout(*river.Job[queue.CollectArgs]) time.Duration { return collectTimeout }

// Work runs one collection.
func (w *collectWorker) Work(ctx context.Context, _ *river.Job[queue.CollectArgs]) error {
	return w.Run(ctx)
}

// collect deletes the bodies of a tenant that nothing names.
func (w *Collection) collect(ctx context.Context, tenant uuid.UUID) error {
	var failed []error
	bodies, bytes := 0, int64(0)
	for {
		waste, err := w.Store.CollectBodies(ctx, tenant, w.Grace, collectBatch)
		if err != nil {
			return errors.Join(append(failed, err)...)
		}
		if len(waste) > 0 {
			w.Trace("rows deleted")
		}
		for _, b := range waste {
			failed = append(failed, w.Store.ForgetUnnamed(ctx, b.Key, b.Store, b.Objects))
			bodies++
			bytes += b.Bytes
			w.Trace("objects deleted")
		}
		if len(waste) < collectBatch {
			break
		}
	}
	persist.Collected("body", bodies, bytes)
	if bodies > 0 {
		w.Log.InfoContext(ctx, "collected bodies that nothing named",
			"tenant", tenant, "bodies", bodies, "bytes", bytes)
	}
	return errors.Join(failed...)
}

// orphans deletes the objects of a store that no row names and that are older than the grace period.
func (w *Collection) orphans(ctx context.Context, store object.Store) error {
	var batch []listed
	for info, err := range store.List(ctx, "") {
		if err != nil {
			return err
		}
		found := listed{Info: info}
		var ok bool
		if found.key, found.id, ok = persist.ObjectOf(info.Name); !ok || time.Since(info.Modified) < w.Grace {
			continue
		}
		batch = append(batch, found)
		if len(batch) == objectBatch {
			if err := w.deleteOrphans(ctx, store, batch); err != nil {
				return err
			}
			batch = nil
		}
	}
	return w.deleteOrphans(ctx, store, batch)
}

// listed is an object of a list, and what its name says.
type listed struct {
	object.Info
	key session.Key
	id  uuid.UUID
}

// deleteOrphans deletes those of some objects that no row names.
func (w *Collection) deleteOrphans(ctx context.Context, store object.Store, batch []listed) error {
	ids, prefixes := map[uuid.UUID][]uuid.UUID{}, map[uuid.UUID][]uuid.UUID{} // by tenant
	for i := range batch {
		of := batch[i].key
		ids[of.Tenant], prefixes[of.Tenant] = append(ids[of.Tenant], batch[i].id), append(prefixes[of.Tenant], of.Key)
	}
	named := map[string]bool{} // tenant and object
	for tenant, objects := range ids {
		found, err := w.Store.NamedObjects(ctx, tenant, prefixes[tenant], objects)
		if err != nil {
			return err
		}
		for _, id := range found {
			named[tenant.String()+id.String()] = true
		}
	}
	for i := range batch {
		o := &batch[i]
		if named[o.key.Tenant.String()+o.id.String()] && o.Name == persist.ObjectName(o.key, o.id) {
			continue
		}
		if err := store.Delete(ctx, o.Name); err != nil {
			return err
		}
		persist.Collected("orphan", 1, o.Size)
		w.Log.InfoContext(ctx, "collected an object that no row named", "store", store.String(), "object", o.Name)
		w.Trace("orphan deleted")
	}
	return nil
}
