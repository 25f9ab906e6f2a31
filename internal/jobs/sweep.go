package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/erasure"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/tier"
)

// The bounds of what one sweep does beyond the sessions that are due, which sets the pace of the rounds: at 30 seconds
// a sweep, a round through ten million sessions takes 17 hours, and one through 100,000 tenants as long. A change of a
// tenant's default is followed faster, but so that the queue is not flooded.
const (
	auditedSessions = 5000
	visitedTenants  = 50
	tasksAtOnce     = 1000

	followedSessions = 20_000 // after changes of defaults
	followedJobs     = 1000   // that they make due
	followedSlice    = 1000

	indexedSessions = 20_000 // whose metadata is written a second time, for filters
	indexedSlice    = 500
)

type sweepWorker struct {
	river.WorkerDefaults[queue.SweepArgs]
	Store       *postgres.Store
	Log         *slog.Logger
	KeepWhole   bool
	RetainEvery time.Duration
	ColdAfter   time.Duration // 0 freezes nothing
	Prunings    []postgres.Pruning
	Duties      []postgres.Duty // of features
}

// Work asks again for what is due and has lost its job, looks after what was written down, and continues with the
// rounds. Its cost is that of what there is to do, not of what is stored. A failure of one part does not keep it from
// the others.
func (w *sweepWorker) Work(ctx context.Context, _ *river.Job[queue.SweepArgs]) error {
	inserted, err := w.Store.Sweep(ctx)
	if inserted > 0 {
		w.Log.WarnContext(ctx, "sessions over their trigger had no job", "sessions", inserted)
	}
	failed := []error{err}
	for _, duty := range w.Duties {
		failed = append(failed, w.each(ctx, duty))
	}
	return errors.Join(errors.Join(failed...), queue.PromoteOld(ctx, w.Store.Pool()),
		w.each(ctx, erasure.Duty(w.Store, w.Log)),
		w.each(ctx, tier.Duty(w.Store, w.Log)),
		w.followPolicies(ctx), w.indexMetadata(ctx), w.audit(ctx), w.retain(ctx), w.visit(ctx))
}

// each does a duty for the tenants that have its task.
func (w *sweepWorker) each(ctx context.Context, duty postgres.Duty) error {
	tasks, err := w.Store.TasksOf(ctx, duty, tasksAtOnce)
	failed := []error{err}
	for _, c := range tasks {
		if err = duty.Do(ctx, c.Tenant); err == nil {
			err = w.Store.EndTaskUnless(ctx, c, duty.Needed)
		}
		failed = append(failed, ofTenant(c.Tenant, err))
	}
	return errors.Join(failed...)
}

func ofTenant(tenant uuid.UUID, err error) error {
	if err != nil {
		err = fmt.Errorf("tenant %s: %w", tenant, err)
	}
	return err
}

// followPolicies asks for the compaction of sessions that another default of their tenant makes due, tenants in turn.
func (w *sweepWorker) followPolicies(ctx context.Context) error {
	inserted := 0
	return w.inTurn(ctx, postgres.TaskPolicy, followedSessions, func(c postgres.Task) (int, bool, error) {
		if _, err := w.Store.MergePolicies(ctx, c.Tenant); err != nil {
			return 0, inserted < followedJobs, err
		}
		looked, jobs, err := w.Store.AuditTenant(ctx, c, followedSlice)
		inserted += jobs
		return looked, inserted < followedJobs, err
	})
}

// inTurn does a slice of a kind of task for each tenant that has it, again and again until there is none, this many
// sessions were looked at or do says that there is enough. A tenant that fails is left to the next sweep.
func (w *sweepWorker) inTurn(
	ctx context.Context, kind postgres.TaskKind, sessions int,
	do func(c postgres.Task) (looked int, more bool, err error),
) error {
	failed := map[uuid.UUID]error{}
	for more := true; more && sessions > 0; {
		tasks, err := w.Store.Tasks(ctx, kind, tasksAtOnce)
		if err != nil {
			return errors.Join(append(slices.Collect(maps.Values(failed)), err)...)
		}
		done := 0
		for _, c := range tasks {
			if failed[c.Tenant] != nil {
				continue
			}
			var looked int
			if looked, more, err = do(c); err != nil {
				failed[c.Tenant] = ofTenant(c.Tenant, err)
			}
			sessions -= max(looked, 1)
			done++
		}
		if done == 0 {
			break
		}
	}
	return errors.Join(slices.Collect(maps.Values(failed))...)
}

