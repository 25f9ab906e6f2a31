package compactor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/llm"
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
	Cause  string         // what asked for it, see session.Run
	Policy *policy.Policy // nil: the session's own
	From   From           // "": from the checkpoint if this policy and this engine made it, else from the log
}

// Proposal is what a compaction of a session does: decided, rendered and weighed, but not carried out.
type Proposal struct {
	Snapshot   postgres.Snapshot
	From       From
	Input      compact.Input
	Plan       *compact.Plan
	Made       *compact.Checkpoint
	Changed    bool     // Made is another view than the one that is served
	Kept       int64    // tokens of the beginning of the view that keeps its bytes
	Decision   Decision // whether it is done now
	FailedOpen error    // nil, or what failed and was done without

	rendition *view.Rendition // Made, message by message, if it is another view
	alone     bool            // it is of no session: nothing is known of a cache
}

// Propose decides how a session is compacted, for a run, its preview and a recompaction alike. snap is what
// Store.Snapshot read just now; the log is read if the compaction has to start from there. Without an explicit From it
// never makes a view larger: a more lenient policy holds for what comes, and only a recompaction brings back what was
// evicted.
//
// Errors: ErrNotFound, ErrLogTooLarge.
func Propose(ctx context.Context, store *postgres.Store, snap postgres.Snapshot, request Request, writer llm.Writer) (
	*Proposal, error,
) {
	if request.Policy == nil {
		own, err := policyOf(snap)
		if err != nil {
			return nil, err
		}
		request.Policy = &own
	}
	snap, from, err := start(ctx, store, snap, request)
	if err != nil {
		return nil, err
	}
	p, err := plan(ctx, snap, request.Policy, from, writer)
	if err == nil && request.From == "" && from == FromLog && p.Saved() < 0 && sameEngine(snap.Base) {
		p, err = plan(ctx, snap, request.Policy, FromCheckpoint, writer)
	}
	if err != nil {
		if p, err = planWithout(ctx, store, snap.Key, request.Policy, writer, err); err != nil {
			return nil, err
		}
	}
	p.Decision = newDecision(p.Snapshot, &p.Input.Policy, request.Cause)
	p.Decision.weigh(p)
	return p, nil
}

// ProposeAlone does what Propose does for messages that are in no session: snap has all that is known of them. With
// force they are compacted whether or not they are due. A compaction that is due never waits: no later run would do it.
func ProposeAlone(ctx context.Context, snap postgres.Snapshot, policy policy.Policy, force bool) (*Proposal, error) {
	p, failed := plan(ctx, snap, &policy, FromLog, nil)
	if failed != nil {
		var err error
		if p, err = plan(ctx, snap, essential(policy), FromLog, nil); err != nil {
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

// start returns where a compaction starts, and the snapshot with the log if it starts there. An explicit From is
// obeyed; a log that does not fit into memory or is damaged is an error only if there is no other way.
func start(ctx context.Context, store *postgres.Store, snap postgres.Snapshot, request Request) (
	postgres.Snapshot, From, error,
) {
	switch {
	case snap.Base == nil:
		return snap, FromLog, nil
	case request.From == FromLog, !sameEngine(snap.Base):
	case request.From == FromCheckpoint, bytes.Equal(snap.Base.Policy, request.Policy.Document()):
		return snap, FromCheckpoint, nil
	}
	logged, err := store.SnapshotFromLog(ctx, snap.Key)
	if isUnreadable(err) && request.From == "" && sameEngine(snap.Base) {
		postgres.CountDamage(err)
		return snap, FromCheckpoint, nil
	}
	return logged, FromLog, err
}

// isUnreadable reports whether err is that of a log from which nothing can be made.
func isUnreadable(err error) bool {
	return errors.Is(err, session.ErrLogTooLarge) || errors.Is(err, session.ErrDamaged)
}

func sameEngine(base *postgres.Checkpoint) bool {
	return base != nil && base.EngineVersion == compact.EngineVersion
}

// plan runs the pure part on a snapshot. It returns a panic as an error, so that the caller can continue without the
// stage that failed.
func plan(ctx context.Context, snap postgres.Snapshot, policy *policy.Policy, from From, writer llm.Writer) (
	p *Proposal, err error,
) {
	defer failOpen(&err)
	if !policy.Enabled {
		policy = policy.Off()
	}
	p = &Proposal{Snapshot: snap, From: from}
	if p.Input, err = inputOf(ctx, snap, policy, from); err != nil {
		return nil, err
	}
	return p, p.plan(ctx, writing(ctx, policy, writer))
}

// failOpen makes a panic an error.
func failOpen(err *error) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
	}
}

// plan decides about every part of the view, renders, and checks. It returns a panic as an error.
func (p *Proposal) plan(ctx context.Context, write compact.Write) (err error) {
	defer failOpen(&err)
	if p.Plan, p.Made, err = compact.Run(ctx, p.Input, write); err != nil {
		return err
	}
	p.compare()
	p.Changed = p.Changed && p.Input.Policy.Enabled
	if p.Changed {
		p.rendition, err = check(ctx, &p.Input, p.Plan, p.Made)
	}
	return err
}

// planWithout fails open: what the checkpoint made impossible is done from the log, and what a stage made impossible
// without the stages that are not needed to hold the budget. A checkpoint that was made without them has another
// policy than the session, so the next compaction starts from the log and tries everything again.
func planWithout(
	ctx context.Context, store *postgres.Store, key session.Key, policy *policy.Policy, writer llm.Writer, failed error,
) (*Proposal, error) {
	postgres.CountDamage(failed)
	snap, err := store.SnapshotFromLog(ctx, key)
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	p, err := plan(ctx, snap, policy, FromLog, writer)
	if err != nil {
		p, err = plan(ctx, snap, essential(*policy), FromLog, writer)
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
	p.Stale.Enabled = false
	p.Arguments.Enabled = false
	p.Whitespace.Enabled = false
	p.Summarise.Enabled = false
	p.Trim.Enabled = true
	p.Truncate.Enabled = true
	return &p
}

// writing has summaries written by writer or, if that is nil, by the one that the policy names.
func writing(ctx context.Context, policy *policy.Policy, writer llm.Writer) compact.Write {
	return func(r summary.Request) (summary.Answer, error) {
		if writer == nil {
			var err error
			if writer, err = llm.New(string(policy.Summarise.Writer)); err != nil {
				return summary.Answer{}, err
			}
		}
		return writer.Write(ctx, r)
	}
}
