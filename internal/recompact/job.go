package recompact

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

const (
	// queueName is the queue of recompactions.
	queueName = "recompaction"

	// task is that of tenants with a recompaction, or a rollback of one, that has not ended.
	task postgres.TaskKind = "recompaction"

	// deathAttempts bounds how often a job is tried whose worker dies.
	deathAttempts = 8

	// fillAttempts bounds how often the search for a recompaction's sessions is tried.
	fillAttempts = 5
)

// sessionArgs name a session of a recompaction.
type sessionArgs struct {
	Tenant       uuid.UUID `json:"tenant" river:"unique"`
	Recompaction uuid.UUID `json:"recompaction" river:"unique"`
	Session      uuid.UUID `json:"session" river:"unique"`
}

// Kind returns the job's name in River's tables.
func (sessionArgs) Kind() string { return "recompact" }

// InsertOpts allows River only those attempts that a dead worker or database costs: failures are counted by session.
func (sessionArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{
		Queue: queueName, Priority: queue.LowestPriority, MaxAttempts: deathAttempts, UniqueOpts: queue.OneLive,
	}
}

// fillArgs name a recompaction whose sessions are looked for.
type fillArgs struct {
	Tenant       uuid.UUID `json:"tenant" river:"unique"`
	Recompaction uuid.UUID `json:"recompaction" river:"unique"`
}

// Kind returns the job's name in River's tables.
func (fillArgs) Kind() string { return "recompaction_fill" }

// InsertOpts allows one live job for each recompaction.
func (fillArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queueName, MaxAttempts: fillAttempts, UniqueOpts: queue.OneLive}
}

// jobs adds the jobs of recompactions to a worker.
func jobs(w *feature.Worker) {
	s := store{w.Store}
	river.AddWorker(w.Workers, &sessionWorker{Worker: w, store: s})
	river.AddWorker(w.Workers, &fillWorker{store: s})
	river.AddWorker(w.Workers, &rollbackWorker{Worker: w, store: s, slice: w.JobTimeout / 4})
	w.Queues[queueName] = river.QueueConfig{MaxWorkers: w.Beside}
	w.FromLog[sessionArgs{}.Kind()] = true
	w.Died[sessionArgs{}.Kind()] = func(
		ctx context.Context, s *postgres.Store, job queue.Running, cause error,
	) error {
		return died(ctx, w, store{s}, job, cause)
	}
	w.Duties = append(w.Duties, postgres.Duty{
		Kind: task,
		Do:   func(ctx context.Context, tenant uuid.UUID) error { return requeue(ctx, w, s, tenant) },
		Needed: `EXISTS (SELECT FROM recompactions WHERE tenant_id = $1
		AND (finished_at IS NULL OR rollback_at IS NOT NULL AND rolled_back_at IS NULL))`,
	})
}

// died counts the death of a worker as a failure of the session in its recompaction, which continues.
func died(ctx context.Context, w *feature.Worker, s store, job queue.Running, cause error) error {
	var args sessionArgs
	if err := json.Unmarshal(job.Args, &args); err != nil {
		return err
	}
	of := Job{Key: session.Key{Tenant: args.Tenant, Key: args.Session}, Recompaction: args.Recompaction}
	w.Log.WarnContext(ctx, "a worker died: the session of a recompaction that it had is tried again",
		"worker", job.Worker, "tenant", of.Tenant, "recompaction", of.Recompaction, "session_key", of.Key.Key)
	return s.End(ctx, of, cause, job.ID)
}

func requeue(ctx context.Context, w *feature.Worker, s store, tenant uuid.UUID) error {
	lost, err := s.Requeue(ctx, tenant)
	if lost > 0 {
		w.Log.WarnContext(ctx, "sessions of a recompaction had lost their job", "tenant", tenant, "sessions", lost)
	}
	return err
}

// stalePlans bounds how often a session is planned again because another compaction was first.
const stalePlans = 5

type sessionWorker struct {
	river.WorkerDefaults[sessionArgs]
	*feature.Worker
	store store
}

// Work compacts one session of a recompaction from its log. Whatever the outcome, the recompaction continues: a session
// that fails is recorded in the transaction that lets the next one begin.
func (w *sessionWorker) Work(ctx context.Context, job *river.Job[sessionArgs]) error {
	of := Job{Key: session.Key{Tenant: job.Args.Tenant, Key: job.Args.Session}, Recompaction: job.Args.Recompaction}
	began := time.Now()
	slot, err := w.Slots.Acquire(ctx, uuid.Nil, 1)
	if err != nil {
		return river.JobSnooze(feature.SomeSeconds())
	}
	defer slot.Done()
	err = feature.Recovered(func() error { return w.attempt(ctx, of, job.ID) })
	if err == nil || w.Blameless(ctx, err, began) {
		return err // done, or the job is tried again: not the session failed
	}
	if !errors.Is(err, session.ErrNotFound) && !errors.Is(err, session.ErrEnded) {
		w.Log.ErrorContext(ctx, "recompaction of a session", "tenant", of.Tenant, "recompaction", of.Recompaction,
			"session_key", of.Key.Key, "error", err)
	}
	ctx, cancel := feature.Recording(ctx)
	defer cancel()
	return w.store.End(ctx, of, err, job.ID)
}

// attempt tries until no other compaction of the session is first.
func (w *sessionWorker) attempt(ctx context.Context, of Job, job int64) error {
	if err := w.Thaw(ctx, of.Key); err != nil {
		return err
	}
	work, err := w.store.Start(ctx, of)
	if err != nil {
		return err
	}
	made := compactor.Recompaction{Key: of.Key, Run: work.Run, Policy: work.Policy, Ask: work.Ask, Part: &postgres.Part{
		About: map[string]any{"recompaction": of.Recompaction},
		Ended: func(ctx context.Context, tx pgx.Tx, o postgres.Outcome) error {
			return w.store.ended(ctx, tx, of, o)
		},
	}}
	for range stalePlans {
		if err = w.Compactor.Recompact(ctx, made, job); !errors.Is(err, session.ErrStale) {
			return err
		}
	}
	return err
}

type fillWorker struct {
	river.WorkerDefaults[fillArgs]
	store store
}

// Work looks for the next sessions of a recompaction, few enough that it takes next to no time, or lets the next ones
// begin.
func (w *fillWorker) Work(ctx context.Context, job *river.Job[fillArgs]) error {
	err := w.store.Fill(ctx, job.Args.Tenant, job.Args.Recompaction, job.ID)
	switch {
	case err == nil, errors.Is(err, session.ErrNotFound):
		return nil
	case job.Attempt < job.MaxAttempts:
		return err
	}
	ctx, cancel := feature.Recording(ctx)
	defer cancel()
	return errors.Join(err, w.store.Fail(ctx, job.Args.Tenant, job.Args.Recompaction, err.Error()))
}
