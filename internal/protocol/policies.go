package protocol

import (
	"encoding/json"

	"github.com/varve-dev/varve/internal/compact"

	"github.com/varve-dev/varve/internal/session"
)

// Policy is one layer of a policy, and what it makes together with those below it.
type Policy struct {
	Version   session.PolicyVersion `json:"policy_version"`
	Patch     json.RawMessage       `json:"patch"` // null for a session without a policy of its own
	Effective json.RawMessage       `json:"effective"`
	Sources   map[string]string     `json:"sources"` // the layer of each field, by JSON pointer
}

// Profile is a policy by name.
type Profile struct {
	Name   string          `json:"name"`
	Policy json.RawMessage `json:"policy"`
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
	From         string                `json:"from"` // checkpoint or log
	Through      int64                 `json:"through_seq"`
	TokensBefore int64                 `json:"tokens_before"`
	TokensAfter  int64                 `json:"tokens_after"`
	WouldChange  bool                  `json:"would_change"`
	Due          bool                  `json:"due"`
	Reason       string                `json:"reason"` // why now, or why not yet, in a sentence
	Why          any                   `json:"why"`    // the same in figures
	Stages       []compact.StageReport `json:"stages"`
	Actions      []compact.Action      `json:"actions"`
	Report       Report                `json:"report"`
	Summaries    []WantedSummary       `json:"summaries"` // that models write
}

// Report is what a compaction looked at, what it did and why, and what is left to worry about.
type Report struct {
	From              string         `json:"from"`
	MessagesTotal     int64          `json:"messages_total"`     // in the log
	MessagesCompacted int            `json:"messages_compacted"` // messages of which a part was changed
	Actions           map[string]int `json:"actions"`            // parts by what was done to them
	Reasons           map[string]int `json:"reasons"`            // parts by the field of the policy that decided
	ResultsPersisted  int            `json:"results_persisted"`
	BytesBefore       int64          `json:"bytes_before"` // of the messages that the plan was made of
	BytesAfter        int64          `json:"bytes_after"`
	ViewTokensBefore  int64          `json:"view_tokens_before"`
	TokensSaved       int64          `json:"tokens_saved"` // of the view; negative if the log restores more
	Stale             Stale          `json:"stale"`
	Decisions         Decisions      `json:"decisions"`
	KeptPrefix        KeptPrefix     `json:"kept_prefix"`
	FailedOpen        []string       `json:"failed_open"` // what failed, so that the compaction continued without it
	OverflowRisk      *OverflowRisk  `json:"overflow_risk"`
}

// Stale has the results that were replaced because newer ones for their resource, or a write of their file, followed.
type Stale struct {
	Count          int      `json:"count"`           // results
	ResourcesTotal int      `json:"resources_total"` // the different resources that they are about
	Resources      []string `json:"resources"`       // at most 100 of those, in order, secrets in their names masked
}

// Decisions counts what was decided about the tool results and large calls of the view that no summary has taken.
type Decisions struct {
	Processed  int            `json:"processed"`
	Applied    int            `json:"applied"`
	ByCategory map[string]int `json:"by_category"` // by what the tool does
	ByReason   map[string]int `json:"by_reason"`   // by compact.Decision
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
