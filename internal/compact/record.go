package compact

import (
	"cmp"
	"fmt"
)

// entry returns the manifest's entry about part i as it is now.
func (s *runState) entry(i int, rule, reason string) Action {
	p := &s.parts[i]
	a := Action{
		Seq: p.seq, LastSeq: p.seq, Part: p.index, Kind: p.action, Stage: p.stage, Rule: rule, Reason: reason,
		Tool: p.tool, Category: p.category(), TokensBefore: p.now, TokensAfter: p.now,
	}
	if p.action != Keep {
		a.Ref = s.refText(p, &p.replacement)
		a.Source = p.source
	}
	return a
}

// record adds what was done to part i to the manifest.
func (p *Plan) record(s *runState, i int, before size) {
	at, want := &s.parts[i], s.proposed[i]
	want.action, want.stage = at.action, at.stage // which may be less than was proposed
	if at.action == Cap {
		want.head, want.tail = at.headBytes, at.tailBytes
	}
	a := s.entry(i, want.rule(s, i), want.reason(at))
	a.TokensBefore, a.BytesBefore = before.tokens, before.bytes
	a.BytesAfter = len(p.newText(p.edits[len(p.edits)-1]))
	if a.Kind == Stub {
		a.Resource = at.name()
	}
	p.enter(a)
}

// rules maps an action to the policy field that decides on it. For actions that are missing, the stage names the field.
var rules = map[ActionKind]string{
	CollapseSpace: "whitespace.enabled",
	Bookend:       "trim.hot_zone_min_tokens",
	Stub:          "dedupe.keep_last",
}

var rulesOfStages = map[string]string{
	"dedupe":    "dedupe.arguments",
	"arguments": "arguments.after_tokens",
	"trim":      "trim.degradation_span_ratio",
	"budget":    "budget.tokens",
	"hard":      "protect.yields",
}

// rule returns the field of the policy that decided.
func (w *proposal) rule(s *runState, i int) string {
	switch {
	case w.action == Cap:
		return s.resultCap(i).exceeds(s.parts[i].tokens, s.content(i).Text)
	case w.media && w.stage == "budget":
		return "media_bytes"
	case w.stage == "budget" && s.policy.Budget.Tokens == 0:
		return "budget.ratio"
	case w.stage == "hard":
		return "protect.yields"
	}
	return cmp.Or(rules[w.action], rulesOfStages[w.stage])
}

// reason returns in words why an action was taken.
func (w *proposal) reason(p *part) string {
	if w.stage == "hard" {
		return "it is protected, but the view would have been above its hard limit"
	}
	switch w.action {
	case CollapseSpace:
		return "its white space is collapsed"
	case Cap:
		return fmt.Sprintf("%d tokens in one result: %d bytes of its head and %d of its tail stay",
			p.tokens, w.head, w.tail)
	case Bookend:
		return fmt.Sprintf("%d tokens came after it: %d characters of head and tail stay", w.distance, w.head)
	case Stub:
		return fmt.Sprintf("message %d has a newer result for the same resource", w.newer)
	case Omit:
		if w.newer > 0 {
			return fmt.Sprintf("message %d has a newer call for the same resource: large arguments are omitted",
				w.newer)
		}
		return fmt.Sprintf("%d tokens came after it: large arguments are omitted", w.distance)
	}
	if w.media && w.stage == "budget" {
		return "all results with pictures or files are over their bytes, and this is among the oldest"
	}
	if w.stage == "budget" {
		return "all results together are over their budget, and this is among the oldest"
	}
	return fmt.Sprintf("%d tokens came after it", w.distance)
}
