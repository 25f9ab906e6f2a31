package compact

import (
	"cmp"
	"fmt"
	"slices"
)

// entry returns the manifest's entry about part i as it is now.
func (s *runState) entry(i int, rule, reason string) Action {
	p := &s.parts[i]
	seq := s.messages[p.message].seq
	a := Action{
		Seq: seq, LastSeq: seq, Part: p.index, Kind: p.action, Stage: p.stage, Rule: rule, Reason: reason,
		Tool: p.tool, TokensBefore: p.now, TokensAfter: p.now,
	}
	if p.action != Keep {
		a.Ref = s.ref(p, &p.replacement).String()
	}
	return a
}

// record adds what was done to part i to the manifest.
func (p *Plan) record(s *runState, i, before int) {
	at, want := &s.parts[i], s.proposed[i]
	want.action, want.stage = at.action, at.stage // which may be less than was proposed
	if at.action == Cap {
		want.head, want.tail = at.headBytes, at.tailBytes
	}
	a := s.entry(i, want.rule(s, i), want.reason(at))
	a.TokensBefore, a.Resource = before, at.resource
	p.enter(a)
}

// rules has the field of the policy that decides on an action; of the others the stage tells which it is.
var rules = map[ActionKind]string{
	CollapseSpace: "whitespace.enabled",
	Bookend:       "trim.hot_zone_min_tokens",
	Stub:          "dedupe.keep_last",
	Stale:         "stale.enabled",
}

var rulesOfStages = map[string]string{
	"dedupe":    "dedupe.arguments",
	"arguments": "arguments.after_tokens",
	"trim":      "trim.degradation_span_ratio",
	"budget":    "budget.tokens",
}

// rule returns the field of the policy that decided.
func (w *proposal) rule(s *runState, i int) string {
	switch {
	case w.action == Cap:
		return s.resultCap().exceeds(s.parts[i].tokens, s.content(i).Text)
	case w.stage == "budget" && s.policy.Budget.Tokens == 0:
		return "budget.ratio"
	}
	return cmp.Or(rules[w.action], rulesOfStages[w.stage])
}

// reason returns in words why an action was taken.
func (w *proposal) reason(p *part) string {
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
	case Stale:
		return fmt.Sprintf("message %d wrote the file", w.newer)
	case Omit:
		if w.newer > 0 {
			return fmt.Sprintf("message %d has a newer call for the same resource: large arguments are omitted",
				w.newer)
		}
		return fmt.Sprintf("%d tokens came after it: large arguments are omitted", w.distance)
	}
	if w.stage == "budget" {
		return "all results together are over their budget, and this is among the oldest"
	}
	return fmt.Sprintf("%d tokens came after it", w.distance)
}

// Parts returns the plan's actions and, between them, every tool result and large call that is kept, with the reason. A
// part that an earlier compaction has shortened has the action of that compaction.
func (p *Plan) Parts() []Action {
	s := p.state
	all := slices.Clone(p.Actions)
	acted := make([]bool, len(s.parts))
	for _, e := range p.edits {
		acted[e.part] = true
	}
	for i := range s.parts {
		if acted[i] || p.evicts(s.parts[i].message) {
			continue
		}
		rule, reason := p.whyKept(i)
		all = append(all, s.entry(i, rule, reason))
	}
	slices.SortStableFunc(all, func(a, b Action) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Part, b.Part))
	})
	return all
}

// whyKept returns why nothing more is done to part i: the field of the policy that decides, and the reason in words.
func (plan *Plan) whyKept(i int) (rule, reason string) {
	s := plan.state
	p := &s.parts[i]
	switch {
	case p.action != Keep:
		return "", "as the last checkpoint left it"
	case !p.paired && p.kind == result:
		return "", "it answers no call of the session"
	case !p.paired:
		return "", "the call has no result yet"
	case p.valueBytes() == 0:
		return "", "it is empty"
	case !s.free[i]:
		return "protect.tools", "the tool is protected"
	case p.message >= plan.covered:
		return "", "other calls beside it are still in flight"
	case s.protected(p.message):
		return s.protector(p.message)
	case !slices.ContainsFunc(plan.Entered, func(seq int64) bool { return seq > 0 }):
		return "target", "the view has never been over its target"
	case s.proposed[i].lowers(p):
		return "", "its replacement would not be smaller"
	case p.kind == arguments:
		const reason = "%d tokens came after the call, or its arguments are not of a kind that is omitted"
		return "arguments.after_tokens", fmt.Sprintf(reason, s.distance(p.message))
	case s.policy.Trim.Enabled && p.tokens < s.policy.Trim.MinTokens:
		return "trim.min_tokens", fmt.Sprintf("%d tokens are too few to be worth it", p.tokens)
	case s.policy.Trim.Enabled && float64(s.distance(p.message)) < s.hotZone():
		return "trim.hot_zone_min_tokens", fmt.Sprintf("only %d tokens came after it", s.distance(p.message))
	}
	return "", "no stage that was entered applies to it"
}

// protector returns what protects message m.
func (s *runState) protector(m int) (rule, reason string) {
	limits := &s.policy.Protect
	switch {
	case m < s.pinned:
		return "", "it leads the session"
	case s.units.Unit()-s.messages[m].unit < limits.LastUnits:
		return "protect.last_units", fmt.Sprintf("it is in one of the newest %d units", limits.LastUnits)
	case len(s.messages)-m <= limits.LastMessages:
		return "protect.last_messages", fmt.Sprintf("it is in one of the newest %d messages", limits.LastMessages)
	}
	return "protect.last_turns", fmt.Sprintf("it is in one of the newest %d turns", limits.LastTurns)
}
