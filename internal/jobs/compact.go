package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

type compactWorker struct {
	river.WorkerDefaults[queue.CompactArgs]
	Config
}

// recordTimeout bounds how long a failed attempt may take to say so.
const recordTimeout = 10 * time.Second

// Work runs one compaction and decides what its end means for the job: nothing is retried that cannot succeed, and a
// failure is recorded where the session's owner sees it.
func (w *compactWorker) Work(ctx context.Context, job *river.Job[queue.CompactArgs]) error {
	key := session.Key{Tenant: job.Args.Tenant, Key: job.Args.Session}
	err := w.attempt(ctx, key, job)
	var snooze *rivertype.JobSnoozeError
	switch {
	case err == nil, errors.Is(err, session.ErrNotFound):
		return nil // an erased session needs no compaction
	case errors.As(err, &snooze):
		return err
	case errors.Is(err, session.ErrStale), errors.Is(err, session.ErrEnded):
		run := session.Run{ID: job.Args.Run, State: session.RunSuperseded}
		return w.Store.MarkSuperseded(ctx, key, run, job.ID)
	}
	compactor.CountFailure()
	// The time may be up, or the process stops: what failed is recorded all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	failErr := w.Store.FailRun(ctx, key, job.Args.Run, err.Error(), job.Attempt >= job.MaxAttempts)
	if errors.Is(failErr, session.ErrNotFound) {
		failErr = nil
	}
	return errors.Join(err, failErr)
}

// attempt is compact with a panic made an error, so that it is recorded like one.
func (w *compactWorker) attempt(ctx context.Context, key session.Key, job *river.Job[queue.CompactArgs]) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return w.compact(ctx, key, job)
}

// compact looks whether the session has to wait for a cold cache, and carries its compaction out if not. A run that was
// hurried just when it was put off is decided anew.
func (w *compactWorker) compact(ctx context.Context, key session.Key, job *river.Job[queue.CompactArgs]) error {
	for {
		if err := w.decide(ctx, key, job); !errors.Is(err, postgres.ErrRunRequested) {
			return err
		}
	}
}

func (w *compactWorker) decide(ctx context.Context, key session.Key, job *river.Job[queue.CompactArgs]) error {
	cause, err := w.Store.StartRun(ctx, key, job.Args.Run)
	if err != nil {
		return err
	}
	r := w.start(key, job.Args.Run, nil)
	snap, err := w.Store.Snapshot(ctx, key)
	if err != nil {
		return err
	}
	if err := w.waitForCold(ctx, snap, cause, job); err != nil {
		return err
	}
	r.Step("snapshot")
	_, err = r.Execute(ctx, snap, compactor.Request{Cause: cause}, job.ID)
	return err
}

// waitForCold snoozes the job if it has to wait for the provider's cache, and notes on its run why.
func (w *compactWorker) waitForCold(ctx context.Context, snap postgres.Snapshot, cause string, job *river.Job[queue.CompactArgs]) error {
	decision, wait, err := compactor.WaitForCold(snap, cause)
	if err != nil || wait <= 0 {
		return err
	}
	run := session.Run{ID: job.Args.Run, Reason: decision.Reason()}
	if run.Why, err = json.Marshal(decision); err != nil {
		return err
	}
	if err := w.Store.SnoozeRun(ctx, snap.Key, run, job.ID, wait); err != nil {
		return err
	}
	w.Trace("snoozed")
	return river.JobSnooze(wait)
}
