package protocol

import (
	"encoding/json"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/session"
)

// Policy is one layer of a policy, and what it makes together with those below it.
type Policy struct {
	Version session.PolicyVersion `json:"policy_version"`
	// the requested layer; null if the session has none
	Patch     json.RawMessage   `json:"patch" schema:"Policy"`
	Effective json.RawMessage   `json:"effective" schema:"Policy"` // the effective value of every field
	Sources   map[string]string `json:"sources"`                   // the layer that sets each field, by JSON pointer
}

// Profile is a policy by name.
type Profile struct {
	Name      string          `json:"name"`
	Policy    json.RawMessage `json:"policy"`
	Document  string          `json:"document"`  // of the system whose behaviour it has; "" for the default
	Explained []Explained     `json:"explained"` // what the document says of each field
}

// Explained is a field of a profile with what the document of its system says of it, in our words.
type Explained struct {
	Field   string          `json:"field"`
	Value   json.RawMessage `json:"value"`
	Section string          `json:"section"` // of the document; "" where it has nothing
	Says    string          `json:"says"`
	Classes []string        `json:"classes"` // of docs/compatibility.md, in which Varve differs
}

// PreviewRequest is the body that asks for a preview. All members may be absent: the session's policy, where a run
// would start, and no model asked.
type PreviewRequest struct {
	Policy json.RawMessage `json:"policy,omitempty"` // merged into the session's own; null is the tenant's default
	From   string          `json:"from,omitempty"`   // checkpoint or log
	Ask    bool            `json:"ask,omitempty"`    // models for the summaries that are not kept
}

// Preview is what a compaction would do.
type Preview struct {
	From         string                `json:"from" schema:"From"` // checkpoint or log
	Through      int64                 `json:"through_seq"`
	TokensBefore int64                 `json:"tokens_before"`
	TokensAfter  int64                 `json:"tokens_after"`
	WouldChange  bool                  `json:"would_change"`
	Due          bool                  `json:"due"`              // whether the trigger is reached
	Reason       string                `json:"reason"`           // why now, or why not yet, in a sentence
	Why          any                   `json:"why" schema:"Why"` // the same in figures
	Stages       []compact.StageReport `json:"stages" schema:"[]Stage"`
	Actions      []compact.Action      `json:"actions"`
	Report       Report                `json:"report"`
	Summaries    []WantedSummary       `json:"summaries"` // that models write
	// a page of the view that it would make, through through_seq; only if it was asked for, and if it would change
	Units []ViewUnit `json:"units,omitempty"`
}

// Report is what a compaction looked at, what it did and why, and what is left to worry about.
type Report struct {
	From              string         `json:"from" schema:"From"`
	MessagesTotal     int64          `json:"messages_total"`     // of the log
	MessagesCompacted int            `json:"messages_compacted"` // messages of which a part was changed
	Actions           map[string]int `json:"actions"`            // parts by what was done to them
	Reasons           map[string]int `json:"reasons"`            // parts by the field of the policy that decided
	ResultsPersisted  int            `json:"results_persisted"`
	BytesBefore       int64          `json:"bytes_before"` // of the messages that the plan was made of
	BytesAfter        int64          `json:"bytes_after"`
	ViewTokensBefore  int64          `json:"view_tokens_before"`
	// of the view; below 0 if a compaction from the log restored more than it removed
	TokensSaved int64 `json:"tokens_saved"`
	// results that newer ones for their resource made superfluous
	Stale Stale `json:"stale"`
	// what was decided about the tool results and large calls that no summary has taken; absent in runs of engines
	// before 4
	Decisions Decisions `json:"decisions" schema:"optional"`
	// the beginning of the view that is kept byte for byte, so that the provider's cache remains valid
	KeptPrefix KeptPrefix `json:"kept_prefix"`
	// what failed, so that the compaction continued without it
	FailedOpen []string `json:"failed_open"`
	// by how much the view is still too large for its window
	OverflowRisk *OverflowRisk `json:"overflow_risk"`
}

// Stale has the results that were replaced because newer ones for their resource followed.
type Stale struct {
	Count          int `json:"count"`                             // results
	ResourcesTotal int `json:"resources_total" schema:"optional"` // the different resources that they are about
	// the resources as tool:primary[:secondary], in order, secrets masked
	Resources []string `json:"resources" schema:"maxItems: 100"`
}

// Decisions counts what was decided about the tool results and large calls of the view that no summary has taken.
type Decisions struct {
	Processed int `json:"processed"`
	Applied   int `json:"applied"`
	// by what the tool does, `unknown` for a result without a call
	ByCategory map[string]int `json:"by_category"`
	ByReason   map[string]int `json:"by_reason"` // by `decision` of an action
}

// KeptPrefix is the beginning of the view that keeps its bytes, and with them the provider's cache.
type KeptPrefix struct {
	Tokens int64   `json:"tokens"`
	Share  float64 `json:"share"` // of the view after the compaction
}

// OverflowRisk reports that the view does not fit into its window although nothing more can be shortened.
type OverflowRisk struct {
	OverBy         int64  `json:"over_by"` // tokens
	Recommendation string `json:"recommendation"`
}
