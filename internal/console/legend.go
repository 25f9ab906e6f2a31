package console

import (
	"cmp"
	"slices"

	"github.com/varve-dev/varve/internal/protocol"
)

// kind is what can happen to a message or a part, with the words of the legend.
type kind struct {
	Do, Word, Means string
}

// kinds are in the order of the engine's ladder, the whole part first.
var kinds = []kind{
	{kept, "kept", "the view has it as it was appended"},
	{"squeeze", "squeezed", "its white space is collapsed"},
	{"cap", "capped", "head and tail of an oversized result stay"},
	{"bookend", "bookend", "head and tail stay, the shorter the older"},
	{"stub", "superseded", "a newer result for the same resource took its place"},
	{"stale", "stale", "its file was written later"},
	{"placeholder", "placeholder", "a line with the tool and the beginning stays"},
	{"clear", "cleared", "a line stays"},
	{"omit", "omitted", "the call stays without its large arguments"},
	{"summarise", "summarised", "a summary stands for the messages"},
	{"drop", "truncated", "a notice stands for the messages"},
	{superseded, "replaced", "another message took its place"},
	{removed, "removed", "it was taken out of the views"},
	{repaired, "repaired", "changed at reading, because the provider would refuse it"},
}

// rung returns the place of an action on the ladder.
func rung(do string) int { return slices.IndexFunc(kinds, func(k kind) bool { return k.Do == do }) }

// kindOf returns an action with its words; one of a later version has its own name.
func kindOf(do string) kind {
	if i := rung(do); i >= 0 {
		return kinds[i]
	}
	return kind{Do: "other", Word: do}
}

// legendEntry sums up what was done in one way.
type legendEntry struct {
	kind
	Count         int
	Before, After int64
	First         int64 // seq of the first
}

// legendOf sums a manifest up by what was done.
func legendOf(lost []protocol.ManifestEntry) (list []legendEntry) {
	for i := range lost {
		e := &lost[i]
		at := slices.IndexFunc(list, func(l legendEntry) bool { return l.Do == e.Do })
		if at < 0 {
			at = len(list)
			list = append(list, legendEntry{kind: kindOf(e.Do), First: e.Seq})
		}
		list[at].Count++
		list[at].Before += e.TokensBefore
		list[at].After += e.TokensAfter
	}
	slices.SortStableFunc(list, func(a, b legendEntry) int { return cmp.Compare(rung(a.Do), rung(b.Do)) })
	return list
}

// stretch is a piece of the strip that shows what became of the log from its first message to its last.
type stretch struct {
	kind
	X, Width int   // of stripWidth
	Seq      int64 // of its first message
}

// stripWidth is how many pieces the strip has at most.
const stripWidth = 400

// mapOf returns the stretches of a log: at each place the action that has saved the most there.
func mapOf(lost []protocol.ManifestEntry, last int64) (list []stretch) {
	if last == 0 {
		return nil
	}
	var saved [stripWidth]int64
	var do [stripWidth]string
	place := func(seq int64) int64 { return min((seq-1)*stripWidth/last, stripWidth-1) }
	for i := range lost {
		e := &lost[i]
		for x := place(max(e.Seq, 1)); x <= place(min(e.LastSeq, last)); x++ {
			if more := e.TokensBefore - e.TokensAfter; do[x] == "" || more > saved[x] {
				saved[x], do[x] = more, e.Do
			}
		}
	}
	for x := range stripWidth {
		did := cmp.Or(do[x], kept)
		if n := len(list); n > 0 && list[n-1].Do == did {
			list[n-1].Width++
			continue
		}
		seq := (int64(x)*last + stripWidth - 1) / stripWidth
		list = append(list, stretch{kindOf(did), x, 1, seq + 1})
	}
	return list
}
