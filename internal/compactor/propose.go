package compactor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/modelcall"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/view"
)

// From is where a compaction starts.
type From string

// The two starting points. They lead to the same bytes if the checkpoint was made under the same policy.
const (
	FromCheckpoint From = "checkpoint"
	FromLog        From = "log"
)

// Request is how a session is to be compacted. That of an ordinary run has no From.
type Request struct {
	Cause   string           // what asked for it, see session.Run
	Policy  *policy.Policy   // nil: the session's own
	From    From             // "": from the checkpoint if this policy and this engine made it, else from the log
	Window  int64            // bytes of the log that are taken in at a time; 0: DefaultWindow
	Room    int64            // bytes that a window and the view before it may have; 0 is without a bound
	CPU     admit.Processors // whose turns it takes; none for work that has its turn
	Persist Persist          // nil: what leaves the view is forgotten, as in a preview

	Caller *modelcall.Caller // nil: no model is configured
	Ask    bool              // ask models for the summaries that are not kept, and wait for their answers
	Writer llm.Writer        // nil: what the policy names writes summaries
}

// Persist stores what left the view with a window of messages: it is called for each but the last one, whose results
// the proposal has, before the next is planned. The compaction may still end without a checkpoint.
type Persist func(ctx context.Context, window []postgres.LogMessage, results []compact.Result) error

// Proposal is what a compaction of a session does: decided, rendered and weighed, but not carried out.
type Proposal struct {
	Snapshot   postgres.Snapshot
	From       From
	Input      compact.Input // of the last window
	Plan       *compact.Plan // of all windows; its results of those before the last have no bytes
	Made       *compact.Checkpoint
	Changed    bool     // Made is another view than the one that is served
	Kept       int64    // tokens of the beginning of the view that keeps its bytes
	Decision   Decision // whether it is done now
	FailedOpen error    // nil, or what failed and was done without
	Wanted     []Wanted // from models

	offered []session.Summary // that models have answered or failed to since the base

	cpu       admit.Processors
	rendition *view.Rendition       // Made, message by message, if it is another view
	alone     bool                  // it is of no session: nothing is known of a cache
	window    []postgres.LogMessage // the last one
	evicts    bool                  // whole messages leave the view with the last window
	persisted int                   // how many of the plan's results were persisted with windows before the last
	taken     taken
}

// Propose decides how a session is compacted, for a run, its preview and a recompaction alike. snap is what
// Store.Snapshot read just now. The messages are read window by window: the memory that it takes is that of a window
// and of the rendition, however long the log is. Without an explicit From it never makes a view larger: a more lenient
// policy holds for what comes, and only a recompaction brings back what was evicted.
//
// Errors: ErrNotFound; ErrLogTooLarge if what the policy keeps is larger than any view, ErrTooHeavy if there is no room
// for it.
func Propose(ctx context.Context, store *postgres.Store, snap postgres.Snapshot, request Request) (*Proposal, error) {
	if request.Policy == nil {
		own, err := policyOf(snap)
		if err != nil {
			return nil, err
		}
		request.Policy = &own
	}
	pl := request.planner(store)
	decision := newDecision(snap, request.Policy, request.Cause)
	if store != nil && (request.Policy.Summarise.Model != "" || request.Cause == causeSummary) {
		if err := pl.know(ctx, snap.Key); err != nil {
			return nil, err
		}
		pl.only = request.Cause == causeSummary && !decision.Due()
	}
	from := start(snap, request)
	p, err := pl.plan(ctx, snap, request.Policy, from)
	if request.From == "" && from == FromLog && sameEngine(snap.Base) && !snap.Base.Forgotten &&
		(isUnreadable(err) || err == nil && p.Saved() < 0) {
		postgres.CountDamage(err)
		p, err = pl.plan(ctx, snap, request.Policy, FromCheckpoint)
	}
	if err == nil && request.From == "" && from == FromCheckpoint && len(p.Plan.Unheld) > 0 {
		p, err = pl.plan(ctx, snap, request.Policy, FromLog)
	}
	if err != nil {
		if p, err = pl.planWithout(ctx, snap, request.Policy, err); err != nil {
			return nil, err
		}
	}
	p.offered = pl.ended
	p.Decision = newDecision(p.Snapshot, &p.Input.Policy, request.Cause)
	p.Decision.weigh(p)
	return p, nil
}

