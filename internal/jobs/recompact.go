package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
)

// stalePlans bounds how often a session is planned again because another compaction was first.
const stalePlans = 5

type recompactWorker struct {
	river.WorkerDefaults[queue.RecompactArgs]
	*compactor.Compactor
	Thawer *tier.Thawer
	lease  *lease
	slots  *admit.Gate
}

// Work compacts one session of a recompaction from its log. Whatever the outcome, the recompaction continues: a session
// that fails is recorded in the transaction that lets the next one begin.
func (w *recompactWorker) Work(ctx context.Context, job *river.Job[queue.RecompactArgs]) error {
	of := postgres.RecompactionJob{
		Key: session.Key{Tenant: job.Args.Tenant, Key: job.Args.Session}, Recompaction: job.Args.Recompaction,
	}
	began := time.Now()
	slot, err := w.slots.Acquire(ctx, uuid.Nil, 1)
	if err != nil {
		return river.JobSnooze(someSeconds())
	}
	defer slot.Done()
	err = feature.Recovered(func() error { return w.attempt(ctx, of, job.ID) })
	if err == nil || w.lease.classOf(ctx, err, began) == session.FailureInfrastructure {
		return err // done, or the job is tried again: not the session failed
	}
	if !errors.Is(err, session.ErrNotFound) && !errors.Is(err, session.ErrEnded) {
		w.Log.ErrorContext(ctx, "recompaction of a session", "tenant", of.Tenant, "recompaction", of.Recompaction,
			"session_key", of.Key.Key, "error", err)
	}
	ctx, cancel := feature.Recording(ctx)
	defer cancel()
	return w.Store.EndRecompaction(ctx, of, err, job.ID)
}

// attempt tries until no other compaction of the session is first.
func (w *recompactWorker) attempt(ctx context.Context, of postgres.RecompactionJob, job int64) error {
	if err := w.Thawer.Read(ctx, of.Key); err != nil {
		return err
	}
	work, err := w.Store.StartRecompaction(ctx, of)
	if err != nil {
		return err
	}
	for range stalePlans {
		if err = w.Recompact(ctx, of, work, job); !errors.Is(err, session.ErrStale) {
			return err
		}
	}
	return err
}

type fillWorker struct {
	river.WorkerDefaults[queue.FillArgs]
	Store *postgres.Store
}

// Work looks for the next sessions of a recompaction, few enough that it takes next to no time, or lets the next ones
// begin.
func (w *fillWorker) Work(ctx context.Context, job *river.Job[queue.FillArgs]) error {
	err := w.Store.FillRecompaction(ctx, job.Args.Tenant, job.Args.Recompaction, job.ID)
	switch {
	case err == nil, errors.Is(err, session.ErrNotFound):
		return nil
	case job.Attempt < job.MaxAttempts:
		return err
	}
	ctx, cancel := feature.Recording(ctx)
	defer cancel()
	return errors.Join(err, w.Store.FailRecompaction(ctx, job.Args.Tenant, job.Args.Recompaction, err.Error()))
}
