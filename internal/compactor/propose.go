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
	"github.com/varve-dev/varve/internal/wire"
)

// From is where a compaction starts.
type From string

// The two beginnings. They lead to the same bytes if the checkpoint was made under the same policy.
const (
	FromCheckpoint From = "checkpoint"
	FromLog        From = "log"
)

// Request says how a session is to be compacted. What an ordinary run does has neither Policy nor From.
type Request struct {
	Cause  string         // what asked for it, see session.Run
	Policy *policy.Policy // nil: the session's own
	From   From           // "": from the checkpoint if this policy and this engine made it, else from the log
}

// Proposal is what a compaction of a session does: decided, rendered and weighed, and nothing of it carried out.
type Proposal struct {
	Snapshot   postgres.Snapshot
	From       From
	Input      compact.Input
	Plan       *compact.Plan
	Made       *compact.Checkpoint
	Changed    bool     // Made is another view than the one that is served
	Kept       int64    // tokens of the beginning of the view that stays as it is, byte for byte
	Decision   Decision // it is done now, or not yet
	FailedOpen error    // nil, or what failed and was done without
}

// Propose decides how a session is compacted: a run, its preview and a recompaction all do what this says. snap is what
// Store.Snapshot read just now; the log is read if the compaction has to start from there. Without an explicit From it
// never makes a view larger: a policy that has become more lenient holds for what comes, and a recompaction brings back
// what has left.
//
// Errors: ErrNotFound, ErrLogTooLarge.
func Propose(ctx context.Context, store *postgres.Store, snap postgres.Snapshot, o Request, writer llm.Writer) (*Proposal, error) {
	policy, err := o.policy(snap)
	if err != nil {
		return nil, err
	}
	from := o.from(snap, policy)
	if from == FromLog && snap.Base != nil {
		logged, err := store.SnapshotFromLog(ctx, snap.Key)
		switch {
		case errors.Is(err, session.ErrLogTooLarge) && o.From == "" && sameEngine(snap.Base):
			from = FromCheckpoint
		case err != nil:
			return nil, err
		default:
			snap = logged
		}
	}
	p, err := propose(ctx, snap, policy, from, writer)
	if err == nil && o.From == "" && from == FromLog && p.Saved() < 0 && sameEngine(snap.Base) {
		p, err = propose(ctx, snap, policy, FromCheckpoint, writer)
	}
	if err != nil {
		if p, err = proposeWithout(ctx, store, snap.Key, policy, writer, err); err != nil {
			return nil, err
		}
	}
	p.Decision = situation(p.Snapshot, p.Input.Policy, o.Cause)
	p.Decision.weigh(p)
	return p, nil
}

func (o Request) policy(snap postgres.Snapshot) (policy.Policy, error) {
	if o.Policy != nil {
		return *o.Policy, nil
	}
	policy, err := policy.Parse(snap.Policy.Document)
	if err != nil {
		return policy, fmt.Errorf("policy of session %s: %w", snap.Key.Key, err)
	}
	return policy, nil
}

func (o Request) from(snap postgres.Snapshot, policy policy.Policy) From {
	switch {
	case snap.Base == nil, o.From == FromLog, !sameEngine(snap.Base):
		return FromLog
	case o.From == FromCheckpoint, bytes.Equal(snap.Base.Policy, policy.Document()):
		return FromCheckpoint
	}
	return FromLog
}

func sameEngine(base *postgres.Checkpoint) bool {
	return base != nil && base.EngineVersion == compact.EngineVersion
}

// proposeWithout fails open: what the checkpoint made impossible is done from the log, and what a stage made impossible
// without the stages that are not needed to hold the budget. A checkpoint that was made without them has another policy
// than the session, so the next compaction starts from the log and tries everything again.
func proposeWithout(ctx context.Context, store *postgres.Store, key session.Key, policy policy.Policy, writer llm.Writer, failed error) (*Proposal, error) {
	snap, err := store.SnapshotFromLog(ctx, key)
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	p, err := propose(ctx, snap, policy, FromLog, writer)
	if err != nil {
		p, err = propose(ctx, snap, essential(policy), FromLog, writer)
	}
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	p.FailedOpen = failed
	return p, nil
}

