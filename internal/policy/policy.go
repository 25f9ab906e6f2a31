// Package policy is the compaction policy as a configuration language: its fields and their limits, the profiles, the
// layers that are put on top of one another, and the published schema. It is pure and decides nothing about a session;
// package compact does, by a Policy.
//
// Start at Policy, then at fields, which describes every field once for the parser, the schema and docs/policy.md. Parse
// reads one document, ParseLayers several, Merge changes a stored one.
package policy

import (
	"encoding/json"
	"maps"
)

// Policy says when a session is compacted and how much of it is kept. Ratios are shares of the session's context
// window; tokens are estimated tokens; characters are UTF-16 units. fields.go gives the ranges, profiles.go the
// complete policies that have a name.
type Policy struct {
	Profile    string     `json:"profile"` // the named policy that the other fields change
	Trigger    float64    `json:"trigger"` // ratio at which a compaction starts, (0, 1]
	Target     float64    `json:"target"`  // ratio that the stages work towards, below trigger
	Hard       float64    `json:"hard"`    // ratio at which it starts whatever cache and economy say, from trigger to 1
	Cache      Cache      `json:"cache"`
	Economy    Economy    `json:"economy"`
	Tokens     Tokens     `json:"tokens"`
	Tools      Tools      `json:"tools"`
	Protect    Protect    `json:"protect"`
	Cap        Cap        `json:"cap"`
	Dedupe     Dedupe     `json:"dedupe"`
	Stale      Stale      `json:"stale"`
	Arguments  Arguments  `json:"arguments"`
	Trim       Trim       `json:"trim"`
	Budget     Budget     `json:"budget"`
	Whitespace Whitespace `json:"whitespace"`
	Summarise  Summarise  `json:"summarise"`
	Truncate   Truncate   `json:"truncate"`
	Wording    Wording    `json:"wording"`
}

// Cache says how long a compaction waits for the provider's prompt cache to go cold.
type Cache struct {
	TTLSeconds int `json:"ttl_seconds"` // seconds since the last append
}

// Economy makes a compaction wait that would cost more in a broken prompt cache than it saves. Prices are
// relative: 1 is an input token that no cache holds. Below hard only.
type Economy struct {
	Enabled    bool    `json:"enabled"`
	CacheRead  float64 `json:"cache_read"`  // price of an input token read from the cache
	CacheWrite float64 `json:"cache_write"` // price of one that is written to it
	TTLSeconds int     `json:"ttl_seconds"` // how long the provider keeps a prefix after its last use
	Horizon    int     `json:"horizon"`     // how many more requests are expected to be sent with the view
}

// Tokens says how tokens are counted.
type Tokens struct {
	Tokenizer Tokenizer `json:"tokenizer"`
	Calibrate bool      `json:"calibrate"` // correct the estimate by the usage that the caller reports, for the triggers
}

// Tokenizer names a way of counting tokens.
type Tokenizer string

// The tokenizers: one linear estimate, and two exact vocabularies.
const (
	Estimate Tokenizer = "estimate"
	O200k    Tokenizer = "o200k"
	CL100k   Tokenizer = "cl100k"
)

var tokenizers = []Tokenizer{Estimate, O200k, CL100k}

// Tools says what the tenant's tools do, on top of a table of well-known ones.
type Tools struct {
	Table      ToolTable            `json:"table"`
	Operations map[string]Operation `json:"operations"` // by tool name as the agent sends it; beats the table
}

// ToolTable names a table of well-known tools.
type ToolTable string

// The tables: a wide one of our own, and the one that llm-interactive-proxy documents.
const (
	CommonTools   ToolTable = "common"
	LLMProxyTools ToolTable = "llm-proxy"
)

var toolTables = []ToolTable{CommonTools, LLMProxyTools}

// Operation says what a tool does with the resource that it is called for.
type Operation string

// The operations, with the values that llm-interactive-proxy has for them.
const (
	ViewFile         Operation = "view_file"
	FileRead         Operation = "file_read"
	FileWrite        Operation = "file_write"
	CommandExecution Operation = "command_execution"
	Search           Operation = "search"
	ListDir          Operation = "list_dir"
	TestExecution    Operation = "test_execution"
	OtherOperation   Operation = "other"
)

