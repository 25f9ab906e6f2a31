// Package compactor compacts sessions: snapshot → plan → check → persist → commit. Workers and recompactions take the
// whole path, previews and stateless compactions its beginning.
//
// Start at Compactor.Compact (run.go), then Propose (propose.go), which plans and decides. When a compaction is done
// and when it waits is in decision.go and package due.
package compactor

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/modelcall"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// Compactor compacts sessions of a store. All fields but Window, Room, Caller and Writer must be set.
type Compactor struct {
	Store *postgres.Store
	Log   *slog.Logger

	// Window is how many bytes of the log a compaction takes in at a time; 0 for DefaultWindow. It takes a few times
	// that and its rendition of memory, whatever the session's size is.
	Window int64

	// Room is how many bytes a window and the view before it may have together; 0 is without a bound.
	Room int64

	CPU *admit.Gate // processors; nil admits all

	// Caller knows what models have answered; nil if the operator has configured none.
	Caller *modelcall.Caller

	// Writer, if set, writes summaries in place of the one that the policy names.
	Writer llm.Writer

	// Trace is called after each step of a compaction: snoozed, or snapshot, planned, persisted, rendered, committed.
	// Tests stop a worker there.
	Trace func(step string)
}

// run is a compaction under way.
type run struct {
	*Compactor
	key     session.Key
	id      uuid.UUID
	job     int64              // completed when the run ends
	part    *postgres.Part     // of a feature's work; nil for none
	lent    bool               // the policy is not the session's own
	asks    bool               // a recompaction that has models asked for the summaries that it wants
	stored  int64              // bytes that were persisted, compressed
	timings map[string]float64 // milliseconds by step
	last    time.Time
}

func (c *Compactor) start(key session.Key, id uuid.UUID, job int64) *run {
	return &run{Compactor: c, key: key, id: id, job: job, timings: map[string]float64{}, last: time.Now()}
}

// Compact does the run of a session that a job is for, and completes the job. If the session has to wait for a cold
// cache of its provider, it snoozes the job and returns how long; the caller must hand that to its queue. A run that
// is requested to start now while it is being postponed is decided again.
//
// Errors: ErrNotFound, ErrEnded, ErrStale, ErrLogTooLarge, ErrTooHeavy.
func (c *Compactor) Compact(ctx context.Context, key session.Key, id uuid.UUID, job int64) (
	wait time.Duration, err error,
) {
	for {
		wait, err = c.start(key, id, job).compact(ctx)
		if !errors.Is(err, postgres.ErrRunRequested) {
			return wait, err
		}
	}
}

func (r *run) compact(ctx context.Context) (wait time.Duration, err error) {
	cause, err := r.Store.StartRun(ctx, r.key, r.id)
	if err != nil {
		return 0, err
	}
	snap, err := r.Store.Snapshot(ctx, r.key)
	if err != nil {
		return 0, err
	}
	policy, err := policyOf(snap)
	if err != nil {
		return 0, err
	}
	decision := newDecision(snap, &policy, cause)
	if decision.waitForCold(snap, &policy) {
		return decision.wait, r.snooze(ctx, decision)
	}
	if provider.BindsThinking(snap.Model) && decision.mayWaitForTurn(snap) {
		open, err := r.Store.OpenTurn(ctx, r.key, int32(wire.FlagReasoning))
		if err != nil {
			return 0, err
		}
		if open {
			decision.waitForTurn(snap)
			return decision.wait, r.snooze(ctx, decision)
		}
	}
	r.step("snapshot")
	if cause == causeDamage {
		return r.heal(ctx, snap, &policy)
	}
	return r.propose(ctx, snap, Request{Cause: cause, Policy: &policy})
}

// heal makes a new checkpoint from the log, because the newest is damaged. If the log cannot be read or the policy does
// not compact, the session goes back to the newest checkpoint that is whole.
func (r *run) heal(ctx context.Context, snap postgres.Snapshot, policy *policy.Policy) (time.Duration, error) {
	var failed error
	if policy.Enabled {
		wait, err := r.propose(ctx, snap, Request{Cause: causeDamage, Policy: policy, From: FromLog})
		if !isUnreadable(err) {
			return wait, err
		}
		failed = err
	}
	reason := "the newest checkpoint is damaged"
	if failed != nil {
		reason += ", and it cannot be made again: " + failed.Error()
	}
	back, err := r.Store.GoBack(ctx, r.key, r.id, r.job, reason, failed == nil)
	if err != nil || !back {
		return 0, errors.Join(failed, err)
	}
	return 0, nil
}

