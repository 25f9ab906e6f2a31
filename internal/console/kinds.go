package console

import "slices"

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
