package jobs

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

type compactWorker struct {
	river.WorkerDefaults[queue.CompactArgs]
	*compactor.Compactor
}

// recordTimeout bounds how long a failed attempt may take to record its failure.
const recordTimeout = 10 * time.Second

// Work compacts one session and decides what the outcome means for the job: nothing is retried that cannot succeed,
// and a failure is recorded where the session's owner sees it.
func (w *compactWorker) Work(ctx context.Context, job *river.Job[queue.CompactArgs]) error {
	key := session.Key{Tenant: job.Args.Tenant, Key: job.Args.Session}
	var wait time.Duration
	err := recovered(func() (err error) {
		wait, err = w.Compact(ctx, key, job.Args.Run, job.ID)
		return err
	})
	switch {
	case err == nil && wait > 0:
		return river.JobSnooze(wait)
	case err == nil, errors.Is(err, session.ErrNotFound):
		return nil // an erased session needs no compaction
	case errors.Is(err, session.ErrStale), errors.Is(err, session.ErrEnded):
		run := session.Run{ID: job.Args.Run, State: session.RunSuperseded}
		return w.Store.MarkSuperseded(ctx, key, run, job.ID)
	}
	compactor.CountFailure()
	damaged := errors.Is(err, session.ErrDamaged) // which no repetition mends
	postgres.CountDamage(err)
	// The time may be up, or the process may be stopping: the failure is recorded all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	failErr := w.Store.FailRun(ctx, key, job.Args.Run, err.Error(), damaged || job.Attempt >= job.MaxAttempts)
	if errors.Is(failErr, session.ErrNotFound) {
		failErr = nil
	}
	if damaged && failErr == nil {
		return river.JobCancel(err)
	}
	return errors.Join(err, failErr)
}

// recovered calls do and returns a panic as an error, so that it is recorded like one.
func recovered(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return do()
}
