package session

import (
	"time"

	"github.com/google/uuid"
)

// FailureClass says whose fault it is that an attempt failed.
type FailureClass string

// The classes of failures.
const (
	// FailureInfrastructure is the database or the result store that is away, a process that stops or dies, or no room
	// at the moment. It is tried again within seconds for as long as it lasts, and is not counted.
	FailureInfrastructure FailureClass = "infrastructure"

	// FailureOwn is an error of this session: of the engine, of what is stored, or that it takes too long. It is
	// counted.
	FailureOwn FailureClass = "own"

	// FailureDeath is a worker that died while it compacted the session.
	FailureDeath FailureClass = "death"
)

// The numbers of failures in a row after which a session is quarantined. A worker that dies interrupts all the sessions
// that it is compacting, and most of them did not kill it. So after AloneAfter deaths a session is compacted alone in
// its process: only several deaths from then on prove that it kills its workers.
const (
	MaxFailures = 8
	AloneAfter  = 2
	MaxDeaths   = AloneAfter + 3
)

// Failing is a session whose compaction fails. It ends with the first compaction that succeeds.
type Failing struct {
	Session       string     `json:"session"`
	Key           uuid.UUID  `json:"key"`
	Run           uuid.UUID  `json:"run"`      // the newest that failed
	Failures      int        `json:"failures"` // its own, one after the other
	Deaths        int        `json:"deaths"`   // of workers while they compacted it
	Error         string     `json:"error"`
	Since         time.Time  `json:"since"`
	FailedAt      time.Time  `json:"failed_at"`
	NextTryAt     time.Time  `json:"next_try_at"`
	QuarantinedAt *time.Time `json:"quarantined_at"` // null: it is tried again soon
}
