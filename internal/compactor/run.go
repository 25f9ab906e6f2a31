// Package compactor compacts sessions: snapshot → plan → persist → check → commit. Workers, previews, stateless compactions
// and recompactions all take this path, or its beginning.
//
// Start at Propose (propose.go), which decides and renders, and Run.Execute (run.go), which carries a proposal out. When a
// compaction is done and when it waits is in decision.go.
package compactor

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// Compactor compacts sessions of a store. All fields but Writer must be set.
type Compactor struct {
	Store *postgres.Store
	Log   *slog.Logger

	// Writer, if set, writes summaries in place of the one that the policy names.
	Writer llm.Writer

	// Trace is called with each step of a compaction that is done: snoozed, or snapshot, planned, persisted, rendered,
	// committed. Tests stop a worker there.
	Trace func(step string)
}

// Run is a compaction under way: how long each step took, and what was stored.
type Run struct {
	Compactor
	key     session.Key
	id      uuid.UUID
	of      *postgres.RecompactionJob // nil unless it is a run of a recompaction
	timings map[string]float64        // milliseconds by step
	stored  int64                     // bytes of persisted results, compressed
	last    time.Time
}

// Start returns the run with this id of a session; of is nil unless the run is one of a recompaction.
func (c Compactor) Start(key session.Key, id uuid.UUID, of *postgres.RecompactionJob) *Run {
	return &Run{Compactor: c, key: key, id: id, of: of, timings: map[string]float64{}, last: time.Now()}
}

// Step notes that a step is done.
func (r *Run) Step(step string) {
	now := time.Now()
	r.timings[step] = float64(now.Sub(r.last).Microseconds()) / 1000
	r.last = now
	r.Trace(step)
}

// Execute plans a compaction, persists what leaves the view, and commits. No transaction is open between the steps; the
// last one commits only if the checkpoint that was the newest still is, and completes the job. It returns
// the run as it ended.
//
// Errors: ErrNotFound, ErrStale, ErrLogTooLarge.
func (r *Run) Execute(ctx context.Context, snap postgres.Snapshot, o Request, job int64) (session.Run, error) {
	p, err := Propose(ctx, r.Store, snap, o, r.Writer)
	if err != nil {
		return session.Run{}, err
	}
	r.Step("planned")
	if p.Decision.Verdict == Now {
		if r.stored, err = r.Store.PutResults(ctx, r.key, newResults(p.Plan.Results)); err != nil {
			return session.Run{}, err
		}
		r.Step("persisted")
	}
	outcome, err := r.outcome(p)
	if err != nil {
		return session.Run{}, err
	}
	r.Step("rendered")
	if outcome.Run.Timings, err = json.Marshal(r.timings); err != nil {
		return session.Run{}, err
	}
	if err := r.Store.CommitCheckpoint(ctx, r.key, outcome, job); err != nil {
		return session.Run{}, err
	}
	r.Step("committed")
	r.report(ctx, p, outcome.Run.State)
	return outcome.Run, nil
}

// newResults returns results that leave a view, as they are stored in full.
func newResults(evicted []compact.Result) []persist.NewResult {
	results := make([]persist.NewResult, len(evicted))
	for i, r := range evicted {
		results[i] = persist.NewResult{
			Result: persist.Result{
				Ref: r.Ref.String(), Seq: r.Seq, Part: r.Part, Tool: postgres.Text(r.Tool), CallID: postgres.Text(r.CallID),
				Category: r.Category, MediaType: r.MediaType,
				Lines: int64(r.Lines), Tokens: int64(r.Tokens), SHA256: r.SHA256,
			},
			Body: r.Stored,
		}
	}
	return results
}

// outcome is what the last transaction writes.
func (r *Run) outcome(p *Proposal) (o postgres.Outcome, err error) {
	o = postgres.Outcome{LastSeq: p.Snapshot.LastSeq, Recompaction: r.of}
	if p.Snapshot.Base != nil {
		o.Base = p.Snapshot.Base.N
	}
	if o.Run, err = r.record(p); err != nil {
		return o, err
	}
	o.Run.Base = &o.Base
	switch p.Decision.Verdict {
	case Unchanged:
		o.Run.State = session.RunUnchanged
	case Postponed:
		o.Run.State = session.RunPostponed
	default:
		n := o.Base + 1
		o.Run.State, o.Run.Checkpoint, o.Run.Through, o.Saved = session.RunDone, &n, &p.Made.Through, p.Saved()
		o.Checkpoint, err = stored(p.Input, p.Plan, p.Made)
	}
	return o, err
}

// record is what the run says of itself, its end aside. One that changes nothing has nothing saved.
func (r *Run) record(p *Proposal) (run session.Run, err error) {
	before, after := p.Tokens()
	persisted := len(p.Plan.Results)
	if p.Decision.Verdict != Now {
		before, after, persisted = p.View(), p.View(), 0
	}
	run = session.Run{
		ID: r.id, TokensBefore: &before, TokensAfter: &after, ResultsPersisted: &persisted, BytesPersisted: &r.stored, Reason: p.Decision.Reason(),
	}
	if run.Stages, err = json.Marshal(p.Plan.Stages); err != nil {
		return run, err
	}
	if run.Why, err = json.Marshal(p.Decision); err != nil {
		return run, err
	}
	run.Report, err = json.Marshal(p.Report())
	return run, err
}

// report counts the run and logs it in one line. A view that does not fit into its window, although there is nothing more to shorten, is
// a warning: somebody has to change its policy or start a new session. So is what failed and was done without.
func (r *Run) report(ctx context.Context, p *Proposal, state session.RunState) {
	level, message, report := slog.LevelInfo, "compaction", p.Report()
	count(report, p.Decision.Cause, state, r.timings)
	attrs := []any{
		"tenant", r.key.Tenant, "session", p.Snapshot.ID, "run", r.id, "cause", p.Decision.Cause, "state", state, "reason", p.Decision.Reason(), "from", p.From,
		"tokens_before", report.ViewTokensBefore, "tokens_saved", report.TokensSaved, "messages", report.MessagesTotal,
		"messages_compacted", report.MessagesCompacted, "results", report.ResultsPersisted, "bytes_before", report.BytesBefore, "bytes_after", report.BytesAfter,
		"stale", report.Stale.Count, "kept_prefix_tokens", report.KeptPrefix.Tokens, slog.Group("ms", r.steps()...),
	}
	if failed := report.FailedOpen; len(failed) > 0 {
		level, message, attrs = slog.LevelWarn, "compaction: something failed and was done without", append(attrs, "failed_open", failed)
	}
	if risk := report.OverflowRisk; risk != nil {
		level, message = slog.LevelWarn, "compaction: the view is still larger than its window"
		attrs = append(attrs, "over_by", risk.OverBy, "recommendation", risk.Recommendation)
	}
	r.Log.Log(ctx, level, message, attrs...)
}

func (r *Run) steps() []any {
	steps := make([]any, 0, len(r.timings))
	for step, ms := range r.timings {
		steps = append(steps, slog.Float64(step, ms))
	}
	return steps
}
