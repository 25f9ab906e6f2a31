package compact

import "fmt"

// record adds what was done to part i to the manifest.
func (p *Plan) record(s *runState, i, before int) {
	at, want := &s.parts[i], s.proposed[i]
	want.action, want.stage = at.action, at.stage // which may be less than was proposed
	if at.action == Cap {
		want.head, want.tail = at.headBytes, at.tailBytes
	}
	seq := s.messages[at.message].seq
	p.enter(Action{
		Seq: seq, LastSeq: seq, Part: at.index, Kind: at.action, Stage: want.stage, Rule: want.rule(s, i),
		Reason: want.reason(at), Tool: at.tool, TokensBefore: before, TokensAfter: at.now,
		Ref: s.ref(at, &at.replacement).String(), Resource: at.resource,
	})
}

// rule returns the field of the policy that decided.
func (w *proposal) rule(s *runState, i int) string {
	switch w.action {
	case Cap:
		return s.resultCap().exceeds(s.parts[i].tokens, s.content(i).Text)
	case Bookend:
		return "trim.hot_zone_min_tokens"
	case Stub:
		return "dedupe.keep_last"
	case Stale:
		return "stale.enabled"
	case CollapseSpace:
		return "whitespace.enabled"
	}
	switch w.stage {
	case "budget":
		if s.policy.Budget.Tokens == 0 {
			return "budget.ratio"
		}
		return "budget.tokens"
	case "arguments":
		return "arguments.after_tokens"
	case "dedupe":
		return "dedupe.arguments"
	}
	return "trim.degradation_span_ratio"
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
