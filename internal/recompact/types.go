package recompact

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
)

// RecompactionState is the state of a recompaction.
type RecompactionState string

// The states of a recompaction.
const (
	Queued     RecompactionState = "queued"    // its sessions are being looked for
	Scheduled  RecompactionState = "scheduled" // its sessions begin later
	Running    RecompactionState = "running"
	Cancelling RecompactionState = "cancelling" // running sessions are finished, no others are started
	Done       RecompactionState = "done"
	Failed     RecompactionState = "failed" // its sessions could not be found
	Cancelled  RecompactionState = "cancelled"

	Paused      RecompactionState = "paused" // running sessions are finished, others wait
	RollingBack RecompactionState = "rolling_back"
	RolledBack  RecompactionState = "rolled_back"
)

// Ended reports whether the recompaction will not change any more.
func (s RecompactionState) Ended() bool {
	return s == Done || s == Failed || s == Cancelled || s == RolledBack
}

// Pace is when the sessions of a recompaction may begin.
type Pace struct {
	MaxRunning int
	PerMinute  *int       // sessions that begin; nil for no limit
	StartAt    *time.Time // nil for at once
	Hours      *Hours     // nil for all
}

// Stored is a recompaction as it is stored: it compacts many sessions of a tenant anew, from their logs.
type Stored struct {
	ID     uuid.UUID
	State  RecompactionState
	Filter session.SessionFilter
	Policy json.RawMessage `json:",omitempty"` // changes to each session's policy for this recompaction; nil for none
	Pace
	NextStartAt  *time.Time // nil if the next session may begin
	Group        *uuid.UUID // the operators' recompaction of many tenants that it is a part of
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
func (r Stored) Done() int64 { return r.Changed + r.Unchanged + r.Failed + r.Skipped }

// RecompactionError is the reason why the recompaction of a session failed.
type RecompactionError struct {
	Session string    `json:"session"`
	Error   string    `json:"error"`
	At      time.Time `json:"at"`
}

// Count is the size of what a filter selects.
type Count struct {
	Sessions      int64
	Messages      int64
	TotalTokens   int64 // of the logs
	ContextTokens int64 // of the views
	Sample        []Sampled
}

// Add adds what is selected elsewhere.
func (c *Count) Add(other Count) {
	c.Sessions += other.Sessions
	c.Messages += other.Messages
	c.TotalTokens += other.TotalTokens
	c.ContextTokens += other.ContextTokens
	c.Sample = append(c.Sample, other.Sample...)
}

// Sampled is one of the sessions that a filter selects.
type Sampled struct {
	session.Key
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

// maxTenants bounds the tenants of a recompaction.
const maxTenants = 1000

// Group is a recompaction of many tenants, begun by an operator: one of each of them.
type Group struct {
	ID        uuid.UUID
	Tenants   []uuid.UUID // nil for all, of one that is to begin
	Filter    session.SessionFilter
	Policy    json.RawMessage
	Pace      Pace // of each tenant
	Ask       bool
	CreatedAt time.Time
}

// Part is the recompaction of one tenant of a group.
type Part struct {
	Tenant uuid.UUID
	Stored
}

// Served is what sessions have served, and how often something was read back.
type Served struct {
	Views         int64    `json:"views"` // that were served
	TokensServed  int64    `json:"tokens_served"`
	ReadBacks     int64    `json:"read_backs"` // of everything
	TokensPerView *float64 `json:"tokens_per_view"`
	ReadsPerViews *float64 `json:"read_backs_per_1000_views"`
}

// ServedOfChanged is what sessions have served that a recompaction changed, and what was read back of what had left
// their views.
type ServedOfChanged struct {
	ViewTokens int64 `json:"view_tokens"` // of the views, just before and just after the recompaction
	Served
}

// Comparison is what sessions served before a recompaction changed them, and since, beside what the tenant was served
// since the recompaction began that is not of them.
type Comparison struct {
	Sessions int64           `json:"sessions"` // that it changed and that were not rolled back
	Before   ServedOfChanged `json:"before"`
	After    ServedOfChanged `json:"after"`
	Others   Served          `json:"others"`
}

// Add adds another comparison.
func (c *Comparison) Add(other Comparison) {
	c.Sessions += other.Sessions
	c.Before.add(other.Before)
	c.After.add(other.After)
	c.Others.add(other.Others)
}

func (s *ServedOfChanged) add(other ServedOfChanged) {
	s.ViewTokens += other.ViewTokens
	s.Served.add(other.Served)
}

func (s *Served) add(other Served) {
	s.Views += other.Views
	s.TokensServed += other.TokensServed
	s.ReadBacks += other.ReadBacks
	if s.Views > 0 {
		s.TokensPerView = new(float64(s.TokensServed) / float64(s.Views))
		s.ReadsPerViews = new(1000 * float64(s.ReadBacks) / float64(s.Views))
	}
}
