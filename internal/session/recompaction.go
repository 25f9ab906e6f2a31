package session

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// RecompactionState is the state of a recompaction.
type RecompactionState string

// The states of a recompaction.
const (
	RecompactionQueued     RecompactionState = "queued"    // its sessions are being looked for
	RecompactionScheduled  RecompactionState = "scheduled" // its sessions begin later
	RecompactionRunning    RecompactionState = "running"
	RecompactionCancelling RecompactionState = "cancelling" // running sessions are finished, no others are started
	RecompactionDone       RecompactionState = "done"
	RecompactionFailed     RecompactionState = "failed" // its sessions could not be found
	RecompactionCancelled  RecompactionState = "cancelled"

	RecompactionPaused      RecompactionState = "paused" // running sessions are finished, others wait
	RecompactionRollingBack RecompactionState = "rolling_back"
	RecompactionRolledBack  RecompactionState = "rolled_back"
)

// Ended reports whether the recompaction will not change any more.
func (s RecompactionState) Ended() bool {
	return s == RecompactionDone || s == RecompactionFailed || s == RecompactionCancelled || s == RecompactionRolledBack
}

// SessionFilter selects sessions of a tenant: those for which every condition that is set holds.
type SessionFilter struct {
	Sessions           []string        `json:"sessions,omitzero"`  // ids; none of them if it is empty
	Metadata           json.RawMessage `json:"metadata,omitempty"` // a subset of the session's metadata
	CreatedBefore      *time.Time      `json:"created_before,omitempty"`
	CreatedAfter       *time.Time      `json:"created_after,omitempty"`
	MinTokens          *int64          `json:"min_tokens,omitempty"`           // of the view
	PolicyVersionBelow *int64          `json:"policy_version_below,omitempty"` // tenant's, at the newest checkpoint
	EngineVersionBelow *int64          `json:"engine_version_below,omitempty"` // at the newest checkpoint
	Model              string          `json:"model,omitempty"`
	Format             Format          `json:"format,omitempty"`
	ForkedFrom         string          `json:"forked_from,omitempty"` // id
	UpdatedAfter       *time.Time      `json:"updated_after,omitempty"`
	OverWindow         bool            `json:"over_window,omitempty"`
	Failing            bool            `json:"failing,omitempty"`
	Percent            int             `json:"percent,omitempty"` // of these sessions, chosen by a hash of their keys
}

// Pace is when the sessions of a recompaction may begin.
type Pace struct {
	MaxRunning int
	PerMinute  *int       // sessions that begin; nil for no limit
	StartAt    *time.Time // nil for at once
	Hours      *Hours     // nil for all
}

// Recompaction compacts many sessions of a tenant anew, from their logs.
type Recompaction struct {
	ID     uuid.UUID
	State  RecompactionState
	Filter SessionFilter
	Policy json.RawMessage `json:",omitempty"` // changes to each session's policy for this recompaction; nil for none
	Pace
	NextStartAt  *time.Time // nil if the next session may begin
	Group        *uuid.UUID // of the operators' recompaction of many tenants of which it is a part
	Ask          bool       // models are asked for the summaries that are not kept
	Total        int64      // sessions
	Running      int64
	Changed      int64
	Unchanged    int64
	Failed       int64
	Skipped      int64 // erased before their turn
	RolledBack   int64 // changed, and serving again what they served before
	Excepted     int64 // changed, and not rolled back
	TokensBefore int64 // of the sessions that are changed or unchanged
	TokensAfter  int64
	Error        *string
	Errors       []RecompactionError // the newest ones, of sessions that failed
	CreatedAt    time.Time
	StartedAt    *time.Time
	FinishedAt   *time.Time
	RolledBackAt *time.Time // when its rollback ended
}

// Done returns the number of sessions that the recompaction will not touch any more.
func (r Recompaction) Done() int64 { return r.Changed + r.Unchanged + r.Failed + r.Skipped }

// RecompactionError is the reason why the recompaction of a session failed.
type RecompactionError struct {
	Session string    `json:"session"`
	Error   string    `json:"error"`
	At      time.Time `json:"at"`
}

// RecompactionCount is the size of what a filter selects.
type RecompactionCount struct {
	Sessions      int64
	Messages      int64
	TotalTokens   int64 // of the logs
	ContextTokens int64 // of the views
	Sample        []SampledSession
}

// Add adds what is selected elsewhere.
func (c *RecompactionCount) Add(other RecompactionCount) {
	c.Sessions += other.Sessions
	c.Messages += other.Messages
	c.TotalTokens += other.TotalTokens
	c.ContextTokens += other.ContextTokens
	c.Sample = append(c.Sample, other.Sample...)
}

// SampledSession is one of the sessions that a filter selects.
type SampledSession struct {
	Key
	ID string
}

// RecompactionSession is the outcome of a recompaction for one session.
type RecompactionSession struct {
	Key          uuid.UUID  `json:"-"`
	Session      *string    `json:"session"`  // id, nil if it is just being erased
	State        string     `json:"state"`    // what became of it
	Failures     int        `json:"failures"` // so far
	Run          *uuid.UUID `json:"run"`
	TokensBefore *int64     `json:"tokens_before"`
	TokensAfter  *int64     `json:"tokens_after"`
	Error        *string    `json:"error"`  // of the last attempt
	Reason       *string    `json:"reason"` // why the session is excepted from the rollback
	FinishedAt   *time.Time `json:"finished_at"`
}