// Recompaction is the compaction of a session from its log, as a part of a feature's work.
type Recompaction struct {
	Key    session.Key
	Run    uuid.UUID
	Policy json.RawMessage // changes to the session's policy; nil for none
	Ask    bool            // models are asked for the summaries that are not kept
	Part   *postgres.Part
}

// Recompact does the run of a session that a job is for, and completes the job.
//
// Errors: ErrNotFound, ErrEnded, ErrStale, ErrLogTooLarge, ErrTooHeavy.
func (c *Compactor) Recompact(ctx context.Context, of Recompaction, job int64) error {
	r := c.start(of.Key, of.Run, job)
	r.part, r.lent = of.Part, of.Policy != nil
	r.asks = of.Ask
	snap, request, err := recompaction(ctx, c.Store, of.Key, of.Policy)
	if err != nil {
		return err
	}
	r.step("snapshot")
	_, err = r.propose(ctx, snap, request) // which never waits
	return err
}

// propose plans a compaction and carries it out. If the plan shows that waiting is cheaper, it returns how long the job
// must wait instead.
func (r *run) propose(ctx context.Context, snap postgres.Snapshot, request Request) (wait time.Duration, err error) {
	request.Window, request.Room = r.Window, r.Room
	request.Persist = func(ctx context.Context, window []postgres.LogMessage, results []compact.Result) error {
		return r.persist(ctx, window, results)
	}
	request.Caller, request.Writer = r.Caller, r.Writer
	request.CPU = admit.Processors{Gate: r.CPU, Tenant: r.key.Tenant}
	p, err := Propose(ctx, r.Store, snap, request)
	if err != nil {
		return 0, err
	}
	r.step("planned")
	if p.Decision.wait > 0 {
		return p.Decision.wait, r.snooze(ctx, p.Decision)
	}
	return 0, r.execute(ctx, p)
}

// execute persists what leaves the view, and commits. No transaction is open between the steps; the last one commits
// only if the checkpoint that was the newest still is.
//
// Errors: ErrStale.
func (r *run) execute(ctx context.Context, p *Proposal) (err error) {
	if p.Decision.Verdict == Now {
		if p.Made.Through == 0 { // all messages were removed after the snapshot, before they were read
			return session.ErrStale
		}
		if err := r.persist(ctx, p.window, p.Plan.Results[p.persisted:]); err != nil {
			return err
		}
		r.step("persisted")
	}
	outcome, err := r.outcome(p)
	if err != nil {
		return err
	}
	r.step("rendered")
	if outcome.Run.Timings, err = json.Marshal(r.timings); err != nil {
		return err
	}
	if err := r.Store.CommitCheckpoint(ctx, r.key, outcome, r.job); err != nil {
		return err
	}
	r.step("committed")
	r.report(ctx, p, outcome.Run.State)
	return nil
}

// persist stores results that left the view with a window of messages, those that need a body with it. What is stored
// already stays as it is.
func (r *run) persist(ctx context.Context, window []postgres.LogMessage, results []compact.Result) error {
	list := newResults(results)
	if err := r.leaveInLog(ctx, window, results, list); err != nil {
		return err
	}
	stored, err := r.Store.PutResults(ctx, r.key, list)
	r.stored += stored
	return err
}

// step records that a step is done.
func (r *run) step(name string) {
	now := time.Now()
	r.timings[name] = float64(now.Sub(r.last).Microseconds()) / 1000
	r.last = now
	r.Trace(name)
}

// snooze makes the job wait and records the reasons.
func (r *run) snooze(ctx context.Context, d Decision) error {
	why, err := json.Marshal(d)
	if err != nil {
		return err
	}
	waiting := session.Run{ID: r.id, Cause: d.Cause, Reason: d.Reason(), Why: why}
	if err := r.Store.SnoozeRun(ctx, r.key, waiting, r.job, d.wait); err != nil {
		return err
	}
	r.Trace("snoozed")
	return nil
}