// Operations lists all operations.
var Operations = []Operation{ViewFile, FileRead, FileWrite, CommandExecution, Search, ListDir, TestExecution, OtherOperation}

// Protect says what no stage touches, beside the leading system messages. What counts is the union.
type Protect struct {
	LastUnits    int      `json:"last_units"`    // the newest units; a giant result in them is still capped
	LastMessages int      `json:"last_messages"` // the newest messages
	LastTurns    int      `json:"last_turns"`    // everything since the n-th newest message of the user
	NewestUser   bool     `json:"newest_user"`   // the newest message of the user that is not an answer to calls
	Tools        []string `json:"tools"`         // results and calls of these tools, names as the agent sends them
	// MaxTurnRatio bounds last_turns: of a turn larger than this share of the target only the newest units are kept.
	MaxTurnRatio float64 `json:"max_turn_ratio"`
}

// Cap cuts a single oversized result to its head and tail. A result is oversized by any of the limits; 0 is none.
type Cap struct {
	Enabled      bool `json:"enabled"`
	AtInsertion  bool `json:"at_insertion"` // as soon as it is appended: it never enters a view whole
	MaxTokens    int  `json:"max_tokens"`
	MaxBytes     int  `json:"max_bytes"` // UTF-8 bytes
	MaxChars     int  `json:"max_chars"`
	MaxLines     int  `json:"max_lines"`
	MaxLineChars int  `json:"max_line_chars"` // longer lines are clipped
	HeadChars    int  `json:"head_chars"`     // kept of its beginning, trim.bookend_max_chars at least
	TailChars    int  `json:"tail_chars"`     // kept of its end; not 0 unless trim is off
	WholeLines   bool `json:"whole_lines"`    // head and tail end at a line's end, unless nothing would be left
}

// Identity says which calls ask for the same thing.
type Identity string

// The identities: all arguments, the resource that well-known argument names tell, or the fields that the policy lists.
const (
	ByArguments Identity = "arguments"
	ByResource  Identity = "resource"
	ByFields    Identity = "fields"
)

var identities = []Identity{ByArguments, ByResource, ByFields}

// Dedupe replaces results that a newer one for the same resource has made superfluous, and the large arguments of
// their calls.
type Dedupe struct {
	Enabled         bool                `json:"enabled"`
	Identity        Identity            `json:"identity"`
	Fields          map[string][]string `json:"fields"`           // identity fields: the arguments that identify a call of a tool
	ToolOnly        bool                `json:"tool_only"`        // identity fields: all calls of a tool without fields are the same one; else by all arguments
	KeepLast        int                 `json:"keep_last"`        // newest results of one resource that stay
	MinTokens       int                 `json:"min_tokens"`       // smaller results stay
	AllowTools      []string            `json:"allow_tools"`      // only these tools; empty: all
	DenyTools       []string            `json:"deny_tools"`       // not these tools
	AllowOperations []Operation         `json:"allow_operations"` // only tools that do these; empty: all
	DenyOperations  []Operation         `json:"deny_operations"`  // not tools that do these
	Arguments       bool                `json:"arguments"`        // omit the large arguments of the older calls, too
	ArgumentBytes   int                 `json:"argument_bytes"`   // larger arguments are large
	Redact          bool                `json:"redact"`           // secrets in a resource's name are not shown in the stub
}

// Stale replaces what was read of a file before it was written: the text is out of date.
type Stale struct {
	Enabled   bool `json:"enabled"`
	MinTokens int  `json:"min_tokens"` // smaller results stay
}

// Arguments omits large arguments of old calls: what was written to a file stands in the file.
type Arguments struct {
	Enabled     bool        `json:"enabled"`
	MinBytes    int         `json:"min_bytes"`    // smaller arguments stay
	AfterTokens int         `json:"after_tokens"` // of messages that came after the call; never more than half of the target
	Operations  []Operation `json:"operations"`   // of tools that do these
	Tools       []string    `json:"tools"`        // and of these tools
}

