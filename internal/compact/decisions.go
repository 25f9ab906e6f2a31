package compact

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
)

// Decision is what a compaction decided about a tool result or a large call, and why, as counters are labelled with it.
type Decision string

// The decisions. Those that llm-interactive-proxy has, too, have its names.
const (
	Applied        Decision = "applied"
	AppliedBefore  Decision = "applied_before" // by an earlier compaction
	DeniedByPolicy Decision = "denied_by_policy"
	BelowMinTokens Decision = "skipped_below_min_tokens"
	BelowThreshold Decision = "below_token_threshold"
	Protected      Decision = "protected"
	TooRecent      Decision = "too_recent"
	NotSmaller     Decision = "not_smaller"
	Unpaired       Decision = "unpaired" // a result without a call, or a call without a result
	InFlight       Decision = "in_flight"
	Empty          Decision = "empty"
	NoStageApplies Decision = "no_stage_applies"
)

// verdict is why nothing more is done to a part.
type verdict struct {
	decision Decision
	rule     string // the field of the policy that decides
	reason   string // in words; n replaces its %d
	n        int64
}

func (v *verdict) words() string {
	if strings.Contains(v.reason, "%d") {
		return fmt.Sprintf(v.reason, v.n)
	}
	return v.reason
}

// Parts returns the plan's actions and, between them, every tool result and large call that is kept, with the reason. A
// part that an earlier compaction has shortened has the action of that compaction. All have their decision, and those
// of replaced parts the digests of the original and of what the view has.
func (p *Plan) Parts() []Action {
	s := p.state
	all := slices.Clone(p.Actions)
	edited, shown := map[place]edit{}, map[place]int{}
	for _, e := range p.edits {
		edited[s.place(e.part)] = e
	}
	for i := range s.parts {
		if p.earlier[s.place(i)] {
			shown[s.place(i)] = i
		}
	}
	for i := range all {
		all[i].Decision = Applied
		at := place{all[i].Seq, all[i].Part}
		if e, ok := edited[at]; ok {
			all[i].setDigests(&s.parts[e.part], p.newText(e))
		} else if part, ok := shown[at]; ok && !p.evicts(s.parts[part].message) {
			all[i].setDigests(&s.parts[part], s.viewText(part))
		}
	}
	p.eachKept(func(i int, why verdict) {
		a := s.entry(i, why.rule, why.words())
		a.Decision = why.decision
		a.BytesBefore = s.textBytes(i)
		a.BytesAfter = a.BytesBefore
		if a.Kind != Keep {
			a.setDigests(&s.parts[i], s.viewText(i))
		}
		all = append(all, a)
	})
	slices.SortStableFunc(all, func(a, b Action) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Part, b.Part))
	})
	return all
}

// place returns which part of the log part i is.
func (h *history) place(i int) place {
	return place{h.parts[i].seq, h.parts[i].index}
}

func (a *Action) setDigests(p *part, now []byte) {
	after := sha256.Sum256(now)
	a.SHA256, a.SHA256After = hex.EncodeToString(p.replacement.sum[:]), hex.EncodeToString(after[:])
}

// Evaluation is a decision about a tool of a category.
type Evaluation struct {
	Category string // one of policy.Operations, "" if the tool is not known
	Decision Decision
}

// Evaluations counts the decisions about the parts of the view that remain in it.
func (p *Plan) Evaluations() map[Evaluation]int {
	count := map[Evaluation]int{}
	for i := range p.Actions {
		if a := &p.Actions[i]; a.Part >= 0 {
			count[Evaluation{a.Category, Applied}]++
		}
	}
	p.eachKept(func(i int, why verdict) { count[Evaluation{p.state.parts[i].category(), why.decision}]++ })
	return count
}

// eachKept calls f for each part of the view to which the plan does nothing.
func (p *Plan) eachKept(f func(i int, why verdict)) {
	s := p.state
	acted := make([]bool, len(s.parts))
	for _, e := range p.edits {
		acted[e.part] = true
	}
	superseded := s.superseded()
	for i := range s.parts {
		listed := s.parts[i].kind != prose || s.parts[i].action != Keep
		if listed && !acted[i] && !p.evicts(s.parts[i].message) && !p.earlier[s.place(i)] {
			f(i, p.whyKept(i, superseded[i]))
		}
	}
}

// superseded returns the results that newer ones supersede, whatever the policy allows to do to them.
func (s *runState) superseded() map[int]bool {
	found := map[int]bool{}
	if !s.policy.Dedupe.Enabled {
		return found
	}
	occurrences, superseding := s.supersedingOccurrences()
	for k, newer := range superseding {
		if i := occurrences[k].part; newer >= 0 && i >= 0 && s.parts[i].identity != (identity{}) {
			found[i] = true
		}
	}
	return found
}

