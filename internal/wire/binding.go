package wire

import (
	"math"
	"slices"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// Models that bind their thinking (provider.BindsThinking) refuse it behind anything but what stood before it when it
// was made: "The block is bound to a different conversation". So it is left out of every message before which the view
// has changed since: those that Options.Unbound names, those between a call and its late result, and those between an
// image that newer ones have made a text and the last of these.

// unbound is a range of messages without their thinking: from after one seq up to the first message after another that
// is not the assistant's. An answer of the assistant's directly behind a change was written without knowing of it.
type unbound struct{ after, before int64 }

func (r *repairer) binds() bool {
	return provider.BindsThinking(r.Model) && provider.SendsThinking(r.target)
}

// unbind leaves the thinking of messages of some ranges out, and the messages that have nothing else.
func (r *repairer) unbind(list []Message, ranges []Seqs) []Message {
	if len(ranges) == 0 || !r.binds() {
		return list
	}
	var changed []unbound
	for _, s := range ranges {
		if s.Through >= r.compacted { // else the prefix that is checked begins behind it
			changed = append(changed, unbound{after: s.After, before: r.spokenAfter(list, s.Through)})
		}
	}
	kept := list[:0]
	for i := range list {
		n := &list[i]
		isUnbound := n.Raw != nil && slices.ContainsFunc(changed, func(u unbound) bool {
			seq := r.view[n.Origin].Seq
			return u.after < seq && seq < u.before
		})
		if isUnbound && r.dropThoughts(n) && len(n.Blocks) == 0 {
			continue
		}
		kept = append(kept, *n)
	}
	return kept
}

// spokenAfter returns the seq of the first message after one that is not the assistant's.
func (r *repairer) spokenAfter(list []Message, seq int64) int64 {
	first := int64(math.MaxInt64)
	for i := range list {
		if n := &list[i]; n.Raw != nil && n.Role != Assistant {
			if at := r.view[n.Origin].Seq; at > seq {
				first = min(first, at)
			}
		}
	}
	return first
}

// dropThoughts leaves out what Anthropic signed, and reports whether there was any.
func (r *repairer) dropThoughts(n *Message) bool {
	signed := func(p Block) bool {
		if p.Kind != Reasoning || r.target == session.AISDK && valueOf(reasoningMetadata(&p), "anthropic") == nil {
			return false
		}
		return isSigned(p.Signature)
	}
	if n.Role != Assistant || !slices.ContainsFunc(n.Blocks, signed) {
		return false
	}
	n.Blocks, n.Edited = slices.DeleteFunc(slices.Clone(n.Blocks), signed), true
	r.repaired("V-A8", "reasoning_dropped", n, "thinking is left out: what stands before it has changed since")
	return true
}

// moved notes that the result of a call came after other messages: what follows the call has changed.
func (r *repairer) moved(call, result *Message) {
	if call.Raw == nil || result.Raw == nil {
		return
	}
	a, b := r.view[call.Origin].Seq, r.view[result.Origin].Seq
	r.late = append(r.late, Seqs{After: min(a, b), Through: max(a, b)})
}
