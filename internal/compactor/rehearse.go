package compactor

import (
	"context"
	"errors"
	"time"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/postgres"
)

// Rehearsal is a compaction that is due in a session that is in no store.
type Rehearsal struct {
	Input   compact.Input // with the base and the tail
	Context int64         // tokens of the view, overhead included
	Reached due.Threshold // what asked for it
	Age     time.Duration // since the last append
}

// Rehearse decides a compaction as a worker does: it waits until nobody has used the session for a while, is planned,
// checked and weighed, and is done without a stage that fails. wait is how long a job would be snoozed, and then the
// proposal is not carried out; it is nil if nothing was planned. The summary is the one that needs no model, whatever
// the policy names, for nothing is asked outside.
func Rehearse(ctx context.Context, r Rehearsal) (p *Proposal, wait time.Duration, err error) {
	in := &r.Input
	snap := postgres.Snapshot{
		Format: in.Format, WindowTokens: in.WindowTokens, OverheadTokens: in.OverheadTokens,
		ContextTokens: r.Context - int64(in.OverheadTokens), LastAppendAge: r.Age.Seconds(), Calibration: 1,
	}
	for i := range in.Tail { // of which only the sizes count
		snap.Tail = append(snap.Tail, postgres.LogMessage{Seq: in.Tail[i].Seq, Tokens: int64(in.Tail[i].Tokens)})
	}
	causes := map[due.Threshold]string{due.Hard: causeHard, due.Trigger: causeThreshold, due.Idle: causeIdle}
	decision := newDecision(snap, &in.Policy, causes[r.Reached])
	if decision.waitForCold(snap, &in.Policy) {
		return nil, decision.wait, nil
	}
	if !in.Policy.Enabled {
		in.Policy = *in.Policy.Off()
	}
	p = &Proposal{Snapshot: snap, From: FromCheckpoint, Input: *in}
	if failed := p.plan(ctx, nil); failed != nil {
		p = &Proposal{Snapshot: snap, From: FromCheckpoint, Input: *in, FailedOpen: failed}
		p.Input.Policy = *essential(in.Policy)
		if err = p.plan(ctx, nil); err != nil {
			return nil, 0, errors.Join(failed, err)
		}
	}
	p.Decision = decision
	p.Decision.weigh(p)
	return p, p.Decision.wait, nil
}