// whyKept returns why nothing more is done to part i.
func (p *Plan) whyKept(i int, superseded bool) verdict {
	s := p.state
	at := &s.parts[i]
	switch {
	case at.action != Keep:
		return verdict{decision: AppliedBefore, reason: "as the last checkpoint left it"}
	case !at.paired && at.kind == result:
		return verdict{decision: Unpaired, reason: "it answers no call of the session"}
	case !at.paired:
		return verdict{decision: Unpaired, reason: "the call has no result yet"}
	case at.valueBytes() == 0:
		return verdict{decision: Empty, reason: "it is empty"}
	case !s.free[i]:
		return verdict{decision: DeniedByPolicy, rule: "protect.tools", reason: "the tool is protected"}
	case at.message >= p.covered:
		return verdict{decision: InFlight, reason: "other calls beside it are still in flight"}
	case s.protected(at.message):
		return s.protector(at.message)
	case !slices.ContainsFunc(p.Entered, func(seq int64) bool { return seq > 0 }):
		return verdict{decision: BelowThreshold, rule: "target", reason: "the view has never been over its target"}
	case s.proposed[i].lowers(at):
		return verdict{decision: NotSmaller, reason: "its replacement would not be smaller"}
	case superseded && !s.dedupable(i):
		return verdict{decision: DeniedByPolicy, rule: "dedupe",
			reason: "a newer result for the same resource exists, but the policy's lists keep those of this tool"}
	case superseded && at.tokens < s.policy.Dedupe.MinTokens:
		return verdict{decision: BelowMinTokens, rule: "dedupe.min_tokens", n: int64(at.tokens),
			reason: "a newer result for the same resource exists, but %d tokens are too few to be worth it"}
	case superseded && s.bytesOf(i) < s.policy.Dedupe.MinBytes:
		return verdict{decision: BelowMinTokens, rule: "dedupe.min_bytes", n: int64(s.bytesOf(i)),
			reason: "a newer result for the same resource exists, but %d bytes are too few to be worth it"}
	case at.kind == arguments:
		return verdict{decision: NoStageApplies, rule: "arguments.after_tokens", n: s.distance(at.message),
			reason: "%d tokens came after the call, or its arguments are not of a kind that is omitted"}
	}
	return s.untrimmed(at)
}

// untrimmed returns why stage trim does nothing to a result.
func (s *runState) untrimmed(p *part) verdict {
	trim := &s.policy.Trim
	switch {
	case trim.Enabled && p.tokens < trim.MinTokens:
		return verdict{decision: BelowMinTokens, rule: "trim.min_tokens", n: int64(p.tokens),
			reason: "%d tokens are too few to be worth it"}
	case trim.Enabled && float64(s.distance(p.message)) < s.hotZone():
		return verdict{decision: TooRecent, rule: "trim.hot_zone_min_tokens", n: s.distance(p.message),
			reason: "only %d tokens came after it"}
	}
	return verdict{decision: NoStageApplies, reason: "no stage that was entered applies to it"}
}

// protector returns what protects message m.
func (s *runState) protector(m int) verdict {
	limits := &s.policy.Protect
	in := func(field, reason string, n int) verdict {
		return verdict{decision: Protected, rule: field, reason: reason, n: int64(n)}
	}
	switch {
	case s.locks(m):
		return in("", "it leads the session, or has the provider's own compaction", 0)
	case s.units.Unit()-s.messages[m].unit < limits.LastUnits:
		return in("protect.last_units", "it is in one of the newest %d units", limits.LastUnits)
	case len(s.messages)-m <= limits.LastMessages:
		return in("protect.last_messages", "it is in one of the newest %d messages", limits.LastMessages)
	}
	return in("protect.last_turns", "it is in one of the newest %d turns", limits.LastTurns)
}

// size is what a part has in the view.
type size struct{ tokens, bytes int }

// textBytes returns the bytes of the text that the view has of part i.
func (s *runState) textBytes(i int) int {
	if s.parts[i].action == Keep {
		return len(s.content(i).Stored)
	}
	return len(s.viewText(i))
}

// viewText returns the text that the view has of part i, which a compaction has replaced.
func (s *runState) viewText(i int) []byte {
	return decoded(s.parts[i].value.Of(s.body(s.parts[i].message)))
}

// newText returns the text that an edit puts into the view.
func (p *Plan) newText(e edit) []byte { return decoded(p.text[e.start+e.lead : e.end-e.trail]) }

// decoded returns the text of a string literal, and any other value as it is.
func decoded(value []byte) []byte {
	if len(value) == 0 || value[0] != '"' {
		return value
	}
	text, _ := rawjson.Unquote(nil, value)
	return text
}

// category returns what the part's tool does, "" if the tool is not known.
func (p *part) category() string {
	if p.tool == "" {
		return ""
	}
	return string(p.does.operation())
}

// name returns the resource of a part with its tool, as llm-interactive-proxy names it in reports.
func (p *part) name() string {
	of := p.resource
	if of == "" && len(p.paths) > 0 {
		of = p.paths[0]
	}
	name := p.tool
	for _, more := range []string{of, p.detail} {
		if more != "" {
			name += ":" + more
		}
	}
	return mask(name)
}
