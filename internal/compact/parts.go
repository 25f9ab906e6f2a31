package compact

import (
	"cmp"
	"fmt"
	"slices"
)

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
		at := &s.parts[i]
		if acted[i] || p.evicts(at.message) {
			continue
		}
		rule, reason := p.whyKept(i)
		seq := s.messages[at.message].seq
		a := Action{
			Seq: seq, LastSeq: seq, Part: at.index, Kind: at.action, Stage: at.stage, Rule: rule, Reason: reason,
			Tool: at.tool, TokensBefore: at.now, TokensAfter: at.now,
		}
		if at.action != Keep {
			a.Ref = s.ref(at, &at.replacement).String()
		}
		all = append(all, a)
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
