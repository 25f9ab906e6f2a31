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
	// the document, for one that has no name of its own
	Policy json.RawMessage `json:"policy,omitempty" schema:"Policy"`
}

// Replay measures policies over stored sessions.
type Replay struct {
	ID uuid.UUID `json:"id"`
	// `queued`: the sample is not taken yet; `cancelling`: the measurement that runs is thrown away
	State       session.ReplayState   `json:"state"`
	Policies    []ReplayPolicy        `json:"policies"`
	Windows     []int                 `json:"windows"` // empty: each session's own
	Filter      session.SessionFilter `json:"filter" schema:"RecompactionFilter"`
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
	Matched int64 `json:"matched"` // sessions that the filter selects
	// of these, sessions below 0.8 of the smallest window: they are not sampled
	TooShort int64                `json:"too_short"`
	Total    int64                `json:"total"` // sessions in the sample
	Done     int64                `json:"done"`  // sessions that have ended
	Measured int64                `json:"measured"`
	Failed   int64                `json:"failed"` // sessions whose log cannot be replayed
	Skipped  []session.ReplaySkip `json:"skipped"`
	// stored measurements of one session under one policy in one window
	Outcomes  int64   `json:"outcomes"`
	Contender *string `json:"contender"` // the policy that is being measured
}
