package jobs

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// running is a run on its way: how long each step took, and what was stored.
type running struct {
	Config
	key     session.Key
	id      uuid.UUID
	of      *postgres.RecompactionJob // nil unless it is a run of a recompaction
	timings map[string]float64        // milliseconds by step
	stored  int64                     // bytes of persisted results, compressed
	last    time.Time
}

func (c Config) begin(key session.Key, run uuid.UUID) *running {
	return &running{Config: c, key: key, id: run, timings: map[string]float64{}, last: time.Now()}
}

func (r *running) done(step string) {
	now := time.Now()
	r.timings[step] = float64(now.Sub(r.last).Microseconds()) / 1000
	r.last = now
	r.Trace(step)
}

// carryOut plans a compaction, persists what leaves the view, and commits. No transaction is open between the steps; the
// last one commits only if the checkpoint that was the newest still is, and completes the job by complete. It returns
// the run as it ended.
//
// Errors: ErrNotFound, ErrStale, ErrLogTooLarge.
func (r *running) carryOut(ctx context.Context, snap postgres.Snapshot, o Order, complete func(ctx context.Context, tx pgx.Tx) error) (session.Run, error) {
	p, err := Propose(ctx, r.Store, snap, o, r.Writer)
	if err != nil {
		return session.Run{}, err
	}
	r.done("planned")
	if p.Why.Decision == Now {
		if r.stored, err = r.Results.Put(ctx, r.key, results(p.Plan)); err != nil {
			return session.Run{}, err
		}
		r.done("persisted")
	}
	outcome, err := r.outcome(p)
	if err != nil {
		return session.Run{}, err
	}
	r.done("rendered")
	if outcome.Run.Timings, err = json.Marshal(r.timings); err != nil {
		return session.Run{}, err
	}
	if err := r.Store.CommitCheckpoint(ctx, r.key, outcome, complete); err != nil {
		return session.Run{}, err
	}
	r.done("committed")
	r.tell(ctx, p, outcome.Run.State)
	return outcome.Run, nil
}

// results are the full results that a plan takes out of the view.
func results(p *compact.Plan) []persist.NewResult { return newResults(p.Results) }

func newResults(leaving []compact.Result) []persist.NewResult {
	results := make([]persist.NewResult, len(leaving))
	for i, r := range leaving {
		results[i] = persist.NewResult{
			Result: persist.Result{
				Ref: r.Ref.String(), Seq: r.Seq, Part: r.Part, Tool: r.Tool, CallID: r.CallID, Category: r.Category, MediaType: r.MediaType,
				Lines: int64(r.Lines), Tokens: int64(r.Tokens), SHA256: r.SHA256,
			},
			Body: r.Stored,
		}
	}
	return results
}

// outcome is what the last transaction writes.
func (r *running) outcome(p *Proposal) (o postgres.Outcome, err error) {
	o = postgres.Outcome{LastSeq: p.Snapshot.LastSeq, Recompaction: r.of}
	if p.Snapshot.Base != nil {
		o.Base = p.Snapshot.Base.N
	}
	if o.Run, err = r.record(p); err != nil {
		return o, err
	}
	o.Run.Base = &o.Base
	switch p.Why.Decision {
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
func (r *running) record(p *Proposal) (run session.Run, err error) {
	before, after := p.Tokens()
	persisted := len(p.Plan.Results)
	if p.Why.Decision != Now {
		before, after, persisted = p.View(), p.View(), 0
	}
	run = session.Run{
		ID: r.id, TokensBefore: &before, TokensAfter: &after, ResultsPersisted: &persisted, BytesPersisted: &r.stored, Reason: p.Why.Reason(),
	}
	if run.Stages, err = json.Marshal(p.Plan.Stages); err != nil {
		return run, err
	}
	if run.Why, err = json.Marshal(p.Why); err != nil {
		return run, err
	}
	run.Report, err = json.Marshal(p.Report())
	return run, err
}

// tell counts the run and logs it in one line. A view that does not fit into its window, although there is nothing more to shorten, is
// a warning: somebody has to change its policy or start a new session. So is what failed and was done without.
func (r *running) tell(ctx context.Context, p *Proposal, state session.RunState) {
	level, message, report := slog.LevelInfo, "compaction", p.Report()
	count(report, p.Why.Cause, state, r.timings)
	attrs := []any{
		"tenant", r.key.Tenant, "session", p.Snapshot.ID, "run", r.id, "cause", p.Why.Cause, "state", state, "reason", p.Why.Reason(), "from", p.From,
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

func (r *running) steps() []any {
	steps := make([]any, 0, len(r.timings))
	for step, ms := range r.timings {
		steps = append(steps, slog.Float64(step, ms))
	}
	return steps
}
