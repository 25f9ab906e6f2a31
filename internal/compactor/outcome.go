package compactor

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// newResults returns results that leave a view as they are persisted.
func newResults(evicted []compact.Result) []persist.NewResult {
	results := make([]persist.NewResult, len(evicted))
	for i, r := range evicted {
		results[i] = persist.NewResult{
			Result: persist.Result{
				Ref: r.Ref.String(), Seq: r.Seq, Part: r.Part,
				Tool: postgres.Text(r.Tool), CallID: postgres.Text(r.CallID),
				Category: r.Category, MediaType: r.MediaType,
				Lines: int64(r.Lines), Tokens: int64(r.Tokens), SHA256: r.SHA256[:],
				InLog: r.Source != "", // its original is stored, and its message has the copy
			},
			Body: r.Stored,
		}
	}
	return results
}

// outcome returns what the last transaction writes.
func (r *run) outcome(p *Proposal) (o postgres.Outcome, err error) {
	o = postgres.Outcome{
		LastSeq: p.Snapshot.LastSeq, Part: r.part, Under: r.conditions(&p.Snapshot),
		FreedAfter: p.FreedAfter(),
	}
	if p.Snapshot.Base != nil {
		o.Base, o.Forgotten = p.Snapshot.Base.N, p.Snapshot.Base.Forgotten
	}
	if o.Summaries, err = p.work(r.part == nil || r.asks); err != nil {
		return o, err
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
		o.Run.State = session.RunDone
		o.Run.Checkpoint = &n
		o.Run.Through = &p.Made.Through
		o.Saved = p.Saved()
		o.Checkpoint, err = storedCheckpoint(p)
	}
	return o, err
}

// conditions returns what the compaction was planned under.
func (r *run) conditions(s *postgres.Snapshot) postgres.Conditions {
	return postgres.Conditions{
		Policy: s.Policy.Version, Window: s.WindowTokens, Overhead: s.OverheadTokens, Lent: r.lent,
	}
}

// record returns the run without the way it ended. A run that changes nothing has saved nothing.
func (r *run) record(p *Proposal) (session.Run, error) {
	before, after := p.Tokens()
	persisted := len(p.Plan.Results)
	if p.Decision.Verdict != Now {
		before, after = p.View(), p.View()
		persisted = 0
	}
	run := session.Run{
		ID: r.id, Cause: p.Decision.Cause, Reason: p.Decision.Reason(),
		TokensBefore: &before, TokensAfter: &after, ResultsPersisted: &persisted, BytesPersisted: &r.stored,
	}
	for _, part := range []struct {
		to    *json.RawMessage
		value any
	}{{&run.Stages, p.Plan.Stages}, {&run.Why, p.Decision}, {&run.Report, p.Report()}} {
		document, err := json.Marshal(part.value)
		if err != nil {
			return run, err
		}
		*part.to = document
	}
	return run, nil
}

// report counts the run and logs it in one line. It is a warning if something failed and was done without, or if the
// view does not fit into its window although there is nothing more to shorten: somebody must change the policy or
// begin a new session.
func (r *run) report(ctx context.Context, p *Proposal, state session.RunState) {
	report := p.Report()
	level, message := slog.LevelInfo, "compaction"
	count(report, p.Decision.Cause, state, r.timings)
	attrs := []any{
		"tenant", r.key.Tenant, "session", p.Snapshot.ID, "run", r.id, "cause", p.Decision.Cause, "state", state,
		"reason", p.Decision.Reason(), "from", p.From, "tokens_before", report.ViewTokensBefore,
		"tokens_saved", report.TokensSaved, "messages", report.MessagesTotal,
		"messages_compacted", report.MessagesCompacted, "results", report.ResultsPersisted,
		"bytes_before", report.BytesBefore, "bytes_after", report.BytesAfter,
		"stale", report.Stale.Count, "stale_resources", staleNames(report.Stale),
		"kept_prefix_tokens", report.KeptPrefix.Tokens, slog.Group("ms", r.steps()...),
	}
	if failed := report.FailedOpen; len(failed) > 0 {
		level, message = slog.LevelWarn, "compaction: something failed and was done without"
		attrs = append(attrs, "failed_open", failed)
	}
	if risk := report.OverflowRisk; risk != nil {
		level, message = slog.LevelWarn, "compaction: the view is still larger than its window"
		attrs = append(attrs, "over_by", risk.OverBy, "recommendation", risk.Recommendation)
	}
	r.Log.Log(ctx, level, message, attrs...)
}

// staleNames returns the resources of stale results for a log line: at most ten, then how many more there are.
func staleNames(s protocol.Stale) string {
	shown := s.Resources[:min(len(s.Resources), 10)]
	names := strings.Join(shown, ",")
	if more := s.ResourcesTotal - len(shown); more > 0 {
		return fmt.Sprintf("%s and %d more", names, more)
	}
	return names
}

func (r *run) steps() []any {
	steps := make([]any, 0, len(r.timings))
	for step, ms := range r.timings {
		steps = append(steps, slog.Float64(step, ms))
	}
	return steps
}

// FreedAfter returns after how many messages so much is no longer protected that another compaction is worth a try: as
// much as a session would have to grow before it is due again. It returns 0 if that is not known.
func (p *Proposal) FreedAfter() int {
	return p.Plan.FreedAfter(int64(due.Regrowth * float64(p.Input.WindowTokens)))
}
