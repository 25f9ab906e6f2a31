package session

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// ErasureKind is what an erasure erases.
type ErasureKind string

// The kinds of erasures.
const (
	ErasureOfSession ErasureKind = "session"
	ErasureOfSubject ErasureKind = "subject"   // all sessions with some metadata, and their forks
	ErasureOfExpired ErasureKind = "retention" // sessions of a tenant that have expired
	ErasureOfTenant  ErasureKind = "tenant"    // the tenant with all that it has
)

// ErasureState is the state of an erasure.
type ErasureState string

// The states of an erasure.
const (
	ErasureQueued  ErasureState = "queued"
	ErasureRunning ErasureState = "running"
	ErasureDone    ErasureState = "done" // nothing is left of what was not held, and there is a receipt
)

// Erasure is the erasure of one session or many, with what was erased so far.
type Erasure struct {
	ID uuid.UUID `json:"id"`
	// what is erased: a session (`DELETE`), all of a data subject, a tenant (by an operator), or sessions that
	// have expired
	Kind  ErasureKind  `json:"kind"`
	State ErasureState `json:"state"`
	// what the sessions had; null when the erasure has ended
	Metadata json.RawMessage `json:"metadata" schema:"type: [object, 'null']"`

	ErasedTenant *uuid.UUID `json:"tenant,omitzero"` // that is deleted
	// of a tenant: sessions that were erased and those that are left
	TotalSessions *int64 `json:"total_sessions,omitzero"`
	StoppedBy     *Hold  `json:"stopped_by,omitzero"`

	Sessions    int64 `json:"sessions"` // that were erased so far, as the other counts
	Messages    int64 `json:"messages"`
	Results     int64 `json:"results"`
	Bodies      int64 `json:"bodies"` // of results; what a fork still has is not counted
	Checkpoints int64 `json:"checkpoints"`
	Bytes       int64 `json:"bytes"`   // of messages and bodies
	Objects     int64 `json:"objects"` // in result stores
	// the ids of sessions that a legal hold has kept; of a tenant, a session whose hold stops its deletion
	Held       []string   `json:"held,omitzero"`
	CreatedAt  time.Time  `json:"created_at"`
	StartedAt  *time.Time `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"`
	Receipt    *Receipt   `json:"receipt"` // at the end
}

// Hold is a legal hold, which keeps a session, or all of a tenant, from being erased.
type Hold struct {
	Reason   string     `json:"reason"`
	PlacedBy *uuid.UUID `json:"placed_by"` // the id of the key; null for the command line
	PlacedAt time.Time  `json:"placed_at"`
}

// ListedHold is a legal hold in the list of its tenant's.
type ListedHold struct {
	Session *string   `json:"session"` // its id; null if all of the tenant is kept
	Key     uuid.UUID `json:"-"`
	Hold
}

// MaxHoldReason bounds the reason of a hold, in bytes.
const MaxHoldReason = 1024
