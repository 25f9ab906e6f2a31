package policy

import (
	"iter"
	"reflect"
)

// field says what one leaf of a policy may hold, and what it does. The parser, the published schema and
// docs/policy.md are made of these.
type field struct {
	low, high float64  // of a number
	orZero    bool     // 0 is possible, too, and switches it off
	bytes     int      // the most in a text, or in each of a list
	empty     bool     // a text may be empty
	line      bool     // it has to be one line
	names     []string // that a template may name
	needs     string   // one of them that it has to
	does      string
}

// span says which numbers are possible, "" if the field holds none.
func (f field) span() string {
	if f.low == f.high {
		return ""
	}
	return " from " + decimal(f.low) + " to " + decimal(f.high)
}

func ranged(low, high float64, does string) field {
	return field{low: low, high: high, does: does}
}

func rangedOrOff(low, high float64, does string) field {
	return field{low: low, high: high, orZero: true, does: does}
}

func described(does string) field { return field{bytes: maxNameBytes, does: does} }

func prose(does string) field {
	return field{bytes: maxPromptBytes, empty: true, does: does}
}

func directives(does string) field {
	return field{bytes: maxDirectiveBytes, line: true, does: does}
}

func templated(does string, names []string) field {
	return field{bytes: maxTemplateBytes, names: names, does: does}
}

// How large a policy may be. It is in every answer about its session and is parsed by every compaction.
const (
	maxBytes          = 64 << 10
	maxListed         = 1_000 // in one list
	maxNameBytes      = 128   // of one name
	maxTools          = 2_000 // tools in a table, those of the profile included
	maxTemplateBytes  = 1_000
	maxDirectiveBytes = 1_000
	maxPromptBytes    = 16_000
)

// MinCutChars is the least that a bookend may keep, in characters. It makes every bookend longer than the stub and
// the placeholder below it, whatever the tool's name and the preview are.
const MinCutChars = 128

