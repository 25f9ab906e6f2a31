package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// CompactArgs name the session to compact and the run that records it. A session has one live job: tenant and session
// make it unique, the run does not.
type CompactArgs struct {
	Tenant  uuid.UUID `json:"tenant" river:"unique"`
	Session uuid.UUID `json:"session" river:"unique"`
	Run     uuid.UUID `json:"run"`
}

// Kind is the job's name in River's tables.
func (CompactArgs) Kind() string { return "compact" }

// InsertOpts makes the job unique among the live ones of its session.
func (CompactArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{
		Queue: compactionQueue, MaxAttempts: compactAttempts,
		UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: live},
	}
}

type compactWorker struct {
	river.WorkerDefaults[CompactArgs]
	Config
}

// recordTimeout bounds how long a failed attempt may take to say so.
const recordTimeout = 10 * time.Second

// Work runs one compaction and decides what its end means for the job: nothing is retried that cannot succeed, and a
// failure is recorded where the session's owner sees it.
func (w *compactWorker) Work(ctx context.Context, job *river.Job[CompactArgs]) error {
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
		return w.Store.Supersede(ctx, key, run, completion(job))
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
func (w *compactWorker) attempt(ctx context.Context, key session.Key, job *river.Job[CompactArgs]) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return w.compact(ctx, key, job)
}

// completion completes the job in the transaction of what it did, also if River takes it for one that waits: it was
// hurried just when it was put off, or its worker was thought dead.
func completion[A river.JobArgs](job *river.Job[A]) func(ctx context.Context, tx pgx.Tx) error {
	return func(ctx context.Context, tx pgx.Tx) error {
		found, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		if errors.Is(err, rivertype.ErrNotFound) {
			return nil // the job's row is gone; what it did still counts
		}
		if err != nil || found.FinalizedAt != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			UPDATE river_job
			   SET state = 'completed', finalized_at = now()
			 WHERE id = $1 AND finalized_at IS NULL`, job.ID)
		return err
	}
}

// compact looks whether the session has to wait for a cold cache, and carries its compaction out if not. A run that was
// hurried just when it was put off is decided anew.
func (w *compactWorker) compact(ctx context.Context, key session.Key, job *river.Job[CompactArgs]) error {
	for {
		if err := w.decide(ctx, key, job); !errors.Is(err, postgres.ErrHurried) {
			return err
		}
	}
}

func (w *compactWorker) decide(ctx context.Context, key session.Key, job *river.Job[CompactArgs]) error {
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
	_, err = r.Execute(ctx, snap, compactor.Request{Cause: cause}, completion(job))
	return err
}

// waitForCold snoozes the job if it has to wait for the provider's cache, and notes on its run why.
func (w *compactWorker) waitForCold(ctx context.Context, snap postgres.Snapshot, cause string, job *river.Job[CompactArgs]) error {
	decision, wait, err := compactor.WaitForCold(snap, cause)
	if err != nil || wait <= 0 {
		return err
	}
	run := session.Run{ID: job.Args.Run, Reason: decision.Reason()}
	if run.Why, err = json.Marshal(decision); err != nil {
		return err
	}
	if err := w.Store.PutOffRun(ctx, snap.Key, run, snooze(job.ID, wait)); err != nil {
		return err
	}
	w.Trace("put off")
	return river.JobSnooze(wait)
}

// snooze makes the job wait in the transaction that notes why. What River does when the worker returns comes later: until
// then the job would count as running, which nobody can hurry.
func snooze(job int64, wait time.Duration) func(ctx context.Context, tx pgx.Tx) error {
	return func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			UPDATE river_job
			   SET state = 'scheduled', scheduled_at = now() + $2::interval, attempt = greatest(attempt - 1, 0)
			 WHERE id = $1 AND state = 'running'`, job, wait)
		return err
	}
}
