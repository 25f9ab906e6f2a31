package protocol

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
)

// ReplayRequest is the body that begins a replay. All members but Policies may be absent.
type ReplayRequest struct {
	Tenant      string                `json:"tenant,omitempty"`
	Policies    []ReplayPolicy        `json:"policies"` // the first is the one that the others are compared with
	Windows     []int                 `json:"windows,omitempty"`
	Filter      session.SessionFilter `json:"filter"`
	Sample      int                   `json:"sample,omitempty"`
	Seed        int64                 `json:"seed,omitempty"`
	MaxMessages int64                 `json:"max_messages,omitempty"`
	MaxBytes    int64                 `json:"max_bytes,omitempty"`
}

// ReplayPolicy is one of the policies that a replay compares.
type ReplayPolicy struct {
	Name   string               `json:"name"`
	Source session.ReplaySource `json:"source,omitempty"` // absent in requests
	Policy json.RawMessage      `json:"policy,omitempty"` // the document, for one that has no name of its own
}

// Replay measures policies over stored sessions.
type Replay struct {
	ID          uuid.UUID             `json:"id"`
	State       session.ReplayState   `json:"state"`
	Policies    []ReplayPolicy        `json:"policies"`
	Windows     []int                 `json:"windows"` // none: each session's own
	Filter      session.SessionFilter `json:"filter"`
	Sample      int                   `json:"sample"`
	Seed        int64                 `json:"seed"`
	MaxMessages int64                 `json:"max_messages"`
	MaxBytes    int64                 `json:"max_bytes"`
	Progress    ReplayProgress        `json:"progress"`
	Error       *string               `json:"error"`
	CreatedAt   time.Time             `json:"created_at"`
	StartedAt   *time.Time            `json:"started_at"`
	FinishedAt  *time.Time            `json:"finished_at"`
}

// ReplayProgress counts the sessions of a replay. Done counts those that will not be measured any more.
type ReplayProgress struct {
	Matched   int64                `json:"matched"`   // by the filter
	TooShort  int64                `json:"too_short"` // of these, sessions that no window would compact
	Total     int64                `json:"total"`     // in the sample
	Done      int64                `json:"done"`
	Measured  int64                `json:"measured"`
	Failed    int64                `json:"failed"`
	Skipped   []session.ReplaySkip `json:"skipped"`
	Outcomes  int64                `json:"outcomes"`  // sessions under a contender in a window
	Contender *string              `json:"contender"` // that is being measured
}
