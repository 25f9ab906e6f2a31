// Package policy is the compaction policy as a configuration language: its fields and their limits, the profiles, the
// layers that are put on top of one another, and the published schema. It is pure and decides nothing about a session;
// package compact does, by a Policy.
//
// Start at Policy, then at fields.json, which describes every field once for the parser, the schema and docs/policy.md.
// Parse reads one document, ParseLayers several, Merge changes a stored one. The profiles are profiles/<name>.json.
// A new field is a member here, an entry of fields.json and, if its default is not zero, a line of a profile;
// `go test ./internal/policy -update` writes the schema and docs/policy.md.
package policy

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/due"
)

// Policy decides when a session is compacted and how much of it is kept. Ratios are shares of the session's context
// window; tokens are estimated tokens; characters are UTF-16 units. What each field does is in fields.json.
type Policy struct {
	Profile       string     `json:"profile"`
	Enabled       bool       `json:"enabled"`
	Auto          bool       `json:"auto"`
	OnlySmaller   bool       `json:"only_smaller"`
	Trigger       float64    `json:"trigger"`
	TriggerTokens int        `json:"trigger_tokens"`
	TriggerBytes  int        `json:"trigger_bytes"`
	Target        float64    `json:"target"`
	TargetTokens  int        `json:"target_tokens"`
	MediaBytes    int        `json:"media_bytes"`
	Hard          float64    `json:"hard"`
	Cache         Cache      `json:"cache"`
	Economy       Economy    `json:"economy"`
	Idle          Idle       `json:"idle"`
	Tokens        Tokens     `json:"tokens"`
	Tools         Tools      `json:"tools"`
	Protect       Protect    `json:"protect"`
	Cap           Cap        `json:"cap"`
	Dedupe        Dedupe     `json:"dedupe"`
	Arguments     Arguments  `json:"arguments"`
	Trim          Trim       `json:"trim"`
	Budget        Budget     `json:"budget"`
	Whitespace    Whitespace `json:"whitespace"`
	Summarise     Summarise  `json:"summarise"`
	Truncate      Truncate   `json:"truncate"`
	Pins          Pins       `json:"pins"`
	Wording       Wording    `json:"wording"`
}

// Cache makes a compaction wait until the provider's prompt cache is cold.
type Cache struct {
	TTLSeconds int `json:"ttl_seconds"`
}

// Economy is the price card, and makes a compaction wait if it would cost more in a broken prompt cache than it saves.
// Prices are relative: 1 is an input token that no cache holds. It counts only below hard.
type Economy struct {
	Enabled        bool    `json:"enabled"`
	CacheRead      float64 `json:"cache_read"`
	CacheWrite     float64 `json:"cache_write"`
	TTLSeconds     int     `json:"ttl_seconds"`
	Horizon        int     `json:"horizon"`
	ReadBackTokens int     `json:"read_back_tokens"`
}

// Idle has a session compacted below its trigger once nobody has used it for so long that its provider has dropped its
// prefix, if that pays by the price card.
type Idle struct {
	Enabled      bool    `json:"enabled"`
	From         float64 `json:"from"`
	AfterSeconds int     `json:"after_seconds"`
}

// idleAfter returns after how many seconds without an append a session is idle.
func (p *Policy) idleAfter() int { return cmp.Or(p.Idle.AfterSeconds, p.Economy.TTLSeconds) }

// Tokens decides how tokens are counted.
type Tokens struct {
	Tokenizer Tokenizer `json:"tokenizer"`
	Calibrate bool      `json:"calibrate"`
}

// Tokenizer names a way of counting tokens.
type Tokenizer string

// The tokenizers: one linear estimate, two exact vocabularies, and the formulas of the systems that Varve unites.
const (
	Estimate   Tokenizer = "estimate"
	O200k      Tokenizer = "o200k"
	CL100k     Tokenizer = "cl100k"
	Chars4     Tokenizer = "chars4"      // cortex: a quarter of a message's texts, in UTF-16 units, rounded up
	JSONChars4 Tokenizer = "json-chars4" // falai: the same with the name and four units more
	Bytes4     Tokenizer = "bytes4"      // codelia: a quarter of the bytes, rounded up
	Runes4     Tokenizer = "runes4"      // llm-proxy: a quarter of the code points, rounded down
)

