package compact

import (
	"encoding/json"
	"maps"
)

// Policy says when a session is compacted and how much of it is kept. Ratios are shares of the session's context
// window; tokens are estimated tokens; characters are UTF-16 units. policy_rules.go gives the ranges.
type Policy struct {
	Trigger float64       `json:"trigger"` // ratio at which a compaction starts, (0, 1]
	Target  float64       `json:"target"`  // ratio that the stages work towards, below trigger
	Hard    float64       `json:"hard"`    // ratio at which it starts whatever cache says, from trigger to 1
	Cache   CachePolicy   `json:"cache"`
	Protect ProtectPolicy `json:"protect"`
	Cap     CapPolicy     `json:"cap"`
	Dedupe  DedupePolicy  `json:"dedupe"`
	Trim    TrimPolicy    `json:"trim"`
}

// CachePolicy says how long a compaction waits for the provider's prompt cache to go cold.
type CachePolicy struct {
	TTLSeconds int `json:"ttl_seconds"` // seconds since the last append, 0 (do not wait) to 604800
}

// ProtectPolicy says what no stage touches, beside the leading system messages. What counts is the union.
type ProtectPolicy struct {
	LastUnits  int      `json:"last_units"`  // the newest units, 0 to 1000; a giant result in them is still capped
	NewestUser bool     `json:"newest_user"` // the newest message of the user that is not an answer to calls
	Tools      []string `json:"tools"`       // results of these tools, names as the agent sends them
}

// CapPolicy cuts a single oversized result to its head and tail.
type CapPolicy struct {
	Enabled   bool `json:"enabled"`
	MaxTokens int  `json:"max_tokens"` // a result above is capped, 100 to 10000000
	HeadChars int  `json:"head_chars"` // kept of its beginning, 128 to 1000000, trim.bookend_max_chars at least
	TailChars int  `json:"tail_chars"` // kept of its end, the same
}

// DedupePolicy replaces results that a newer one of the same tool with the same arguments has made superfluous.
type DedupePolicy struct {
	Enabled    bool     `json:"enabled"`
	KeepLast   int      `json:"keep_last"`   // newest results of one call that stay, 1 to 1000
	MinTokens  int      `json:"min_tokens"`  // smaller results stay, 0 to 1000000
	AllowTools []string `json:"allow_tools"` // only these tools; empty: all
	DenyTools  []string `json:"deny_tools"`  // not these tools
}

// TrimPolicy shortens results by their distance from the end of the session, in tokens of the original messages:
// whole within the hot zone, then head and tail that shrink along the degradation span, then one line.
type TrimPolicy struct {
	Enabled              bool    `json:"enabled"`
	MinTokens            int     `json:"min_tokens"`             // smaller results stay, 0 to 1000000
	FloorRatio           float64 `json:"floor_ratio"`            // a view below is not trimmed, 0 to trigger
	HotZoneMinTokens     int     `json:"hot_zone_min_tokens"`    // 0 to 10000000, but never more than half of the target
	HotZoneRatio         float64 `json:"hot_zone_ratio"`         // of the window, 0 to 1; the larger of the two counts
	BookendMaxChars      int     `json:"bookend_max_chars"`      // head and tail each, next to the hot zone, bookend_min_chars to 1000000
	BookendMinChars      int     `json:"bookend_min_chars"`      // the same at the end of the span, 128 to 1000000
	DegradationSpanRatio float64 `json:"degradation_span_ratio"` // of the window, 0 to 10

	// ExtendedRetentionMultiplier widens the hot zone for non-reproducible results, 1 to 100. Varve can bring every
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

// DefaultPolicy is the policy of whoever has none.
func DefaultPolicy() Policy {
	return Policy{
		Trigger: 0.8,
		Target:  0.5,
		Hard:    0.95,
		Protect: ProtectPolicy{LastUnits: 4, NewestUser: true, Tools: []string{}},
		Cap:     CapPolicy{Enabled: true, MaxTokens: 25_000, HeadChars: 8_000, TailChars: 8_000},
		Dedupe:  DedupePolicy{Enabled: true, KeepLast: 1, MinTokens: 100, AllowTools: []string{}, DenyTools: []string{}},
		Trim: TrimPolicy{
			Enabled:                     true,
			MinTokens:                   100,
			FloorRatio:                  0.25,
			HotZoneMinTokens:            16_000,
			HotZoneRatio:                0.05,
			BookendMaxChars:             2_000,
			BookendMinChars:             256,
			DegradationSpanRatio:        0.40,
			ExtendedRetentionMultiplier: 1,
			Categories:                  defaultCategories(),
		},
	}
}

// defaultCategories names the tools of common agents.
func defaultCategories() map[string]Category {
	table := map[string]Category{}
	for category, tools := range map[Category][]string{
		Rereadable: {
			"Read", "Glob", "Grep", "LS", "read", "glob", "grep", "ls", "find", "cat", "view", "read_file", "read_many_files", "view_file", "open_file",
			"list_directory", "list_dir", "list_files", "search_files", "search_file_content", "file_search", "grep_search", "codebase_search",
		},
		NonReproducible: {
			"Bash", "WebFetch", "WebSearch", "bash", "shell", "exec", "exec_command", "terminal", "execute_command", "run_command", "run_shell_command",
			"run_terminal_cmd", "local_shell", "execute_bash", "fetch", "web_fetch", "web_search", "google_web_search", "browser",
		},
		Ephemeral: {"SubAgent", "TaskOutput", "task_output", "BashOutput", "TodoWrite", "todo_write", "update_plan"},
	} {
		for _, tool := range tools {
			table[tool] = category
		}
	}
	return table
}

// Document is the policy as JSON with every field, always in the same bytes, and ParsePolicy's inverse: a tool of the
// default that has no category is null.
func (p Policy) Document() []byte {
	table := maps.Clone(p.Trim.Categories)
	for tool := range defaultCategories() {
		if _, ok := table[tool]; !ok && table != nil {
			table[tool] = ""
		}
	}
	p.Trim.Categories = table
	document, err := json.Marshal(p)
	if err != nil {
		panic(err) // a NaN or an infinity, which no parsed policy holds
	}
	return document
}

// MarshalJSON writes no category as null.
func (c Category) MarshalJSON() ([]byte, error) {
	if c == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(c))
}
