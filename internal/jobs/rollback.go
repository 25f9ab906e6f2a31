package jobs

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
)

// rolledBackAtOnce is how many sessions of a recompaction are looked up at a time to be rolled back.
const rolledBackAtOnce = 100

type rollbackWorker struct {
	river.WorkerDefaults[queue.RollbackArgs]
	Store  *postgres.Store
	Thawer *tier.Thawer
	Log    *slog.Logger
	Trace  func(step string)
	Slice  time.Duration
	lease  *lease
}

// Work rolls sessions of a recompaction back until its slice of time is over. Then another job continues. Each session
// is a transaction that writes down that it was done, so a job that takes over from a dead worker does none twice.
func (w *rollbackWorker) Work(ctx context.Context, job *river.Job[queue.RollbackArgs]) error {
	of := postgres.RecompactionJob{
		Key: session.Key{Tenant: job.Args.Tenant}, Recompaction: job.Args.Recompaction,
	}
	began := time.Now()
	for time.Since(began) < w.Slice {
		keys, err := w.Store.NextToRollBack(ctx, of.Tenant, of.Recompaction, of.Key.Key, rolledBackAtOnce)
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			return w.Store.ContinueRollback(ctx, of, job.ID, false)
		}
		for _, key := range keys {
			of.Key.Key = key
			if err := w.session(ctx, of); err != nil {
				return err
			}
		}
	}
	return w.Store.ContinueRollback(ctx, of, job.ID, true)
}

// session rolls one session back. One that fails does not stop the others.
func (w *rollbackWorker) session(ctx context.Context, of postgres.RecompactionJob) error {
	began := time.Now()
	err := w.Thawer.Read(ctx, of.Key)
	if err == nil {
		err = feature.Recovered(func() error { return w.Store.RollBackSession(ctx, of) })
	}
	if err == nil {
		w.Trace("rolled back")
		return nil
	}
	if errors.Is(err, session.ErrNotFound) || w.lease.classOf(ctx, err, began) == session.FailureInfrastructure {
		return err
	}
	w.Log.ErrorContext(ctx, "rollback of a session", "tenant", of.Tenant, "recompaction", of.Recompaction,
		"session_key", of.Key.Key, "error", err)
	reason, _, _ := strings.Cut(err.Error(), "\n") // the lines after it are a stack, which belongs in the log
	return w.Store.ExceptFromRollback(ctx, of, reason)
}