// IsFormula reports whether it is a formula of one of the systems, by which messages are counted in place of the
// estimate.
func (t Tokenizer) IsFormula() bool {
	return t == Chars4 || t == JSONChars4 || t == Bytes4 || t == Runes4
}

// Tools lists what the tenant's tools do, on top of a table of well-known ones.
type Tools struct {
	Table      ToolTable            `json:"table"`
	Operations map[string]Operation `json:"operations"`
	Errors     []string             `json:"errors"`
}

// ToolTable names a table of well-known tools.
type ToolTable string

// The tables: a wide one of our own, and the one that llm-interactive-proxy documents.
const (
	CommonTools   ToolTable = "common"
	LLMProxyTools ToolTable = "llm-proxy"
)

// Operation is what a tool does with the resource that it is called for.
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

// Operations lists all operations. The engine stores their indexes.
var Operations = []Operation{
	ViewFile, FileRead, FileWrite, CommandExecution, Search, ListDir, TestExecution, OtherOperation,
}

// Protect lists what no stage touches, besides the leading system messages. A message is protected if any field
// protects it.
type Protect struct {
	LastUnits    int      `json:"last_units"`
	LastMessages int      `json:"last_messages"`
	LastTurns    int      `json:"last_turns"`
	NewestUser   bool     `json:"newest_user"`
	System       bool     `json:"system"`
	Tools        []string `json:"tools"`
	MaxTurnRatio float64  `json:"max_turn_ratio"`
	Yields       bool     `json:"yields"`
}

// Cap cuts a single oversized result to its head and tail. A result that exceeds any of the limits is oversized; a
// limit of 0 does not count.
type Cap struct {
	Enabled      bool     `json:"enabled"`
	AtInsertion  bool     `json:"at_insertion"`
	MaxTokens    int      `json:"max_tokens"`
	MaxBytes     int      `json:"max_bytes"`
	MaxChars     int      `json:"max_chars"`
	MaxLines     int      `json:"max_lines"`
	MaxLineChars int      `json:"max_line_chars"`
	MaxRatio     float64  `json:"max_ratio"`
	UnitRatio    float64  `json:"unit_ratio"`
	HeadChars    int      `json:"head_chars"`
	TailChars    int      `json:"tail_chars"`
	WholeLines   bool     `json:"whole_lines"`
	ExceptTools  []string `json:"except_tools"`
}

// Identity decides which calls ask for the same thing.
type Identity string

// The identities: all arguments, the resource that well-known arguments name, or the fields that the policy lists.
const (
	ByArguments Identity = "arguments"
	ByResource  Identity = "resource"
	ByFields    Identity = "fields"
)

// Dedupe replaces results that a newer one for the same resource has made superfluous, and the large arguments of
// their calls.
type Dedupe struct {
	Enabled         bool                `json:"enabled"`
	Identity        Identity            `json:"identity"`
	Fields          map[string][]string `json:"fields"`
	ToolOnly        bool                `json:"tool_only"`
	KeepLast        int                 `json:"keep_last"`
	MinTokens       int                 `json:"min_tokens"`
	MinBytes        int                 `json:"min_bytes"`
	OmitFields      bool                `json:"omit_fields"`
	Pending         bool                `json:"pending"`
	AllowTools      []string            `json:"allow_tools"`
	DenyTools       []string            `json:"deny_tools"`
	AllowOperations []Operation         `json:"allow_operations"`
	DenyOperations  []Operation         `json:"deny_operations"`
	Arguments       bool                `json:"arguments"`
	ArgumentBytes   int                 `json:"argument_bytes"`
	Redact          bool                `json:"redact"`
}

// Arguments omits large arguments of old calls.
type Arguments struct {
	Enabled     bool        `json:"enabled"`
	MinBytes    int         `json:"min_bytes"`
	AfterTokens int         `json:"after_tokens"`
	Operations  []Operation `json:"operations"`
	Tools       []string    `json:"tools"`
}