// indexMetadata writes the pairs of metadata of sessions that are older than the table of them, tenants in turn.
func (w *sweepWorker) indexMetadata(ctx context.Context) error {
	return w.inTurn(ctx, postgres.TaskMetadata, indexedSessions, func(c postgres.Task) (int, bool, error) {
		looked, err := w.Store.IndexMetadata(ctx, c, indexedSlice)
		return looked, true, err
	})
}

// audit finds what is due and was not written down.
func (w *sweepWorker) audit(ctx context.Context) error {
	inserted, err := w.Store.AuditNext(ctx, auditedSessions, visitedTenants)
	if inserted > 0 {
		w.Log.WarnContext(ctx, "sessions over their trigger were not known to be due", "sessions", inserted)
	}
	return err
}

// archivedAtOnce bounds how many expired sessions of a tenant one sweep begins to archive.
const archivedAtOnce = 1000

// retain begins to erase or archive expired sessions of the tenants in which nobody has looked for a while.
func (w *sweepWorker) retain(ctx context.Context) error {
	tenants, err := w.Store.TenantsToLookAt(ctx, w.RetainEvery, tasksAtOnce)
	failed := []error{err}
	for _, tenant := range tenants {
		begun, err := w.Store.EraseExpired(ctx, tenant)
		failed = append(failed, ofTenant(tenant, err))
		if begun {
			w.Log.InfoContext(ctx, "sessions of a tenant have expired", "tenant", tenant)
		}
		archived, err := w.Store.ArchiveExpired(ctx, tenant, archivedAtOnce, tier.Begin)
		failed = append(failed, ofTenant(tenant, err))
		if archived > 0 {
			w.Log.InfoContext(ctx, "expired sessions of a tenant are archived", "tenant", tenant, "sessions", archived)
		}
	}
	return errors.Join(failed...)
}

// frozenAtOnce bounds how many sessions wait for the worker that freezes them, and how many of a tenant one sweep adds
// to them if others are in turn, too: they are hidden meanwhile, and whoever uses one brings it back.
const frozenAtOnce = 1000

// freeze begins to freeze sessions of some tenants that have slept long enough. It pauses while the store is away that
// they are put into.
func (w *sweepWorker) freeze(ctx context.Context, tenants []uuid.UUID) error {
	if w.ColdAfter <= 0 || len(tenants) == 0 {
		return nil
	}
	waiting, failing, err := queue.Archiving(ctx, w.Store.Pool())
	if err != nil {
		return err
	}
	if failing > 0 {
		w.Log.WarnContext(ctx, "no more sessions are frozen: what is to freeze them has failed and is tried again",
			"failing", failing)
		return nil
	}
	failed := []error{}
	for i, tenant := range tenants {
		share := (frozenAtOnce - waiting) / (len(tenants) - i)
		if share <= 0 {
			continue
		}
		begun, err := tier.FreezeSleeping(ctx, w.Store, tenant, w.ColdAfter, share)
		failed = append(failed, ofTenant(tenant, err))
		waiting += begun
		if begun > 0 {
			w.Log.InfoContext(ctx, "sessions of a tenant sleep and are frozen", "tenant", tenant, "sessions", begun)
		}
	}
	return errors.Join(failed...)
}

// visit freezes, prunes, packs and finds lost runs for the next tenants.
func (w *sweepWorker) visit(ctx context.Context) error {
	tenants, err := w.Store.NextTenants(ctx, visitedTenants)
	failed := []error{err, w.freeze(ctx, tenants)}
	for _, tenant := range tenants {
		if !w.KeepWhole {
			_, err := w.Store.RequeueOffloads(ctx, tenant)
			failed = append(failed, ofTenant(tenant, err))
		}
		lost, err := w.Store.RequeueRuns(ctx, tenant)
		if lost > 0 {
			w.Log.WarnContext(ctx, "runs had lost their job", "tenant", tenant, "runs", lost)
		}
		failed = append(failed, ofTenant(tenant, err))
		failed = append(failed, ofTenant(tenant, w.Store.Prune(ctx, tenant, w.Prunings...)))
	}
	failed = append(failed, w.Store.Prune(ctx, uuid.Nil)) // Idempotency-Keys of operators
	return errors.Join(failed...)
}
