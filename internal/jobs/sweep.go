package jobs

import (
	"context"

	"github.com/riverqueue/river"
)

// SweepArgs are the arguments of the sweep: none.
type SweepArgs struct{}

// Kind is the job's name in River's tables.
func (SweepArgs) Kind() string { return "sweep" }

// InsertOpts allows one live sweep.
func (SweepArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: maintenanceQueue, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: live}}
}

type sweepWorker struct {
	river.WorkerDefaults[SweepArgs]
	Config
}

// Work goes tenant by tenant, because row-level security shows no more than one at a time.
func (w *sweepWorker) Work(ctx context.Context, _ *river.Job[SweepArgs]) error {
	tenants, err := w.Store.Tenants(ctx)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		inserted, err := w.Store.Sweep(ctx, tenant.ID)
		if err != nil {
			return err
		}
		if inserted > 0 {
			w.Log.WarnContext(ctx, "sessions over their trigger had no job", "tenant", tenant.ID, "sessions", inserted)
		}
		if err := w.Store.ForgetIdempotency(ctx, tenant.ID); err != nil {
			return err
		}
	}
	return nil
}
