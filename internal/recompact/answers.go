package recompact

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
)

// Request is the body that begins a recompaction, or counts what it would do (DryRun).
type Request struct {
	Filter     session.SessionFilter `json:"filter"`
	Policy     json.RawMessage       `json:"policy,omitempty"`
	MaxRunning int                   `json:"max_running,omitempty"`
	PerMinute  *int                  `json:"per_minute,omitempty"` // sessions that begin
	StartAt    *time.Time            `json:"start_at,omitempty"`
	Hours      *Hours                `json:"hours,omitempty"` // in which sessions begin
	Ask        bool                  `json:"ask,omitempty"`   // models are asked for the summaries that are not kept
	DryRun     bool                  `json:"dry_run,omitempty"`
}

// Recompaction compacts many sessions again, from their logs.
type Recompaction struct {
	ID uuid.UUID `json:"id"`
	// `queued`: its sessions are being collected; `scheduled`: `start_at` has not come; `paused`, `cancelling`:
	// running compactions end normally; `rolling_back`: sessions go back to what they served before
	State  RecompactionState     `json:"state"`
	Filter session.SessionFilter `json:"filter" schema:"RecompactionFilter"`
	// absent if each session's policy is used
	Policy     json.RawMessage `json:"policy,omitempty" schema:"Policy"`
	From       string          `json:"from" schema:"const: log"`
	MaxRunning int             `json:"max_running"`
	PerMinute  *int            `json:"per_minute"`
	StartAt    *time.Time      `json:"start_at"`
	Hours      *Hours          `json:"hours"`
	// when the next session may begin; null if one may now
	NextStartAt  *time.Time           `json:"next_start_at"`
	Group        *uuid.UUID           `json:"group"` // the recompaction of many tenants of which it is a part
	Ask          bool                 `json:"ask"`
	Progress     RecompactionProgress `json:"progress"`
	TokensBefore int64                `json:"tokens_before"`
	TokensAfter  int64                `json:"tokens_after"`
	Error        *string              `json:"error"`
	// the newest; lists omit them
	Errors       []RecompactionError `json:"errors,omitzero" schema:"maxItems: 10"`
	CreatedAt    time.Time           `json:"created_at"`
	StartedAt    *time.Time          `json:"started_at"`
	FinishedAt   *time.Time          `json:"finished_at"`
	RolledBackAt *time.Time          `json:"rolled_back_at"` // when its rollback ended
}

// RecompactionProgress counts the sessions of a recompaction. Done counts those that will not be touched again.
type RecompactionProgress struct {
	Total     int64 `json:"total"`
	Done      int64 `json:"done"` // sessions that have ended
	Running   int64 `json:"running"`
	Changed   int64 `json:"changed"`
	Unchanged int64 `json:"unchanged"`
	Failed    int64 `json:"failed"`
	Skipped   int64 `json:"skipped"` // sessions that were erased meanwhile

	RolledBack int64 `json:"rolled_back"` // changed sessions that serve again what they served before
	Excepted   int64 `json:"excepted"`    // changed sessions that were not rolled back
}

// Add adds the sessions of another recompaction.
func (p *RecompactionProgress) Add(other RecompactionProgress) {
	p.Total += other.Total
	p.Done += other.Done
	p.Running += other.Running
	p.Changed += other.Changed
	p.Unchanged += other.Unchanged
	p.Failed += other.Failed
	p.Skipped += other.Skipped
	p.RolledBack += other.RolledBack
	p.Excepted += other.Excepted
}

// RecompactionPlan is the answer to a dry run.
type RecompactionPlan struct {
	DryRun        bool                 `json:"dry_run" schema:"const: true"`
	Sessions      int64                `json:"sessions"`
	Messages      int64                `json:"messages"`
	TotalTokens   int64                `json:"total_tokens"`
	ContextTokens int64                `json:"context_tokens"`
	Sample        RecompactionSample   `json:"sample"`                  // the result for some of the sessions
	Estimate      RecompactionEstimate `json:"estimate"`                // the sample, scaled to all sessions
	ConfirmToken  string               `json:"confirm_token,omitempty"` // that of many tenants has none
}

// RecompactionSample is what the engine would do to some of the sessions.
type RecompactionSample struct {
	Sessions     int                 `json:"sessions"`
	Changed      int                 `json:"changed"`
	Unchanged    int                 `json:"unchanged"`
	Failed       int                 `json:"failed"`
	TokensBefore int64               `json:"tokens_before"`
	TokensAfter  int64               `json:"tokens_after"`
	Errors       []RecompactionError `json:"errors"`
	// what language models would be asked for; what is kept costs nothing
	Models RecompactionModels `json:"models"`
}

// RecompactionModels is what language models would be asked for.
type RecompactionModels struct {
	Summaries       int64   `json:"summaries"`
	Kept            int64   `json:"kept"` // answered already: they cost nothing
	Calls           int64   `json:"calls"`
	InputTokens     int64   `json:"input_tokens"`
	OutputTokensMax int64   `json:"output_tokens_max"`
	CostMax         float64 `json:"cost_max"` // in the operator's currency
}

// RecompactionEstimate is the sample, scaled to all sessions.
type RecompactionEstimate struct {
	Changed      int64 `json:"changed"`
	TokensBefore int64 `json:"tokens_before"`
	TokensAfter  int64 `json:"tokens_after"`
	TokensSaved  int64 `json:"tokens_saved"`

	Calls           int64   `json:"calls"`        // of language models, if they are asked
	InputTokens     int64   `json:"input_tokens"` // of these calls
	OutputTokensMax int64   `json:"output_tokens_max"`
	CostMax         float64 `json:"cost_max"` // in the operator's currency
}

// RecompactionGroup is a recompaction of many tenants. Lists omit what became of it.
type RecompactionGroup struct {
	ID      uuid.UUID             `json:"id"`
	Tenants int                   `json:"tenants"`
	Filter  session.SessionFilter `json:"filter" schema:"RecompactionFilter"`
	// absent if each session's policy is used
	Policy     json.RawMessage `json:"policy,omitempty" schema:"Policy"`
	MaxRunning int             `json:"max_running"`
	PerMinute  *int            `json:"per_minute"`
	StartAt    *time.Time      `json:"start_at"`
	Hours      *Hours          `json:"hours"`
	Ask        bool            `json:"ask"`
	CreatedAt  time.Time       `json:"created_at"`

	// how many of its recompactions are in each state; lists omit it
	States map[RecompactionState]int `json:"states,omitzero"`
	// the sum over all tenants; lists omit it
	Progress      *RecompactionProgress `json:"progress,omitempty"`
	TokensBefore  int64                 `json:"tokens_before"`
	TokensAfter   int64                 `json:"tokens_after"`
	Recompactions []RecompactionPart    `json:"recompactions,omitzero"` // by tenant; lists omit them
}

// RecompactionPart is the recompaction of one tenant of a group.
type RecompactionPart struct {
	Tenant       uuid.UUID            `json:"tenant"`
	Recompaction uuid.UUID            `json:"recompaction"`
	State        RecompactionState    `json:"state"`
	Progress     RecompactionProgress `json:"progress"`
	NextStartAt  *time.Time           `json:"next_start_at"`
}
