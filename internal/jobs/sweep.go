package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
)

type sweepWorker struct {
	river.WorkerDefaults[queue.SweepArgs]
	Store     *postgres.Store
	Log       *slog.Logger
	KeepWhole bool
}

// Work sweeps one tenant after another, because row-level security shows only one at a time, in random order, so that
// none is last every time. A failure for one tenant does not keep it from the others.
func (w *sweepWorker) Work(ctx context.Context, _ *river.Job[queue.SweepArgs]) error {
	tenants, err := w.Store.Tenants(ctx)
	if err != nil {
		return err
	}
	failed := []error{queue.HurryOld(ctx, w.Store.Pool())}
	for _, i := range rand.Perm(len(tenants)) {
		if err := w.sweep(ctx, tenants[i].ID); err != nil {
			failed = append(failed, fmt.Errorf("tenant %s: %w", tenants[i].ID, err))
		}
	}
	return errors.Join(failed...)
}

func (w *sweepWorker) sweep(ctx context.Context, tenant uuid.UUID) error {
	inserted, err := w.Store.Sweep(ctx, tenant)
	if inserted > 0 {
		w.Log.WarnContext(ctx, "sessions over their trigger had no job", "tenant", tenant, "sessions", inserted)
	}
	lost, requeueErr := w.Store.RequeueRecompactions(ctx, tenant)
	if lost > 0 {
		w.Log.WarnContext(ctx, "sessions of a recompaction had lost their job", "tenant", tenant, "sessions", lost)
	}
	lost, replayErr := w.Store.RequeueReplays(ctx, tenant)
	if lost > 0 {
		w.Log.WarnContext(ctx, "a replay had lost its job", "tenant", tenant)
	}
	var offloadErr error
	if !w.KeepWhole {
		_, offloadErr = w.Store.RequeueOffloads(ctx, tenant)
	}
	return errors.Join(err, requeueErr, replayErr, offloadErr, w.Store.Prune(ctx, tenant))
}
