package session

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// ReplayState is the state of a replay.
type ReplayState string

// The states of a replay.
const (
	ReplayQueued     ReplayState = "queued" // its sample is not taken yet
	ReplayRunning    ReplayState = "running"
	ReplayCancelling ReplayState = "cancelling" // the measurement that runs is thrown away, no other is begun
	ReplayDone       ReplayState = "done"
	ReplayFailed     ReplayState = "failed"
	ReplayCancelled  ReplayState = "cancelled" // its report covers what was measured until then
)

// Ended reports whether the replay will not change any more.
func (s ReplayState) Ended() bool {
	return s == ReplayDone || s == ReplayFailed || s == ReplayCancelled
}

// Replay measures policies over a sample of a tenant's sessions, from their logs.
type Replay struct {
	ID          uuid.UUID
	State       ReplayState
	Filter      SessionFilter
	Contenders  []ReplayContender // the first is the one that the others are compared with
	Windows     []int             // tokens; none for each session's own
	Sample      int               // sessions at most
	Seed        int64             // decides which sessions the sample has
	MaxMessages int64             // of a session; one with more is skipped
	MaxBytes    int64             // of a session's messages
	Matched     int64             // sessions that the filter finds
	TooShort    int64             // of these, sessions that no window would compact; they are not in the sample
	Total       int64             // sessions in the sample
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
func (r Replay) Done() int64 {
	done := r.Measured + r.Failed
	for _, s := range r.Skipped {
		done += s.Sessions
	}
	return done
}

// ReplayContender is one of the policies that a replay compares.
type ReplayContender struct {
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