// Trim shortens results by their distance from the end of the session, in tokens of the original messages:
// whole within the hot zone, then head and tail that shrink along the degradation span, then one line.
type Trim struct {
	Enabled              bool    `json:"enabled"`
	MinTokens            int     `json:"min_tokens"`             // smaller results stay
	FloorRatio           float64 `json:"floor_ratio"`            // a view below is not trimmed, 0 to trigger
	HotZoneMinTokens     int     `json:"hot_zone_min_tokens"`    // 0 to 10000000, but never more than half of the target
	HotZoneRatio         float64 `json:"hot_zone_ratio"`         // of the window; the larger of the two counts
	BookendMaxChars      int     `json:"bookend_max_chars"`      // head and tail each, next to the hot zone, bookend_min_chars to 1000000
	BookendMinChars      int     `json:"bookend_min_chars"`      // the same at the end of the span
	DegradationSpanRatio float64 `json:"degradation_span_ratio"` // of the window

	// ExtendedRetentionMultiplier widens the hot zone for non-reproducible results. Varve can bring every
	// result back, so 1 is enough.
	ExtendedRetentionMultiplier float64 `json:"extended_retention_multiplier"`

	// Categories tells what a tool's results are worth; a tool without one gets a placeholder like any other.
	Categories map[string]Category `json:"categories"`
}

// Category says how hard it is to get a tool's result again.
type Category string

// The categories. An ephemeral result is cleared where others get a placeholder; a non-reproducible one stays longer.
const (
	Rereadable      Category = "rereadable"
	NonReproducible Category = "non-reproducible"
	Ephemeral       Category = "ephemeral"
	Computational   Category = "computational"
)

var categories = []Category{Rereadable, NonReproducible, Ephemeral, Computational}

// Budget bounds the tokens of all results together: the oldest become placeholders.
type Budget struct {
	Enabled bool    `json:"enabled"`
	Tokens  int     `json:"tokens"` // the budget; 0: ratio of the window within min_tokens and max_tokens
	Ratio   float64 `json:"ratio"`
	Min     int     `json:"min_tokens"`
	Max     int     `json:"max_tokens"`
}

// Whitespace collapses runs of white space in old results.
type Whitespace struct {
	Enabled   bool `json:"enabled"`
	MinTokens int  `json:"min_tokens"` // smaller results stay
}

// Summarise replaces the oldest units by retained facts and a summary.
type Summarise struct {
	Enabled          bool     `json:"enabled"`
	Writer           Writer   `json:"writer"`
	Over             float64  `json:"over"`          // only while the view has more than this share of the window; 0: more than the target
	All              bool     `json:"all"`           // everything but what is kept; else as many of the oldest units as bring the view to its target
	KeepTurns        int      `json:"keep_turns"`    // turns of the user that stay
	KeepMessages     int      `json:"keep_messages"` // newest messages that stay
	MinTokens        int      `json:"min_tokens"`    // fewer old tokens are not worth a summary
	MaxTokens        int      `json:"max_tokens"`    // of the summary
	Prompt           string   `json:"prompt"`        // what to write; "" is the built-in one
	Directives       []string `json:"directives"`    // more of it, one line each
	Retain           bool     `json:"retain"`        // ask for facts to carry along, word for word
	RetainPrompt     string   `json:"retain_prompt"` // which; "" is the built-in one
	RetainDirectives []string `json:"retain_directives"`
}

// Writer says who writes summaries.
type Writer string

// Extract is the writer that needs no model: it picks what matters out of the messages.
const Extract Writer = "extract"

var writers = []Writer{Extract}

// Truncate drops the oldest units where there is no summary: the last resort. They stay readable in the log.
type Truncate struct {
	Enabled bool `json:"enabled"`
}

// Document returns the policy as JSON with every field, always in the same bytes, and Parse's inverse: what its
// profile's maps have and it has not is null.
func (p Policy) Document() []byte {
	p.Trim.Categories = withNulls(p.Trim.Categories, profileOrDefault(p.Profile).Trim.Categories)
	document, err := json.Marshal(p)
	if err != nil {
		panic(err) // a NaN or an infinity, which no parsed policy holds
	}
	return document
}

// withNulls adds the keys that only base has, without a value.
func withNulls(table, base map[string]Category) map[string]Category {
	table = maps.Clone(table)
	for tool := range base {
		if _, ok := table[tool]; !ok && table != nil {
			table[tool] = ""
		}
	}
	return table
}

// MarshalJSON writes no category as null.
func (c Category) MarshalJSON() ([]byte, error) {
	if c == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(c))
}