// fields has every leaf of a policy by its JSON pointer.
var fields = map[string]field{
	"/profile": described("the named policy that the other fields change"),
	"/trigger": ranged(0.01, 1, "a compaction starts when the view, with `overhead_tokens`, has this share of the window"),
	"/target":  ranged(0.001, 1, "each stage is entered only while the view has more than this share; below `trigger`"),
	"/hard":    ranged(0.01, 1, "at this share a compaction starts whatever `cache` and `economy` say; `trigger` at least"),

	"/cache/ttl_seconds": ranged(0, 604_800, "a compaction waits until the provider's prompt cache is cold, this long after the last append; 0 does not wait"),

	"/economy/enabled":     described("a compaction waits that would cost more in a broken prompt cache than it saves"),
	"/economy/cache_read":  ranged(0, 1, "price of an input token that is read from the cache; one that no cache holds costs 1"),
	"/economy/cache_write": ranged(0, 10, "price of an input token that is written to the cache; `cache_read` at least"),
	"/economy/ttl_seconds": ranged(0, 604_800, "how long the provider keeps a prefix after its last use"),
	"/economy/horizon":     ranged(1, 10_000, "how many more requests are expected to be sent with the view"),

	"/tokens/tokenizer": described("how tokens are counted: a linear estimate, or exactly by a vocabulary"),
	"/tokens/calibrate": described("the triggers correct the estimate by the usage that callers report"),

	"/tools/table":      described("which table of well-known tools says what a tool does"),
	"/tools/operations": described("what your own tools do, by name; it beats the table"),

	"/protect/last_units":     ranged(0, 1_000, "the newest units are not touched; a giant result in them is still capped"),
	"/protect/last_messages":  ranged(0, 1_000, "nor are this many of the newest messages"),
	"/protect/last_turns":     ranged(0, 1_000, "nor is anything since the n-th newest message of the user"),
	"/protect/newest_user":    described("nor is the newest message of the user that is not an answer to calls"),
	"/protect/tools":          described("nor are the calls and results of these tools"),
	"/protect/max_turn_ratio": ranged(0, 1, "of a turn larger than this share of the target `last_turns` keeps the newest units only"),

	"/cap/enabled":        described("a single oversized result is cut to its head and tail"),
	"/cap/at_insertion":   described("as soon as it is appended: it never enters a view whole"),
	"/cap/max_tokens":     rangedOrOff(100, 10_000_000, "a result with more tokens is oversized"),
	"/cap/max_bytes":      rangedOrOff(400, 100_000_000, "so is one with more UTF-8 bytes; `head_chars` + `tail_chars` at least"),
	"/cap/max_chars":      rangedOrOff(400, 100_000_000, "so is one with more characters (UTF-16 units)"),
	"/cap/max_lines":      rangedOrOff(2, 10_000_000, "so is one with more lines"),
	"/cap/max_line_chars": rangedOrOff(MinCutChars, 1_000_000, "longer lines are clipped"),
	"/cap/head_chars":     ranged(MinCutChars, 1_000_000, "kept of its beginning; `trim.bookend_max_chars` at least"),
	"/cap/tail_chars":     ranged(0, 1_000_000, "kept of its end; `trim.bookend_max_chars` at least, unless `trim` is off"),
	"/cap/whole_lines":    described("head and tail end where a line does, unless nothing would be left"),

	"/dedupe/enabled":          described("an older result for the same resource becomes a line, unless the newer one is empty or an error"),
	"/dedupe/identity":         described("which calls are for the same resource: equal arguments, the resource that well-known arguments name, or the listed `fields`"),
	"/dedupe/fields":           described("with `identity` `fields`: the arguments that identify a call, by tool"),
	"/dedupe/tool_only":        described("with `identity` `fields`: all calls of a tool without `fields` are the same one"),
	"/dedupe/keep_last":        ranged(1, 1_000, "results of one resource that stay"),
	"/dedupe/min_tokens":       ranged(0, 1_000_000, "smaller results stay"),
	"/dedupe/allow_tools":      described("only these tools; empty: all"),
	"/dedupe/deny_tools":       described("not these tools"),
	"/dedupe/allow_operations": described("only tools that do these; empty: all"),
	"/dedupe/deny_operations":  described("not tools that do these"),
	"/dedupe/arguments":        described("large arguments of the older calls are omitted, too"),
	"/dedupe/argument_bytes":   ranged(32, 1_000_000, "what is a large argument"),
	"/dedupe/redact":           described("secrets in a resource's name are not shown in the line"),

	"/stale/enabled":    described("what was read of a file before it was written becomes a line"),
	"/stale/min_tokens": ranged(0, 1_000_000, "smaller results stay"),

	"/arguments/enabled":      described("large arguments of old calls are omitted"),
	"/arguments/min_bytes":    ranged(32, 1_000_000, "smaller arguments stay"),
	"/arguments/after_tokens": ranged(0, 10_000_000, "of messages that came after the call; never more than half of the target"),
	"/arguments/operations":   described("of tools that do these"),
	"/arguments/tools":        described("and of these tools"),

	"/trim/enabled":                       described("results are shortened by their distance from the end"),
	"/trim/min_tokens":                    ranged(0, 1_000_000, "smaller results stay"),
	"/trim/floor_ratio":                   ranged(0, 1, "a view below this share of the window is not trimmed; `trigger` at most"),
	"/trim/hot_zone_min_tokens":           ranged(0, 10_000_000, "results nearer to the end stay whole; never more than half of the target"),
	"/trim/hot_zone_ratio":                ranged(0, 1, "the same as a share of the window; the larger of the two counts"),
	"/trim/bookend_max_chars":             ranged(MinCutChars, 1_000_000, "head and tail each, next to the hot zone; `bookend_min_chars` at least"),
	"/trim/bookend_min_chars":             ranged(MinCutChars, 1_000_000, "the same at the end of the span; behind it a result is one line"),
	"/trim/degradation_span_ratio":        ranged(0, 10, "how long the span is behind the hot zone, as a share of the window"),
	"/trim/extended_retention_multiplier": ranged(1, 100, "widens the hot zone for non-reproducible results"),
	"/trim/categories":                    described("how hard a tool's result is to get again, by name; an ephemeral one is cleared"),

	"/budget/enabled":    described("the tokens of all results together are bounded: the oldest become placeholders"),
	"/budget/tokens":     rangedOrOff(100, 10_000_000, "the bound; 0: `ratio`"),
	"/budget/ratio":      ranged(0, 1, "the bound as a share of the window, within `min_tokens` and `max_tokens`"),
	"/budget/min_tokens": ranged(0, 10_000_000, "the least bound; `max_tokens` at most"),
	"/budget/max_tokens": ranged(0, 10_000_000, "the largest bound"),

	"/whitespace/enabled":    described("runs of white space in old results are collapsed"),
	"/whitespace/min_tokens": ranged(0, 1_000_000, "smaller results stay"),

	"/summarise/enabled":           described("the oldest units are replaced by retained facts and a summary"),
	"/summarise/writer":            described("who writes the summary; `extract` needs no model"),
	"/summarise/over":              ranged(0, 1, "only while the view, shortened by the stages before, has more than this share of the window; 0: more than the target"),
	"/summarise/all":               described("everything but what is kept goes; else as many of the oldest units as bring the view to its target"),
	"/summarise/keep_turns":        ranged(0, 1_000, "turns of the user that stay"),
	"/summarise/keep_messages":     ranged(0, 1_000, "newest messages that stay"),
	"/summarise/min_tokens":        ranged(0, 10_000_000, "fewer old tokens are not worth a summary"),
	"/summarise/max_tokens":        ranged(100, 100_000, "of the summary"),
	"/summarise/prompt":            prose("what a model is asked to write; empty: the built-in text; `extract` asks nobody"),
	"/summarise/directives":        directives("more of it, one line each; for a model"),
	"/summarise/retain":            described("ask for facts to carry along, word for word"),
	"/summarise/retain_prompt":     prose("which; empty: the built-in text"),
	"/summarise/retain_directives": directives("more of it, one line each"),

	"/truncate/enabled": described("the oldest units are left out where there is no summary; they stay readable in the log"),

	"/wording/cap":         templated("between head and tail of an oversized result", cutValues),
	"/wording/bookend":     templated("between head and tail of an old result", cutValues),
	"/wording/stub":        templated("for a superseded result; `seq` is that of the newer one", stubValues),
	"/wording/stale":       templated("for a result whose file was written later; `seq` is that of the write", stubValues),
	"/wording/placeholder": templated("for an old result", placeholderValues),
	"/wording/clear":       templated("for an old result that was worth little; no longer than the others", clearValues),
	"/wording/summary":     {bytes: maxTemplateBytes, names: summaryValues, needs: "text", does: "around a summary"},
	"/wording/truncated":   templated("for units that were left out", truncatedValues),
}

