package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
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

// The counters of this process's collections.
var (
	collectedTotal = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "varve_results_collected_total",
		Help: "Bodies that nothing named, objects that no row named (orphan) and those of erased sessions (erased).",
	}, []string{"kind"})
	collectedBytes = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "varve_results_collected_bytes_total", Help: "Stored bytes of what was collected.",
	}, []string{"kind"})
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
	stores, err := usedStores(ctx, w.Store)
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
	collectedTotal.WithLabelValues("body").Add(float64(bodies))
	collectedBytes.WithLabelValues("body").Add(float64(bytes))
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
		collectedTotal.WithLabelValues("orphan").Inc()
		collectedBytes.WithLabelValues("orphan").Add(float64(o.Size))
		w.Log.InfoContext(ctx, "collected an object that no row named", "store", store.String(), "object", o.Name)
		w.Trace("orphan deleted")
	}
	return nil
}

// usedStores returns the stores outside that the database has used. The error names those that are not set up; the
// others are returned nevertheless.
func usedStores(ctx context.Context, from *postgres.Store) (stores []object.Store, err error) {
	used, err := from.UsedResultStores(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(used)
	var failed []error
	for _, kind := range used {
		store, err := from.ResultStores().Store(kind)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		stores = append(stores, store)
	}
	return stores, errors.Join(failed...)
}

// eraseWorker erases what a session had outside the database: for an erasure, and in jobs of its own, which programs
// from before there were erasures have inserted. Such a job is completed once nothing is left.
type eraseWorker struct {
	river.WorkerDefaults[queue.EraseArgs]
	Store *postgres.Store
	Log   *slog.Logger
	Trace func(step string)
}

// Work deletes all objects below the session's prefix that no fork of it has, in every store. It returns an error
// unless they are gone.
func (w *eraseWorker) Work(ctx context.Context, job *river.Job[queue.EraseArgs]) error {
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
func (w *eraseWorker) eraseBelow(
	ctx context.Context, key session.Key, spared time.Duration,
) (objects int, err error) {
	stores, err := usedStores(ctx, w.Store)
	failed := []error{err}
	for _, store := range stores {
		n, err := w.erase(ctx, store, key, spared)
		objects += n
		failed = append(failed, err)
	}
	return objects, errors.Join(failed...)
}

// erase deletes what eraseBelow does from one store, and looks again until there is nothing.
func (w *eraseWorker) erase(
	ctx context.Context, store object.Store, key session.Key, spared time.Duration,
) (objects int, err error) {
	for {
		names, err := w.waste(ctx, store, key, spared)
		if err != nil || len(names) == 0 {
			return objects, err
		}
		for _, name := range names {
			if err := store.Delete(ctx, name); err != nil {
				return objects, err
			}
			objects++
			w.Trace("object erased")
		}
		collectedTotal.WithLabelValues("erased").Add(float64(len(names)))
	}
}

// waste lists the objects below a session's prefix that no row names, but those that are younger than spared.
func (w *eraseWorker) waste(
	ctx context.Context, store object.Store, key session.Key, spared time.Duration,
) (names []string, err error) {
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
		names = append(names, info.Name)
		collectedBytes.WithLabelValues("erased").Add(float64(info.Size))
	}
	return names, nil
}
