package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/persist"
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

// completion completes the job in the transaction of what it did.
func completion(job *river.Job[CompactArgs]) func(ctx context.Context, tx pgx.Tx) error {
	return func(ctx context.Context, tx pgx.Tx) error {
		_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		if errors.Is(err, rivertype.ErrNotFound) {
			return nil // the job's row is gone; what it did still counts
		}
		return err
	}
}

// compaction is one run on its way: what was read, what was decided, and how long each step took.
type compaction struct {
	key      session.Key
	run      session.Run
	snapshot postgres.Snapshot
	input    compact.Input
	plan     *compact.Plan
	made     *compact.Checkpoint
	timings  map[string]float64 // milliseconds by step
	stored   int64              // bytes of persisted results, compressed
	last     time.Time
}

// compact reads, plans, persists, renders and commits. No transaction is open between the steps; the last one commits
// only if the checkpoint that was read still is the newest.
func (w *compactWorker) compact(ctx context.Context, key session.Key, job *river.Job[CompactArgs]) error {
	cause, err := w.Store.StartRun(ctx, key, job.Args.Run)
	if err != nil {
		return err
	}
	c := &compaction{key: key, run: session.Run{ID: job.Args.Run}, timings: map[string]float64{}, last: time.Now()}
	if c.snapshot, err = w.Store.Snapshot(ctx, key); err != nil {
		return err
	}
	if wait := warm(c.snapshot, cause); wait > 0 {
		if cause, err = w.Store.PutOffRun(ctx, key, job.Args.Run); err != nil {
			return err
		}
		if wait = warm(c.snapshot, cause); wait > 0 {
			return river.JobSnooze(wait)
		}
		if cause, err = w.Store.StartRun(ctx, key, job.Args.Run); err != nil {
			return err
		}
	}
	w.done(c, "snapshot")
	if err := c.decide(); err != nil {
		return err
	}
	w.done(c, "planned")
	if c.plan.Changed() {
		if c.stored, err = w.Results.Put(ctx, key, c.results()); err != nil {
			return err
		}
		w.done(c, "persisted")
		if c.made, err = compact.Render(c.input, c.plan); err != nil {
			return err
		}
		if err := check(c.input, c.made); err != nil {
			return err
		}
	}
	outcome, err := c.outcome()
	if err != nil {
		return err
	}
	w.done(c, "rendered")
	if err := w.Store.CommitCheckpoint(ctx, key, outcome, completion(job)); err != nil {
		return err
	}
	w.done(c, "committed")
	w.report(ctx, c, cause, outcome.Run.State)
	return nil
}

// report logs the run in one line. A view that does not fit into its window, although there is nothing more to trim, is
// a warning: somebody has to change its policy or start a new session.
func (w *compactWorker) report(ctx context.Context, c *compaction, cause string, state session.RunState) {
	level, message := slog.LevelInfo, "compaction"
	before, after := c.tokens()
	if after+int64(c.snapshot.OverheadTokens) > int64(c.snapshot.WindowTokens) {
		level, message = slog.LevelWarn, "compaction: the view is still larger than its window"
	}
	steps := make([]any, 0, len(c.timings))
	for step, ms := range c.timings {
		steps = append(steps, slog.Float64(step, ms))
	}
	w.Log.Log(ctx, level, message, "tenant", c.key.Tenant, "session", c.snapshot.ID, "run", c.run.ID, "cause", cause, "state", state,
		"tokens_before", before, "tokens_after", after, "results", len(c.plan.Results), slog.Group("ms", steps...))
}

// warm says how long the provider's cache of the session's prefix stays warm, if that is what the job has to wait for.
func warm(s postgres.Snapshot, cause string) time.Duration {
	if s.Policy.CacheTTL == 0 || cause == "manual" || cause == "hard" {
		return 0
	}
	if float64(s.ContextTokens+int64(s.OverheadTokens)) >= s.Policy.Hard*float64(s.WindowTokens) {
		return 0
	}
	return s.Policy.CacheTTL - time.Duration(s.LastAppendAge*float64(time.Second))
}

func (w *compactWorker) done(c *compaction, step string) {
	now := time.Now()
	c.timings[step] = float64(now.Sub(c.last).Microseconds()) / 1000
	c.last = now
	w.Trace(step)
}

// decide is the pure part: what to do with every part of the view.
func (c *compaction) decide() (err error) {
	if c.input, err = inputOf(c.snapshot); err != nil {
		return err
	}
	c.plan, err = compact.Make(c.input)
	return err
}

// results are the full results that the plan takes out of the view.
func (c *compaction) results() []persist.New {
	results := make([]persist.New, len(c.plan.Results))
	for i, r := range c.plan.Results {
		results[i] = persist.New{
			Result: persist.Result{
				Ref: r.Ref.String(), Seq: r.Seq, Part: r.Part, Tool: r.Tool, CallID: r.CallID, Category: r.Category, MediaType: r.MediaType,
				Lines: int64(r.Lines), Tokens: int64(r.Tokens), SHA256: r.SHA256,
			},
			Body: r.Stored,
		}
	}
	return results
}

// tokens are those of the view before and after, the system messages that stand apart from it included.
func (c *compaction) tokens() (before, after int64) {
	return c.plan.Before + c.snapshot.ApartTokens, c.plan.After + c.snapshot.ApartTokens
}

// outcome is what the last transaction writes.
func (c *compaction) outcome() (postgres.Outcome, error) {
	persisted := len(c.plan.Results)
	c.run.State = session.RunUnchanged
	before, after := c.tokens()
	c.run.TokensBefore, c.run.TokensAfter, c.run.ResultsPersisted, c.run.BytesPersisted = &before, &after, &persisted, &c.stored
	o := postgres.Outcome{LastSeq: c.snapshot.LastSeq, Saved: c.plan.Before - c.plan.After}
	if c.snapshot.Base != nil {
		o.Base = c.snapshot.Base.N
	}
	c.run.Base = &o.Base
	var err error
	if c.made != nil {
		if o.Checkpoint, err = stored(c.input, c.plan, c.made); err != nil {
			return o, err
		}
		n := o.Base + 1
		c.run.State, c.run.Checkpoint, c.run.Through = session.RunDone, &n, &c.made.Through
	}
	if c.run.Stages, err = json.Marshal(c.plan.Stages); err != nil {
		return o, err
	}
	c.run.Timings, err = json.Marshal(c.timings)
	o.Run = c.run
	return o, err
}

func inputOf(s postgres.Snapshot) (compact.Input, error) {
	policy, err := compact.ParsePolicy(s.Policy.Document)
	if err != nil {
		return compact.Input{}, fmt.Errorf("policy of session %s: %w", s.Key.Key, err)
	}
	in := compact.Input{
		Format: s.Format, Policy: policy, WindowTokens: s.WindowTokens, OverheadTokens: s.OverheadTokens + int(s.ApartTokens),
		Tail: make([]compact.Entry, len(s.Tail)),
	}
	for i, e := range s.Tail {
		in.Tail[i] = compact.Entry{Seq: e.Seq, Tokens: int(e.Tokens), Body: e.Body}
	}
	if s.Base != nil {
		in.Base, err = loaded(s.Base)
	}
	return in, err
}