// choices are the values of the types that have only some.
var choices = map[reflect.Type][]string{
	reflect.TypeFor[Tokenizer](): stringsOf(tokenizers),
	reflect.TypeFor[ToolTable](): stringsOf(toolTables),
	reflect.TypeFor[Operation](): stringsOf(Operations),
	reflect.TypeFor[Identity]():  stringsOf(identities),
	reflect.TypeFor[Category]():  stringsOf(categories),
	reflect.TypeFor[Writer]():    stringsOf(writers),
}

func stringsOf[T ~string](values []T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

// choicesOf lists the values that a leaf may have, nil for any.
func choicesOf(t reflect.Type, pointer string) []string {
	if pointer == "/profile" {
		return Profiles()
	}
	return choices[t]
}

// leaves yields the fields of a policy that hold no fields themselves, by JSON pointer and in their order.
func leaves(of reflect.Value, pointer string) iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) { walkLeaves(of, pointer, yield) }
}

func walkLeaves(v reflect.Value, pointer string, yield func(string, reflect.Value) bool) bool {
	if v.Kind() != reflect.Struct {
		return yield(pointer, v)
	}
	for i, name := range fieldsOf(v.Type()) {
		if !walkLeaves(v.Field(i), pointer+"/"+name, yield) {
			return false
		}
	}
	return true
}

func fieldsOf(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("json")
	}
	return names
}