// ProposeAlone is Propose for messages that are in no session: snap has all that is known of them. With force they are
// compacted whether or not they are due. What is due waits for nothing: nobody would come back to it.
func ProposeAlone(ctx context.Context, snap postgres.Snapshot, policy policy.Policy, force bool) (*Proposal, error) {
	p, failed := propose(ctx, snap, policy, FromLog, nil)
	if failed != nil {
		var err error
		if p, err = propose(ctx, snap, essential(policy), FromLog, nil); err != nil {
			return nil, errors.Join(failed, err)
		}
		p.FailedOpen = failed
	}
	cause := causeHard
	if force {
		cause = causeManual
	}
	p.Decision = situation(snap, policy, cause)
	p.Decision.weigh(p)
	if p.Changed && !force && !p.Decision.Due() {
		p.Decision.postponeNotDue()
	}
	return p, nil
}

// essential is the policy with no more stages than hold the budget.
func essential(p policy.Policy) policy.Policy {
	p.Dedupe.Enabled, p.Stale.Enabled, p.Arguments.Enabled, p.Whitespace.Enabled, p.Summarise.Enabled = false, false, false, false, false
	p.Trim.Enabled, p.Truncate.Enabled = true, true
	return p
}

// propose is the pure part: what to do with every part of the view, and the view that it makes. A panic is an error, so
// that the caller can do without the stage that has it.
func propose(ctx context.Context, snap postgres.Snapshot, policy policy.Policy, from From, writer llm.Writer) (p *Proposal, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			p, err = nil, fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	p = &Proposal{Snapshot: snap, From: from}
	if p.Input, err = inputOf(snap, policy, from); err != nil {
		return nil, err
	}
	if p.Plan, p.Made, err = compact.Run(p.Input, writing(ctx, policy, writer)); err != nil {
		return nil, err
	}
	if p.compare(); p.Changed {
		err = check(p.Input, p.Plan, p.Made)
	}
	return p, err
}

