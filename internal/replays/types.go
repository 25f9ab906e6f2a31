package replays

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
)

// ReplayState is the state of a replay.
type ReplayState string

// The states of a replay.
const (
	Queued     ReplayState = "queued" // its sample is not taken yet
	Running    ReplayState = "running"
	Cancelling ReplayState = "cancelling" // the measurement that runs is thrown away, no other is begun
	Done       ReplayState = "done"
	Failed     ReplayState = "failed"
	Cancelled  ReplayState = "cancelled" // its report covers what was measured until then
)

// Ended reports whether the replay will not change any more.
func (s ReplayState) Ended() bool {
	return s == Done || s == Failed || s == Cancelled
}

// Stored is a replay as it is stored: it measures policies over a sample of a tenant's sessions, from their logs.
type Stored struct {
	ID          uuid.UUID
	State       ReplayState
	Filter      session.SessionFilter
	Contenders  []Contender // the first is the one that the others are compared with
	Windows     []int       // tokens; none for each session's own
	Sample      int         // sessions at most
	Seed        int64       // decides which sessions the sample has
	MaxMessages int64       // of a session; one with more is skipped
	MaxBytes    int64       // of a session's messages
	Matched     int64       // sessions that the filter finds
	TooShort    int64       // of these, sessions that no window would compact; they are not in the sample
	Total       int64       // sessions in the sample
	Measured    int64
	Failed      int64
	Skipped     []ReplaySkip // the sessions of the sample that were not measured, by reason
	Outcomes    int64        // sessions under a contender in a window
	Contender   *string      // the one that is being measured
	Error       *string
	CreatedAt   time.Time
	StartedAt   *time.Time
	FinishedAt  *time.Time
}

// Done returns the number of sessions that the replay will not measure any more.
func (r Stored) Done() int64 {
	done := r.Measured + r.Failed
	for _, s := range r.Skipped {
		done += s.Sessions
	}
	return done
}

// Contender is one of the policies that a replay compares.
type Contender struct {
	Name   string          `json:"name"`
	Source ReplaySource    `json:"source"`
	Patch  json.RawMessage `json:"patch,omitempty"`  // the document as it was sent
	Policy json.RawMessage `json:"policy,omitempty"` // the whole policy; absent for a yardstick
}

// ReplaySource says what the name of a contender is.
type ReplaySource string

// The sources of contenders.
const (
	FromProfile   ReplaySource = "profile"
	FromTenant    ReplaySource = "tenant"   // the tenant's default, or a version of it
	FromDocument  ReplaySource = "document" // sent with the request
	FromYardstick ReplaySource = "yardstick"
)

// ReplaySkip counts sessions that were not measured.
type ReplaySkip struct {
	// see the constants
	Reason   string `json:"reason" schema:"enum: [too_many_messages, too_large, several_formats, too_short, erased]"`
	Sessions int64  `json:"sessions"`
}

// The reasons why a session of the sample is not measured.
const (
	SkippedMessages = "too_many_messages"
	SkippedBytes    = "too_large"
	SkippedFormats  = "several_formats"
	SkippedShort    = "too_short" // without its removed messages
	SkippedErased   = "erased"
)

// ReplaySession is what became of one session of a replay.
type ReplaySession struct {
	Key        uuid.UUID  `json:"-"`
	Place      int64      `json:"-"`
	Session    *string    `json:"session"`  // id, nil if it is just being erased
	State      string     `json:"state"`    // queued, measured, skipped, failed; cancelled if never measured
	Reason     *string    `json:"reason"`   // why it was skipped, or the error
	Outcomes   int64      `json:"outcomes"` // so far
	FinishedAt *time.Time `json:"finished_at"`
}

// Request is the body that begins a replay. All members but Policies may be absent.
type Request struct {
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
	Name   string       `json:"name"`
	Source ReplaySource `json:"source,omitempty"` // absent in requests
	// the document, for one that has no name of its own
	Policy json.RawMessage `json:"policy,omitempty" schema:"Policy"`
}

// Replay measures policies over stored sessions.
type Replay struct {
	ID uuid.UUID `json:"id"`
	// `queued`: the sample is not taken yet; `cancelling`: the measurement that runs is thrown away
	State       ReplayState           `json:"state"`
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
	TooShort int64        `json:"too_short"`
	Total    int64        `json:"total"` // sessions in the sample
	Done     int64        `json:"done"`  // sessions that have ended
	Measured int64        `json:"measured"`
	Failed   int64        `json:"failed"` // sessions whose log cannot be replayed
	Skipped  []ReplaySkip `json:"skipped"`
	// stored measurements of one session under one policy in one window
	Outcomes  int64   `json:"outcomes"`
	Contender *string `json:"contender"` // the policy that is being measured
}
