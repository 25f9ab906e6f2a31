package console

import (
	"encoding/json"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/protocol"
)

// bar shows how large a view is beside what its policy says of it. All are tokens by the provider's count.
type bar struct {
	View, Target, Trigger, Hard, Window int64
}

// barOf returns the bar of a session under a policy, of which nil is not known.
func barOf(s *protocol.Session, p *policy.Policy) bar {
	b := bar{View: s.CalibratedTokens, Window: int64(s.WindowTokens)}
	if p == nil {
		return b
	}
	share := func(of float64) int64 { return int64(of * float64(s.WindowTokens)) }
	b.Target, b.Trigger = share(p.Target), share(p.Trigger)
	b.Hard = share(p.Hard)
	if p.TriggerTokens > 0 {
		b.Trigger = int64(p.TriggerTokens)
	}
	if p.TargetTokens > 0 {
		b.Target = int64(p.TargetTokens)
	}
	return b
}

// effective reads the policy in force, nil if this version does not understand it.
func effective(document json.RawMessage) *policy.Policy {
	p, err := policy.Parse(document)
	if err != nil {
		return nil
	}
	return &p
}

// width is how many units of its picture a bar has.
const barWidth = 200

// At returns where a number of tokens is on the bar.
func (b bar) At(tokens int64) int64 {
	largest := max(b.View, b.Window, 1)
	return min(tokens*barWidth/largest, barWidth)
}

// Width returns the length of the view on the bar: of the smallest one something is seen.
func (b bar) Width() int64 { return max(b.At(b.View), min(b.View, 1)) }

// State says how the view stands: "over" its window, above its "trigger", or "ok".
func (b bar) State() string {
	switch {
	case b.View > b.Window:
		return "over"
	case b.Trigger > 0 && b.View >= b.Trigger:
		return "trigger"
	}
	return "ok"
}