// know reads what models are asked for and what they have answered.
func (pl *planner) know(ctx context.Context, key session.Key) error {
	list, err := pl.store.LiveSummaries(ctx, key)
	for i := range list {
		if list[i].FinishedAt != nil {
			pl.ended = append(pl.ended, list[i])
		}
	}
	pl.known = append([]session.Summary{}, list...) // not nil
	return err
}

func (r *Request) planner(store *postgres.Store) planner {
	return planner{
		store: store, caller: r.Caller, writer: r.Writer, ask: r.Ask, persist: r.Persist, cpu: r.CPU,
		window: cmp.Or(r.Window, DefaultWindow), room: r.Room,
	}
}

// ProposeAlone does what Propose does for messages that are in no session: snap has all that is known of them, and of
// request only its policy and what is said of models count. With force they are compacted whether or not they are due.
// A compaction that is due never waits: no later run would do it.
func ProposeAlone(ctx context.Context, snap postgres.Snapshot, request Request, force bool) (*Proposal, error) {
	pl, policy := request.planner(nil), *request.Policy
	pl.window = math.MaxInt64
	p, failed := pl.plan(ctx, snap, &policy, FromLog)
	if failed != nil {
		var err error
		if p, err = pl.plan(ctx, snap, essential(policy), FromLog); err != nil {
			return nil, errors.Join(failed, err)
		}
		p.FailedOpen = failed
	}
	p.alone = true
	cause := causeHard
	if force {
		cause = causeManual
	}
	p.Decision = newDecision(snap, &policy, cause)
	p.Decision.weigh(p)
	if p.Changed && !force && !p.Decision.Due() {
		p.Decision.postponeNotDue(&policy)
	}
	return p, nil
}

// policyOf returns the session's own policy.
func policyOf(snap postgres.Snapshot) (policy.Policy, error) {
	own, err := policy.Parse(snap.Policy.Document)
	if err != nil {
		return own, fmt.Errorf("policy of session %s: %w", snap.Key.Key, err)
	}
	return own, nil
}

// start returns where a compaction starts. An explicit From is obeyed.
func start(snap postgres.Snapshot, request Request) From {
	switch {
	case snap.Base == nil, request.From == FromLog, !sameEngine(snap.Base), snap.Base.Forgotten:
		return FromLog
	case request.From == FromCheckpoint, bytes.Equal(snap.Base.Policy, request.Policy.Document()):
		return FromCheckpoint
	}
	return FromLog
}

// isUnreadable reports whether err is that of a log from which nothing can be made.
func isUnreadable(err error) bool {
	return errors.Is(err, session.ErrLogTooLarge) || errors.Is(err, session.ErrTooHeavy) ||
		errors.Is(err, session.ErrDamaged)
}

func sameEngine(base *postgres.Checkpoint) bool {
	return base != nil && base.EngineVersion == compact.EngineVersion
}

// failOpen makes a panic an error.
func failOpen(err *error) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
	}
}

// planWithout fails open: what the checkpoint made impossible is done from the log, and what a stage made impossible
// without the stages that are not needed to hold the budget. A checkpoint that was made without them has another
// policy than the session, so the next compaction starts from the log and tries everything again. What the store made
// impossible is an error.
func (pl *planner) planWithout(
	ctx context.Context, snap postgres.Snapshot, policy *policy.Policy, failed error,
) (*Proposal, error) {
	var outside storeError
	if errors.As(failed, &outside) {
		return nil, outside.error
	}
	if ctx.Err() != nil || errors.Is(failed, session.ErrTooHeavy) {
		return nil, failed
	}
	postgres.CountDamage(failed)
	p, err := pl.plan(ctx, snap, policy, FromLog)
	if err != nil && !errors.As(err, &outside) {
		p, err = pl.plan(ctx, snap, essential(*policy), FromLog)
	}
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	p.FailedOpen = failed
	return p, nil
}

// essential returns the policy with only those stages that hold the budget.
func essential(p policy.Policy) *policy.Policy {
	p.Dedupe.Enabled = false
	p.Arguments.Enabled = false
	p.Whitespace.Enabled = false
	p.Summarise.Enabled = false
	p.Trim.Enabled = true
	p.Truncate.Enabled = true
	return &p
}