// Trim shortens results by their distance from the end of the session, in tokens of the original messages: whole within
// the hot zone, then head and tail that shrink along the degradation span, then one line.
type Trim struct {
	Enabled                     bool                `json:"enabled"`
	Eager                       bool                `json:"eager"`
	KeepMedia                   bool                `json:"keep_media"`
	MinTokens                   int                 `json:"min_tokens"`
	FloorRatio                  float64             `json:"floor_ratio"`
	HotZoneMinTokens            int                 `json:"hot_zone_min_tokens"`
	HotZoneRatio                float64             `json:"hot_zone_ratio"`
	HotZoneMaxRatio             float64             `json:"hot_zone_max_ratio"`
	BookendMaxChars             int                 `json:"bookend_max_chars"`
	BookendMinChars             int                 `json:"bookend_min_chars"`
	BookendSizes                int                 `json:"bookend_sizes"`
	DegradationSpanRatio        float64             `json:"degradation_span_ratio"`
	ExtendedRetentionMultiplier float64             `json:"extended_retention_multiplier"`
	Categories                  map[string]Category `json:"categories"`
}

// Category is how hard it is to get a tool's result again.
type Category string

// The categories. An ephemeral result is cleared where others get a placeholder; a non-reproducible one stays longer.
const (
	Rereadable      Category = "rereadable"
	NonReproducible Category = "non-reproducible"
	Ephemeral       Category = "ephemeral"
	Computational   Category = "computational"
)

// Budget limits the tokens of all results together: the oldest become placeholders.
type Budget struct {
	Enabled bool    `json:"enabled"`
	Eager   bool    `json:"eager"`
	Tokens  int     `json:"tokens"`
	Ratio   float64 `json:"ratio"`
	Min     int     `json:"min_tokens"`
	Max     int     `json:"max_tokens"`
}

// Whitespace collapses runs of white space in old results.
type Whitespace struct {
	Enabled   bool `json:"enabled"`
	MinTokens int  `json:"min_tokens"`
}

// Summarise replaces the oldest units by retained facts and a summary.
type Summarise struct {
	Enabled          bool     `json:"enabled"`
	Model            string   `json:"model"`
	Style            Style    `json:"style"`
	Fallback         Fallback `json:"fallback"`
	Segments         int      `json:"segments"`
	Over             float64  `json:"over"`
	All              bool     `json:"all"`
	KeepTurns        int      `json:"keep_turns"`
	KeepMessages     int      `json:"keep_messages"`
	MinTokens        int      `json:"min_tokens"`
	MaxTokens        int      `json:"max_tokens"`
	WordsRatio       float64  `json:"words_ratio"`
	NamesRatio       float64  `json:"names_ratio"`
	LinesRatio       float64  `json:"lines_ratio"`
	Prompt           string   `json:"prompt"`
	Directives       []string `json:"directives"`
	Retain           bool     `json:"retain"`
	RetainPrompt     string   `json:"retain_prompt"`
	RetainDirectives []string `json:"retain_directives"`
}

// modelSegments is how many summaries a view has by default if a model writes them. Something is lost of what a model
// wrote each time that it is summarised again; Extract carries its lines on as they are.
const modelSegments = 4

// MaxSegments returns how many summaries a view may have.
func (s *Summarise) MaxSegments() int {
	switch {
	case s.Segments > 0:
		return s.Segments
	case s.Model != "" && s.Style == Sections:
		return modelSegments
	}
	return 1
}

// Style is a way to ask a model for a summary, see package summary.
type Style string

// The styles: Varve's own, and those of three systems, to the letter.
const (
	Sections      Style = "sections"
	CodeliaPrompt Style = "codelia"
	FalaiPrompt   Style = "falai"
	CortexPrompt  Style = "cortex"
)

// Fallback is what a view has in place of a summary that its model has not written.
type Fallback string

// The fallbacks.
const (
	ExtractInstead Fallback = "extract" // a summary by Extract, until the model's is there
	KeepInstead    Fallback = "keep"    // the messages, which only truncate may drop
	DropInstead    Fallback = "drop"    // the messages until the model has failed; then a notice, down to the target
)

// Truncate drops the oldest units if there is no summary of them: the last resort.
type Truncate struct {
	Enabled bool `json:"enabled"`
}

