package protocol

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// RecompactionRequest is the body that begins a recompaction, or counts what it would do (DryRun).
type RecompactionRequest struct {
	Filter     RecompactionFilter `json:"filter"`
	Policy     json.RawMessage    `json:"policy,omitempty"`
	MaxRunning int                `json:"max_running,omitempty"`
	DryRun     bool               `json:"dry_run,omitempty"`
}

// RecompactionFilter selects sessions: those that meet every condition that is set.
type RecompactionFilter struct {
	Sessions           []string        `json:"sessions,omitempty"` // ids
	Metadata           json.RawMessage `json:"metadata,omitempty"` // what a session's metadata contains
	CreatedBefore      *time.Time      `json:"created_before,omitempty"`
	CreatedAfter       *time.Time      `json:"created_after,omitempty"`
	MinTokens          *int64          `json:"min_tokens,omitempty"` // of the view
	PolicyVersionBelow *int64          `json:"policy_version_below,omitempty"`
	EngineVersionBelow *int64          `json:"engine_version_below,omitempty"`
}

// Recompaction compacts many sessions again, from their logs.
type Recompaction struct {
	ID           uuid.UUID            `json:"id"`
	State        string               `json:"state"` // queued, running, cancelling, done, failed or cancelled
	Filter       RecompactionFilter   `json:"filter"`
	Policy       json.RawMessage      `json:"policy,omitempty"` // absent: each session's own
	From         string               `json:"from"`
	MaxRunning   int                  `json:"max_running"`
	Progress     RecompactionProgress `json:"progress"`
	TokensBefore int64                `json:"tokens_before"`
	TokensAfter  int64                `json:"tokens_after"`
	Error        *string              `json:"error"`
	Errors       []SessionError       `json:"errors,omitzero"` // lists omit them
	CreatedAt    time.Time            `json:"created_at"`
	StartedAt    *time.Time           `json:"started_at"`
	FinishedAt   *time.Time           `json:"finished_at"`
}

// Ended reports whether the recompaction will touch no more sessions.
func (r *Recompaction) Ended() bool {
	return r.State == "done" || r.State == "failed" || r.State == "cancelled"
}

// RecompactionProgress counts the sessions of a recompaction. Done counts those that will not be touched again.
type RecompactionProgress struct {
	Total     int64 `json:"total"`
	Done      int64 `json:"done"`
	Running   int64 `json:"running"`
	Changed   int64 `json:"changed"`
	Unchanged int64 `json:"unchanged"`
	Failed    int64 `json:"failed"`
	Skipped   int64 `json:"skipped"`
}

// SessionError is why a recompaction failed for one session.
type SessionError struct {
	Session string    `json:"session"`
	Error   string    `json:"error"`
	At      time.Time `json:"at"`
}

// RecompactionSession is a session of a recompaction.
type RecompactionSession struct {
	Session      *string    `json:"session"` // null once it is erased
	State        string     `json:"state"`
	Failures     int        `json:"failures"`
	Run          *uuid.UUID `json:"run"`
	TokensBefore *int64     `json:"tokens_before"`
	TokensAfter  *int64     `json:"tokens_after"`
	Error        *string    `json:"error"`
	FinishedAt   *time.Time `json:"finished_at"`
}

// RecompactionPlan is the answer to a dry run.
type RecompactionPlan struct {
	DryRun        bool                 `json:"dry_run"`
	Sessions      int64                `json:"sessions"`
	Messages      int64                `json:"messages"`
	TotalTokens   int64                `json:"total_tokens"`
	ContextTokens int64                `json:"context_tokens"`
	Sample        RecompactionSample   `json:"sample"`
	Estimate      RecompactionEstimate `json:"estimate"`
	ConfirmToken  string               `json:"confirm_token"`
}

// RecompactionSample is what the engine would do to some of the sessions.
type RecompactionSample struct {
	Sessions     int            `json:"sessions"`
	Changed      int            `json:"changed"`
	Unchanged    int            `json:"unchanged"`
	Failed       int            `json:"failed"`
	TokensBefore int64          `json:"tokens_before"`
	TokensAfter  int64          `json:"tokens_after"`
	Errors       []SessionError `json:"errors"`
}

// RecompactionEstimate is the sample, scaled to all sessions.
type RecompactionEstimate struct {
	Changed      int64 `json:"changed"`
	TokensBefore int64 `json:"tokens_before"`
	TokensAfter  int64 `json:"tokens_after"`
}
