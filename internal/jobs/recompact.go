package jobs

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

const (
	// recompactionQueue is one of its own, so that a compaction that an append waits for never queues behind a campaign.
	recompactionQueue = "recompaction"

	// recompactionPriority is River's lowest.
	recompactionPriority = 4

	// fillAttempts bounds how often the search for a recompaction's sessions is tried: 5 attempts take about 6 minutes.
	fillAttempts = 5

	// stalePlans bounds how often a session is planned anew because another compaction was first.
	stalePlans = 5
)

// RecompactArgs name a session of a recompaction.
type RecompactArgs struct {
	Tenant       uuid.UUID `json:"tenant" river:"unique"`
	Recompaction uuid.UUID `json:"recompaction" river:"unique"`
	Session      uuid.UUID `json:"session" river:"unique"`
}

// Kind is the job's name in River's tables.
func (RecompactArgs) Kind() string { return "recompact" }

// InsertOpts leaves River no attempts but those that a dead worker or database costs: the others are counted by session.
func (RecompactArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{
		Queue: recompactionQueue, Priority: recompactionPriority, MaxAttempts: compactAttempts,
		UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: live},
	}
}

type recompactWorker struct {
	river.WorkerDefaults[RecompactArgs]
	Config
}

// Work compacts one session of a recompaction from its log. Whatever comes of it, the recompaction goes on: a session
// that fails is recorded, in the transaction that lets the next one begin.
func (w *recompactWorker) Work(ctx context.Context, job *river.Job[RecompactArgs]) error {
	of := postgres.RecompactionJob{
		Key: session.Key{Tenant: job.Args.Tenant, Key: job.Args.Session}, Recompaction: job.Args.Recompaction,
	}
	err := w.attempt(ctx, of, job)
	if err == nil || ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return err // done, or the process stops: then River hands the job to another
	}
	if !errors.Is(err, session.ErrNotFound) && !errors.Is(err, session.ErrEnded) {
		w.Log.ErrorContext(ctx, "recompaction of a session", "tenant", of.Tenant, "recompaction", of.Recompaction, "session_key", of.Key.Key, "error", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return w.Store.EndRecompaction(ctx, of, err, completion(job))
}

// attempt tries until no other compaction of the session is first.
func (w *recompactWorker) attempt(ctx context.Context, of postgres.RecompactionJob, job *river.Job[RecompactArgs]) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	work, err := w.Store.StartRecompaction(ctx, of)
	if err != nil {
		return err
	}
	for range stalePlans {
		if err = w.recompact(ctx, of, work, completion(job)); !errors.Is(err, session.ErrStale) {
			return err
		}
	}
	return err
}

func (w *recompactWorker) recompact(ctx context.Context, of postgres.RecompactionJob, work postgres.RecompactionWork, complete func(ctx context.Context, tx pgx.Tx) error) error {
	r := w.start(of.Key, work.Run, &of)
	snap, order, err := compactor.RecompactionRequest(ctx, w.Store, of.Key, work.Policy)
	if err != nil {
		return err
	}
	r.Step("snapshot")
	_, err = r.Execute(ctx, snap, order, complete)
	return err
}

// insertFill and insertRecompact are the jobs of recompactions in a postgres.Queue.
func insertFill(client *river.Client[pgx.Tx]) func(ctx context.Context, tx pgx.Tx, tenant, recompaction uuid.UUID) error {
	return func(ctx context.Context, tx pgx.Tx, tenant, recompaction uuid.UUID) error {
		_, err := client.InsertTx(ctx, tx, FillArgs{Tenant: tenant, Recompaction: recompaction}, nil)
		return err
	}
}

func insertRecompact(client *river.Client[pgx.Tx]) func(ctx context.Context, tx pgx.Tx, job postgres.RecompactionJob) (int64, error) {
	return func(ctx context.Context, tx pgx.Tx, job postgres.RecompactionJob) (int64, error) {
		inserted, err := client.InsertTx(ctx, tx, RecompactArgs{Tenant: job.Tenant, Recompaction: job.Recompaction, Session: job.Key.Key}, nil)
		if err != nil {
			return 0, err
		}
		return inserted.Job.ID, nil
	}
}