// Pins say what every checkpoint has verbatim, besides what callers pin.
type Pins struct {
	Markers   bool      `json:"markers"`
	Patterns  []string  `json:"patterns"` // RE2
	Roles     []Speaker `json:"roles"`    // whose texts the patterns are held against
	Whole     []Speaker `json:"whole"`    // whose texts are pinned whole
	MaxTokens int       `json:"max_tokens"`
}

// Speaker is whose text a part of a message is.
type Speaker string

// The speakers.
const (
	SystemSpeaks    Speaker = "system" // or a developer
	UserSpeaks      Speaker = "user"
	AssistantSpeaks Speaker = "assistant"
	ToolSpeaks      Speaker = "tool" // a result
)

// Wording has the texts that replace what has left the view. Each is a template: {name} is replaced by the value of
// that name. The values that a template may name are in fields.json.
type Wording struct {
	Cap              string `json:"cap"`
	BookendHead      string `json:"bookend_head"`
	Bookend          string `json:"bookend"`
	Stub             string `json:"stub"`
	Placeholder      string `json:"placeholder"`
	PlaceholderAgain string `json:"placeholder_again"`
	Clear            string `json:"clear"`
	Summary          string `json:"summary"`
	Truncated        string `json:"truncated"`
}

// Templates returns the parsed texts by the names of their fields. A wording that Parse returned has no errors.
func (w *Wording) Templates() (map[string]text.Template, error) {
	templates := map[string]text.Template{}
	for pointer, source := range eachField(reflect.ValueOf(*w), "/wording") {
		template, err := text.Parse(source.String(), fields[pointer].Names...)
		if err != nil {
			return nil, err
		}
		templates[strings.TrimPrefix(pointer, "/wording/")] = template
	}
	return templates, nil
}

// minFloor is the lowest share of the window at which an eager trim makes a session due.
const minFloor = 0.00001

// DueRule returns what the policy has to do with when a session is due.
func (p *Policy) DueRule() due.Rule {
	rule := due.Rule{
		OnRequest: !p.Enabled || !p.Auto, Trigger: p.Trigger, TriggerTokens: int64(p.TriggerTokens), Hard: p.Hard,
		TriggerBytes: int64(p.TriggerBytes), ColdAfter: int64(p.Cache.TTLSeconds),
	}
	if p.Idle.Enabled && p.idleAfter() > 0 {
		rule.IdleFrom, rule.IdleAfter = p.Idle.From, int64(p.idleAfter())
	}
	if p.Trim.Enabled && p.Trim.Eager {
		rule.Trim = max(p.Trim.FloorRatio, minFloor)
	}
	if b := &p.Budget; b.Enabled && b.Eager {
		rule.Budget = due.Budget{Ratio: b.Ratio, Min: int64(b.Min), Max: int64(b.Max)}
		if b.Tokens > 0 {
			rule.Budget = due.Budget{Min: int64(b.Tokens), Max: int64(b.Tokens)}
		}
	}
	return rule
}

// TargetOf returns how many tokens of a window of this many are the target: never more than the trigger.
func (p *Policy) TargetOf(window float64) float64 {
	trigger, target := p.Trigger*window, p.Target*window
	if p.TriggerTokens > 0 {
		trigger = float64(p.TriggerTokens)
	}
	if p.TargetTokens > 0 {
		target = float64(p.TargetTokens)
	}
	return min(target, trigger)
}

// Off returns the policy without any stage.
func (p Policy) Off() *Policy {
	p.Cap.Enabled = false
	p.Dedupe.Enabled = false
	p.Arguments.Enabled = false
	p.Trim.Enabled = false
	p.Budget.Enabled = false
	p.MediaBytes = 0
	p.Whitespace.Enabled = false
	p.Summarise.Enabled = false
	p.Truncate.Enabled = false
	return &p
}

// Document returns the policy as JSON with every field, always in the same bytes. Parse reads it back: a category that
// the profile has and the policy lacks is null.
func (p Policy) Document() []byte {
	categories := maps.Clone(p.Trim.Categories)
	for tool := range profileOrDefault(p.Profile).Trim.Categories {
		if _, ok := categories[tool]; !ok && categories != nil {
			categories[tool] = ""
		}
	}
	p.Trim.Categories = categories
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
