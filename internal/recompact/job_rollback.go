package recompact

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// rolledBackAtOnce is how many sessions of a recompaction are looked up at a time to be rolled back.
const rolledBackAtOnce = 100

// rollbackArgs name a recompaction whose sessions are rolled back.
type rollbackArgs struct {
	Tenant       uuid.UUID `json:"tenant" river:"unique"`
	Recompaction uuid.UUID `json:"recompaction" river:"unique"`
}

// Kind returns the job's name in River's tables.
func (rollbackArgs) Kind() string { return "rollback" }

// InsertOpts allows one live job for each recompaction.
func (rollbackArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{
		Queue: queueName, Priority: queue.LowestPriority, MaxAttempts: deathAttempts, UniqueOpts: queue.OneLive,
	}
}

type rollbackWorker struct {
	river.WorkerDefaults[rollbackArgs]
	*feature.Worker
	store store
	slice time.Duration
}

// Work rolls sessions of a recompaction back until its slice of time is over. Then another job continues. Each session
// is a transaction that writes down that it was done, so a job that takes over from a dead worker does none twice.
func (w *rollbackWorker) Work(ctx context.Context, job *river.Job[rollbackArgs]) error {
	of := Job{Key: session.Key{Tenant: job.Args.Tenant}, Recompaction: job.Args.Recompaction}
	began := time.Now()
	for time.Since(began) < w.slice {
		keys, err := w.store.NextToRollBack(ctx, of.Tenant, of.Recompaction, of.Key.Key, rolledBackAtOnce)
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			return w.store.ContinueRollback(ctx, of, job.ID, false)
		}
		for _, key := range keys {
			of.Key.Key = key
			if err := w.session(ctx, of); err != nil {
				return err
			}
		}
	}
	return w.store.ContinueRollback(ctx, of, job.ID, true)
}

// session rolls one session back. One that fails does not stop the others.
func (w *rollbackWorker) session(ctx context.Context, of Job) error {
	began := time.Now()
	err := w.Thaw(ctx, of.Key)
	if err == nil {
		err = feature.Recovered(func() error { return w.store.RollBackSession(ctx, of) })
	}
	if err == nil {
		w.Trace("rolled back")
		return nil
	}
	if errors.Is(err, session.ErrNotFound) || w.Blameless(ctx, err, began) {
		return err
	}
	w.Log.ErrorContext(ctx, "rollback of a session", "tenant", of.Tenant, "recompaction", of.Recompaction,
		"session_key", of.Key.Key, "error", err)
	reason, _, _ := strings.Cut(err.Error(), "\n") // the lines after it are a stack, which belongs in the log
	return w.store.ExceptFromRollback(ctx, of, reason)
}
