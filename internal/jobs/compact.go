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
)

type compactWorker struct {
	river.WorkerDefaults[queue.CompactArgs]
	*compactor.Compactor
	lease *lease
	slots *admit.Gate
}

// Work compacts one session and decides what the outcome means for the job: nothing is retried that cannot succeed,
// and a failure is recorded where the session's owner sees it.
func (w *compactWorker) Work(ctx context.Context, job *river.Job[queue.CompactArgs]) error {
	key := session.Key{Tenant: job.Args.Tenant, Key: job.Args.Session}
	began := time.Now()
	wait, err := w.attempt(ctx, key, job)
	switch {
	case err == nil && wait > 0:
		return river.JobSnooze(wait)
	case err == nil, errors.Is(err, session.ErrNotFound):
		return nil // an erased session needs no compaction
	case errors.Is(err, errNoSlot):
		return river.JobSnooze(feature.SomeSeconds())
	case errors.Is(err, session.ErrStale), errors.Is(err, session.ErrEnded):
		run := session.Run{ID: job.Args.Run, State: session.RunSuperseded}
		if err = w.Store.MarkSuperseded(ctx, key, run, job.ID); err == nil || errors.Is(err, session.ErrNotFound) {
			return nil
		}
	}
	a := postgres.Attempt{Key: key, Run: job.Args.Run, Job: job.ID, Number: job.Attempt}
	return w.fail(ctx, a, err, began)
}

// errNoSlot reports that other jobs of the process were under way for as long as the job had time.
var errNoSlot = errors.New("the process had no slot for the job")

// attempt compacts the session as carefully as its failures demand. A run is not begun before it has its slot in the
// process: if the process dies meanwhile, that is not its fault.
func (w *compactWorker) attempt(ctx context.Context, key session.Key, job *river.Job[queue.CompactArgs]) (
	wait time.Duration, err error,
) {
	rule, err := w.Store.RetryRuleOf(ctx, key, job.Args.Run)
	if err != nil || rule.Wait > 0 {
		return rule.Wait, err
	}
	weight := int64(1)
	if rule.Alone { // it may kill the process
		weight = w.slots.Size()
	}
	slot, err := w.slots.Acquire(ctx, uuid.Nil, weight)
	if err != nil {
		return 0, errNoSlot
	}
	defer slot.Done()
	err = feature.Recovered(func() (err error) {
		wait, err = w.Compact(ctx, key, job.Args.Run, job.ID)
		return err
	})
	return wait, err
}
