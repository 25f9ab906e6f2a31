package compact

import (
	"slices"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// StateFacts is what the state of a checkpoint says of results.
type StateFacts struct {
	Replaced []string // refs of the parts that the body does not show whole: all were persisted
	Named    []string // refs of results that a summary or a notice names: some are in the log only
}

// ReadState reads the state of a checkpoint of this engine version as the next compaction would.
func ReadState(f session.Format, base *Checkpoint) (facts StateFacts, err error) {
	h := &history{in: Input{Format: f}, entered: make([]int64, len(stages)), provider: provider.Of(f)}
	h.units.Items = h.provider.Items
	if err := h.restore(base); err != nil {
		return facts, err
	}
	for i := range h.parts {
		if p := &h.parts[i]; p.action != Keep && p.kind != prose {
			facts.Replaced = append(facts.Replaced, h.ref(p, &p.replacement).String())
		}
	}
	for m := range h.messages {
		for _, named := range h.messages[m].largest {
			facts.Named = append(facts.Named, named.ref)
		}
	}
	slices.Sort(facts.Named)
	facts.Named = slices.Compact(facts.Named)
	return facts, nil
}
