package jobs

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/session"
)

// FillArgs name a recompaction whose sessions are looked for.
type FillArgs struct {
	Tenant       uuid.UUID `json:"tenant" river:"unique"`
	Recompaction uuid.UUID `json:"recompaction" river:"unique"`
}

// Kind is the job's name in River's tables.
func (FillArgs) Kind() string { return "recompaction_fill" }

// InsertOpts allows one live job for each recompaction.
func (FillArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: recompactionQueue, MaxAttempts: fillAttempts, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: live}}
}

type fillWorker struct {
	river.WorkerDefaults[FillArgs]
	Config
}

// Work looks for the next sessions of a recompaction, so many that it takes no time to speak of.
func (w *fillWorker) Work(ctx context.Context, job *river.Job[FillArgs]) error {
	err := w.Store.FillRecompaction(ctx, job.Args.Tenant, job.Args.Recompaction, completion(job))
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
