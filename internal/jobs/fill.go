package jobs

import (
	"context"
	"errors"

	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

type fillWorker struct {
	river.WorkerDefaults[queue.FillArgs]
	Store *postgres.Store
}

// Work looks for the next sessions of a recompaction, few enough that it takes next to no time.
func (w *fillWorker) Work(ctx context.Context, job *river.Job[queue.FillArgs]) error {
	err := w.Store.FillRecompaction(ctx, job.Args.Tenant, job.Args.Recompaction, job.ID)
	switch {
	case err == nil, errors.Is(err, session.ErrNotFound):
		return nil
	case job.Attempt < job.MaxAttempts:
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return errors.Join(err, w.Store.FailRecompaction(ctx, job.Args.Tenant, job.Args.Recompaction, err.Error()))
}
