package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/compact"
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
	r := w.begin(of.Key, work.Run)
	r.of = &of
	snap, order, err := recompaction(ctx, w.Store, of.Key, work.Policy)
	if err != nil {
		return err
	}
	r.done("snapshot")
	_, err = r.carryOut(ctx, snap, order, complete)
	return err
}

// ProposeRecompaction is what a recompaction with these changes to the policy would do to a session; nothing is written.
//
// Errors: ErrNotFound, ErrLogTooLarge.
func ProposeRecompaction(ctx context.Context, store *postgres.Store, key session.Key, patch json.RawMessage) (*Proposal, error) {
	snap, order, err := recompaction(ctx, store, key, patch)
	if err != nil {
		return nil, err
	}
	return Propose(ctx, store, snap, order, nil)
}

// recompaction starts from the log, under the session's own policy with the changes merged into it, as a preview of the
// session does; null is the tenant's policy.
func recompaction(ctx context.Context, store *postgres.Store, key session.Key, patch json.RawMessage) (snap postgres.Snapshot, o Order, err error) {
	o = Order{Cause: causeRecompaction, From: FromLog}
	if snap, err = store.Snapshot(ctx, key); err != nil || patch == nil {
		return snap, o, err
	}
	found, err := store.SessionPolicy(ctx, session.Address{Tenant: snap.Tenant, ID: snap.ID})
	if err != nil {
		return snap, o, err
	}
	layers := []compact.Layer{{Name: "tenant", Document: found.Tenant}}
	if string(patch) != "null" {
		layers = append(layers, compact.Layer{Name: "session", Pointer: "/policy", Document: compact.MergePolicy(found.Own, patch)})
	}
	policy, _, err := compact.ParsePolicyLayers(layers...)
	if err != nil {
		return snap, o, fmt.Errorf("policy of session %s: %w", snap.ID, err)
	}
	o.Policy = &policy
	return snap, o, nil
}

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
