package compactor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/protocol"
)

// Report returns what a run of the proposal records of it.
func (p *Proposal) Report() protocol.Report {
	r := protocol.Report{
		From: string(p.From), MessagesTotal: p.Snapshot.LastSeq, Actions: map[string]int{}, Reasons: map[string]int{},
		ResultsPersisted: len(p.Plan.Results), ViewTokensBefore: p.View(), TokensSaved: p.Saved(),
		OverflowRisk: p.overflow(),
		Decisions:    decisions(p.Plan.Evaluations()), FailedOpen: []string{},
	}
	touched := map[int64]bool{}
	stale := map[string]bool{}
	for i := range p.Plan.Actions {
		a := &p.Plan.Actions[i]
		r.Actions[a.Kind.String()]++
		r.Reasons[a.Rule]++
		touched[a.Seq] = true
		r.MessagesCompacted += int(max(a.LastSeq-a.Seq, 0)) // the others of a range
		if a.Kind == compact.Stub {
			r.Stale.Count++
			stale[a.Resource] = true
		}
	}
	r.MessagesCompacted += len(touched)
	r.Stale.ResourcesTotal = len(stale)
	r.Stale.Resources = slices.AppendSeq([]string{}, maps.Keys(stale))
	slices.Sort(r.Stale.Resources)
	r.Stale.Resources = r.Stale.Resources[:min(len(stale), staleResources)]
	r.BytesBefore, r.BytesAfter = p.bytes()
	r.KeptPrefix = p.kept()
	r.FailedOpen = append(r.FailedOpen, p.failures()...)
	return r
}

// staleResources is how many resources a report names.
const staleResources = 100

// decisions sums evaluations up.
func decisions(of map[compact.Evaluation]int) protocol.Decisions {
	d := protocol.Decisions{ByCategory: map[string]int{}, ByReason: map[string]int{}}
	for e, n := range of {
		d.Processed += n
		d.ByCategory[cmp.Or(e.Category, "unknown")] += n
		d.ByReason[string(e.Decision)] += n
	}
	d.Applied = d.ByReason[string(compact.Applied)]
	return d
}

// failures returns what failed and was done without.
func (p *Proposal) failures() (list []string) {
	if p.FailedOpen != nil {
		first, _, _ := strings.Cut(p.FailedOpen.Error(), "\n")
		list = append(list, first)
	}
	for _, s := range p.Plan.Stages {
		if s.Error != "" {
			list = append(list, s.Stage+": "+s.Error)
		}
	}
	return list
}

// bytes returns the bytes, with commas, of what the plan was made of and of the view that it makes.
func (p *Proposal) bytes() (before, after int64) {
	before, after = p.taken.bytes-1, -1
	if p.taken.base > 0 {
		before += int64(p.taken.base) + 1
	}
	if len(p.Made.Body) > 0 {
		after += int64(len(p.Made.Body)) + 1
	}
	for i := range p.Input.Tail {
		e := &p.Input.Tail[i]
		if e.Seq > p.Made.Through {
			after += int64(len(e.Body)) + 1
		}
	}
	return max(before, 0), max(after, 0)
}

func (p *Proposal) kept() protocol.KeptPrefix {
	k := protocol.KeptPrefix{Tokens: p.Kept}
	if p.Plan.After > 0 {
		k.Share = float64(k.Tokens) / float64(p.Plan.After)
	}
	return k
}

func (p *Proposal) overflow() *protocol.OverflowRisk {
	overhead, window := int64(p.Input.OverheadTokens), int64(p.Input.WindowTokens)
	over := p.Plan.After + overhead - window
	if over <= 0 {
		return nil
	}
	return &protocol.OverflowRisk{OverBy: over, Recommendation: recommendation(p.Input.Policy, overhead, window)}
}

// recommendation returns the first thing that would help.
func recommendation(policy policy.Policy, overhead, window int64) string {
	protect := policy.Protect
	switch {
	case overhead > window/2:
		return fmt.Sprintf("%d of %d tokens are overhead: send fewer tools or a shorter system prompt",
			overhead, window)
	case !policy.Trim.Enabled:
		return "switch trim on: nothing shortens old results under this policy"
	case !policy.Summarise.Enabled && !policy.Truncate.Enabled:
		return "switch summarise or truncate on: texts and calls are never shortened under this policy"
	case len(protect.Tools) > 0 || protect.LastUnits+protect.LastMessages+protect.LastTurns > 0:
		return "protect less, or let the session have a larger window: what is protected alone does not fit"
	}
	return "let the session have a larger window, or begin a new one"
}
