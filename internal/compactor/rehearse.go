package compactor

import (
	"context"
	"errors"
	"time"

	"github.com/varve-dev/varve/internal/admit"
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
	CPU     admit.Processors
	Write   compact.Write // writes summaries; nil: Extract, whatever model the policy names
}

// Rehearse decides a compaction as a worker does: it waits until nobody has used the session for a while, is planned,
// checked and weighed, and is done without a stage that fails. wait is how long a job would be snoozed, and then the
// proposal is not carried out; it is nil if nothing was planned. No model is asked but by the rehearsal's Write.
func Rehearse(ctx context.Context, r Rehearsal) (p *Proposal, wait time.Duration, err error) {
	in := &r.Input
	snap := postgres.Snapshot{
		Format: in.Format, WindowTokens: in.WindowTokens, OverheadTokens: in.OverheadTokens,
		ContextTokens: r.Context - int64(in.OverheadTokens), LastAppendAge: r.Age.Seconds(), Calibration: 1,
	}
	if in.Base != nil {
		snap.ViewBytes = int64(len(in.Base.Body))
	}
	for i := range in.Tail {
		snap.ViewBytes += int64(len(in.Tail[i].Body))
	}
	causes := map[due.Threshold]string{due.Hard: causeHard, due.Trigger: causeThreshold, due.Idle: causeIdle}
	decision := newDecision(snap, &in.Policy, causes[r.Reached])
	if decision.waitForCold(snap, &in.Policy) {
		return nil, decision.wait, nil
	}
	if !in.Policy.Enabled {
		in.Policy = *in.Policy.Off()
	}
	p, failed := rehearsed(ctx, snap, &r)
	if failed != nil {
		in.Policy = *essential(in.Policy)
		if p, err = rehearsed(ctx, snap, &r); err != nil {
			return nil, 0, errors.Join(failed, err)
		}
		p.FailedOpen = failed
	}
	p.Decision = decision
	p.Decision.weigh(p)
	return p, p.Decision.wait, nil
}

// rehearsed plans and checks an input.
func rehearsed(ctx context.Context, snap postgres.Snapshot, r *Rehearsal) (*Proposal, error) {
	in := &r.Input
	p := &Proposal{Snapshot: snap, From: FromCheckpoint, Input: *in, cpu: r.CPU}
	if in.Base != nil {
		p.taken.base = len(in.Base.Body)
	}
	for i := range in.Tail {
		p.taken.messages++
		p.taken.tokens += int64(in.Tail[i].Tokens)
		p.taken.bytes += int64(len(in.Tail[i].Body)) + 1
	}
	if err := p.run(ctx, r.Write); err != nil {
		return nil, err
	}
	return p, p.finish(ctx, nil)
}
