package policy

import (
	"iter"
	"reflect"
)

// field describes one leaf of a policy: which values it may have, and what it does. The parser, the published schema
// and docs/policy.md are made of these.
type field struct {
	low, high float64  // the range of a number
	orZero    bool     // 0 is allowed, too, and switches the limit off
	bytes     int      // the longest text, or the longest of each in a list
	empty     bool     // a text may be empty
	line      bool     // a text must be one line
	names     []string // the values that a template may name
	needs     string   // the value that it must name
	does      string
}

// span names the range of a number; it is empty for other fields.
func (f field) span() string {
	if f.low == f.high {
		return ""
	}
	span := " from " + decimal(f.low) + " to " + decimal(f.high)
	if f.orZero {
		span += ", or 0"
	}
	return span
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

func templated(does string, names ...string) field {
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

// MinCutChars is how many characters a bookend keeps at least. It makes every bookend longer than the stub and the
// placeholder below it, whatever the tool's name and the preview are.
const MinCutChars = 128

// fields describes every leaf of a policy, by its JSON pointer.
var fields = map[string]field{
	"/profile": described("the profile that the other fields change"),
	"/trigger": ranged(0.01, 1,
		"share of the window at which a compaction starts; `overhead_tokens` count as part of the view"),
	"/target": ranged(0.001, 1,
		"share of the window that a compaction works towards: a stage runs only while the view is larger; "+
			"must be below `trigger`"),
	"/hard": ranged(0.01, 1,
		"share of the window at which a compaction starts even if `cache` or `economy` would wait; at least `trigger`"),

	"/cache/ttl_seconds": ranged(0, 604_800,
		"a compaction waits this long after the last append, for the prompt cache to become cold; 0 does not wait"),

	"/economy/enabled": described("a compaction waits if it would cost more in a broken prompt cache than it saves"),
	"/economy/cache_read": ranged(0, 1,
		"price of an input token that is read from the cache; an uncached token costs 1"),
	"/economy/cache_write": ranged(0, 10,
		"price of an input token that is written to the cache; at least `cache_read`"),
	"/economy/ttl_seconds": ranged(0, 604_800, "how long the provider keeps a cached prefix after its last use"),
	"/economy/horizon":     ranged(1, 10_000, "number of further requests that are expected to send the view"),

	"/tokens/tokenizer": described("how tokens are counted: by a linear estimate, or exactly by a vocabulary"),
	"/tokens/calibrate": described("the triggers correct the estimate by the usage that callers report"),

	"/tools/table":      described("the table of well-known tools and what they do"),
	"/tools/operations": described("what your own tools do, by name; overrides the table"),

	"/protect/last_units": ranged(0, 1_000,
		"this many of the newest units are not changed; an oversized result in them is still capped"),
	"/protect/last_messages": ranged(0, 1_000, "this many of the newest messages are not changed"),
	"/protect/last_turns":    ranged(0, 1_000, "nothing since the n-th newest message of the user is changed"),
	"/protect/newest_user":   described("the newest message of the user that does not answer calls is not changed"),
	"/protect/tools":         described("the calls and results of these tools are not changed"),
	"/protect/max_turn_ratio": ranged(0, 1,
		"limit of `last_turns`: of a turn larger than this share of the target only the newest units are protected"),

	"/cap/enabled":      described("a single oversized result is cut to its head and tail"),
	"/cap/at_insertion": described("a result is cut as soon as it is appended and is never whole in a view"),
	"/cap/max_tokens":   rangedOrOff(100, 10_000_000, "a result with more tokens is oversized; 0 is no limit"),
	"/cap/max_bytes": rangedOrOff(400, 100_000_000,
		"a result with more UTF-8 bytes is oversized; at least `head_chars` + `tail_chars`; 0 is no limit"),
	"/cap/max_chars": rangedOrOff(400, 100_000_000,
		"a result with more characters (UTF-16 units) is oversized; 0 is no limit"),
	"/cap/max_lines": rangedOrOff(2, 10_000_000, "a result with more lines is oversized; 0 is no limit"),
	"/cap/max_line_chars": rangedOrOff(MinCutChars, 1_000_000,
		"longer lines are clipped to this many characters; 0 is no limit"),
	"/cap/head_chars": ranged(MinCutChars, 1_000_000,
		"characters kept of its beginning; at least `trim.bookend_max_chars` while `trim` is on"),
	"/cap/tail_chars": ranged(0, 1_000_000,
		"characters kept of its end; at least `trim.bookend_max_chars` while `trim` is on"),
	"/cap/whole_lines": described("head and tail consist of whole lines, unless nothing would be left"),

	"/dedupe/enabled": described(
		"a line replaces an older result for the same resource, unless the newer one is empty or an error"),
	"/dedupe/identity": described(
		"which calls are for the same resource: those with equal `arguments`, with the same `resource` in well-known " +
			"arguments, or with equal `fields`"),
	"/dedupe/fields":           described("with `identity` `fields`: the arguments that identify a call, by tool"),
	"/dedupe/tool_only":        described("with `identity` `fields`: all calls of a tool without `fields` are equal"),
	"/dedupe/keep_last":        ranged(1, 1_000, "number of results that are kept of each resource"),
	"/dedupe/min_tokens":       ranged(0, 1_000_000, "smaller results are kept"),
	"/dedupe/allow_tools":      described("only results of these tools are replaced; an empty list allows all"),
	"/dedupe/deny_tools":       described("results of these tools are kept"),
	"/dedupe/allow_operations": described("only results of tools that do these are replaced; an empty list allows all"),
	"/dedupe/deny_operations":  described("results of tools that do these are kept"),
	"/dedupe/arguments":        described("large arguments of the older calls are omitted, too"),
	"/dedupe/argument_bytes":   ranged(32, 1_000_000, "arguments with more bytes are large"),
	"/dedupe/redact":           described("secrets in a resource's name are masked in the line"),

	"/stale/enabled":    described("a line replaces what was read of a file before the file was written"),
	"/stale/min_tokens": ranged(0, 1_000_000, "smaller results are kept"),

	"/arguments/enabled":   described("large arguments of old calls are omitted"),
	"/arguments/min_bytes": ranged(32, 1_000_000, "smaller arguments are kept"),
	"/arguments/after_tokens": ranged(0, 10_000_000,
		"a call is old when messages of this many tokens came after it; never more than half of the target"),
	"/arguments/operations": described("arguments of tools that do these are omitted"),
	"/arguments/tools":      described("arguments of these tools are omitted, too"),

	"/trim/enabled":     described("results are shortened by their distance from the end of the session"),
	"/trim/min_tokens":  ranged(0, 1_000_000, "smaller results are kept"),
	"/trim/floor_ratio": ranged(0, 1, "a view below this share of the window is not trimmed; at most `trigger`"),
	"/trim/hot_zone_min_tokens": ranged(0, 10_000_000,
		"results nearer to the end are kept whole; never more than half of the target"),
	"/trim/hot_zone_ratio": ranged(0, 1, "the same as a share of the window; the larger of the two counts"),
	"/trim/bookend_max_chars": ranged(MinCutChars, 1_000_000,
		"characters kept of head and of tail next to the hot zone; at least `bookend_min_chars`"),
	"/trim/bookend_min_chars": ranged(MinCutChars, 1_000_000,
		"characters kept of head and of tail at the end of the span; after it, one line replaces a result"),
	"/trim/degradation_span_ratio":        ranged(0, 10, "length of the span, as a share of the window"),
	"/trim/extended_retention_multiplier": ranged(1, 100, "widens the hot zone for non-reproducible results"),
	"/trim/categories": described(
		"how hard it is to get a tool's result again, by tool; an ephemeral result gets the shortest line"),

	"/budget/enabled":    described("the tokens of all results together are limited: the oldest become placeholders"),
	"/budget/tokens":     rangedOrOff(100, 10_000_000, "the limit; 0 uses `ratio`"),
	"/budget/ratio":      ranged(0, 1, "the limit as a share of the window, between `min_tokens` and `max_tokens`"),
	"/budget/min_tokens": ranged(0, 10_000_000, "the lowest limit that `ratio` gives; at most `max_tokens`"),
	"/budget/max_tokens": ranged(0, 10_000_000, "the highest limit that `ratio` gives"),

	"/whitespace/enabled":    described("runs of white space in old results are collapsed"),
	"/whitespace/min_tokens": ranged(0, 1_000_000, "smaller results are kept"),

	"/summarise/enabled": described("retained facts and a summary replace the oldest units"),
	"/summarise/writer":  described("what writes the summary; `extract` needs no model"),
	"/summarise/over": ranged(0, 1,
		"a summary is written only if the view, shortened by the stages before, has more than this share of the "+
			"window; 0 uses the target"),
	"/summarise/all": described(
		"everything that need not be kept is summarised; if false, as few of the oldest units as bring the view to " +
			"its target"),
	"/summarise/keep_turns":        ranged(0, 1_000, "number of the newest turns of the user that are kept"),
	"/summarise/keep_messages":     ranged(0, 1_000, "number of the newest messages that are kept"),
	"/summarise/min_tokens":        ranged(0, 10_000_000, "fewer old tokens are not summarised"),
	"/summarise/max_tokens":        ranged(100, 100_000, "limit of the summary"),
	"/summarise/prompt":            prose("what a model is asked to write; empty is the built-in text"),
	"/summarise/directives":        directives("further instructions for a model, one line each"),
	"/summarise/retain":            described("a model is asked for facts to keep word for word"),
	"/summarise/retain_prompt":     prose("which facts a model is asked for; empty is the built-in text"),
	"/summarise/retain_directives": directives("further instructions about these facts, one line each"),

	"/truncate/enabled": described(
		"the oldest units are dropped if there is no summary of them; they stay readable in the log"),

	"/wording/cap": templated("between head and tail of an oversized result",
		"ref", "tool", "chars", "bytes", "tokens", "cut_tokens", "head"),
	"/wording/bookend": templated("between head and tail of an old result",
		"ref", "tool", "chars", "bytes", "tokens", "cut_tokens", "head"),
	"/wording/stub": templated("in place of a superseded result; `seq` is that of the newer result",
		"ref", "tool", "resource", "bytes", "seq"),
	"/wording/stale": templated("in place of a result whose file was written later; `seq` is that of the write",
		"ref", "tool", "resource", "bytes", "seq"),
	"/wording/placeholder": templated("in place of an old result", "ref", "tool", "preview"),
	"/wording/clear": templated("in place of an old result that was worth little; not longer than the other lines",
		"ref"),
	"/wording/summary": {
		bytes: maxTemplateBytes, names: []string{"text", "first", "last", "messages"}, needs: "text",
		does: "around a summary",
	},
	"/wording/truncated": templated("in place of dropped units", "first", "last", "messages"),
}

// choices lists the values of the types that have only some.
var choices = map[reflect.Type][]string{
	reflect.TypeFor[Tokenizer](): stringsOf(Estimate, O200k, CL100k),
	reflect.TypeFor[ToolTable](): stringsOf(CommonTools, LLMProxyTools),
	reflect.TypeFor[Operation](): stringsOf(Operations...),
	reflect.TypeFor[Identity]():  stringsOf(ByArguments, ByResource, ByFields),
	reflect.TypeFor[Category]():  stringsOf(Rereadable, NonReproducible, Ephemeral, Computational),
	reflect.TypeFor[Writer]():    stringsOf(Extract),
}

func stringsOf[T ~string](values ...T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

// choicesOf lists the values that a leaf may have. It returns nil if the leaf may have any.
func choicesOf(t reflect.Type, pointer string) []string {
	if pointer == "/profile" {
		return profileNames
	}
	return choices[t]
}

// eachField yields the fields of a policy that hold no fields themselves, by JSON pointer and in their order.
func eachField(of reflect.Value, pointer string) iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) { walkFields(of, pointer, yield) }
}

func walkFields(v reflect.Value, pointer string, yield func(string, reflect.Value) bool) bool {
	if v.Kind() != reflect.Struct {
		return yield(pointer, v)
	}
	for i, name := range fieldsOf(v.Type()) {
		if !walkFields(v.Field(i), pointer+"/"+name, yield) {
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