// writing has summaries written by writer or, if that is nil, by the one that the policy names.
func writing(ctx context.Context, policy policy.Policy, writer llm.Writer) compact.Write {
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

// compare finds out whether what was made has to replace what is served, and how much of the view's beginning is the
// same. From the log that shows only when the two are compared. A checkpoint of another policy is replaced even by the
// same bytes: the next compaction can start from the new one.
func (p *Proposal) compare() {
	p.Changed, p.Kept = p.Plan.Changed(), p.Plan.Kept
	base := p.Snapshot.Base
	if p.From == FromCheckpoint || base == nil {
		return
	}
	served, known := p.served(base)
	p.Kept = keptOf(served, p.Made)
	same := known && sameEngine(base) && bytes.Equal(base.Policy, p.Input.Policy.Document())
	p.Changed = !same || !bytes.Equal(served, p.Made.Body)
}

// served is what the view shows of the messages that were made anew, as far as it is known: not behind a checkpoint that
// cannot be read, and not from the first message on that was capped when it was appended.
func (p *Proposal) served(base *postgres.Checkpoint) (body []byte, known bool) {
	newest, err := loaded(base)
	if err != nil || p.Made.Through < newest.Through {
		return nil, false
	}
	body = newest.Body
	for i := range p.Snapshot.Tail {
		m := &p.Snapshot.Tail[i]
		if m.Seq <= newest.Through || m.Seq > p.Made.Through {
			continue
		}
		if m.ViewTokens > 0 {
			return body, false
		}
		body = append(append(body, ','), m.Body...)
	}
	return body, true
}

// keptOf counts the tokens of the units that begin a rendition just as they begin the one that is served.
func keptOf(served []byte, made *compact.Checkpoint) (tokens int64) {
	common := 0
	for common < min(len(served), len(made.Body)) && served[common] == made.Body[common] {
		common++
	}
	for i, u := range made.Units {
		end := len(made.Body)
		if i+1 < len(made.Units) {
			end = made.Units[i+1].Offset - 1
		}
		if end > common {
			break
		}
		tokens += u.Tokens
	}
	return tokens
}

// View is how many tokens the view has before it, the system messages that stand apart from it included.
func (p *Proposal) View() int64 { return p.Snapshot.ContextTokens }

// Saved is how many tokens the view has fewer after it; negative if a compaction from the log brings back more.
func (p *Proposal) Saved() int64 {
	return p.Snapshot.ContextTokens - p.Snapshot.ApartTokens - p.Plan.After
}

// Tokens are those of what the plan was made of and of the view that it makes, the system messages that stand apart
// included. From the log, before is more than the view has.
func (p *Proposal) Tokens() (before, after int64) {
	return p.Plan.Before + p.Snapshot.ApartTokens, p.Plan.After + p.Snapshot.ApartTokens
}

// inputOf is a snapshot as the engine takes it.
func inputOf(s postgres.Snapshot, policy policy.Policy, from From) (in compact.Input, err error) {
	in = compact.Input{
		Format: s.Format, Policy: policy, WindowTokens: windowOf(s, policy), OverheadTokens: s.OverheadTokens + int(s.ApartTokens),
		Tail: make([]compact.Entry, 0, len(s.Tail)),
	}
	through := int64(0)
	if from == FromCheckpoint {
		if in.Base, err = loaded(s.Base); err != nil {
			return in, err
		}
		through = in.Base.Through
	}
	for i := 0; i < len(s.Tail); {
		e := &s.Tail[i]
		switch {
		case e.Seq <= through:
			i++
		case e.Format != s.Format:
			n := foreign(s.Format, s.Tail[i:])
			in.Tail = append(in.Tail, translated(s.Format, s.Tail[i:i+n])...)
			i += n
		default:
			in.Tail = append(in.Tail, compact.Entry{Seq: e.Seq, Tokens: int(e.Tokens), Body: e.Body, ViewTokens: int(e.ViewTokens)})
			i++
		}
	}
	return in, nil
}

// foreign counts the messages of other formats that a tail begins with.
func foreign(f session.Format, tail []postgres.LogMessage) int {
	n := 0
	for n < len(tail) && tail[n].Format != f {
		n++
	}
	return n
}

// translated is what messages of other formats say in that of their session, as the view says it.
func translated(f session.Format, run []postgres.LogMessage) (entries []compact.Entry) {
	view := make([]wire.Stored, len(run))
	for i := range run {
		view[i] = wire.Stored{Format: run[i].Format, Body: run[i].Body, Seq: run[i].Seq}
	}
	parts := 0
	for _, m := range wire.Translate(f, view) {
		found, err := wire.Inspect(f, m.Body)
		if err != nil {
			continue // Translate writes nothing that Inspect refuses; its fuzz tests hold it to that
		}
		if n := len(entries); n == 0 || entries[n-1].Seq != m.Seq {
			parts = 0
		}
		entries = append(entries, compact.Entry{Seq: m.Seq, Tokens: found.Tokens, Body: m.Body, Part: parts})
		parts += max(len(found.Parts), 1)
	}
	return entries
}

// windowOf is the window in estimated tokens: smaller if callers report that they are more than was estimated.
func windowOf(s postgres.Snapshot, policy policy.Policy) int {
	if !policy.Tokens.Calibrate || s.Calibration <= 0 {
		return s.WindowTokens
	}
	return max(int(float64(s.WindowTokens)/s.Calibration), 1)
}

// Parts are all parts of the view that a policy could change: those that are changed, and those that stay with the
// reason why.
func (p *Proposal) Parts() []compact.Action { return p.Plan.Parts() }
