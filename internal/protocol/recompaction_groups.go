package protocol

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
)

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
	Hours      *session.Hours  `json:"hours"`
	Ask        bool            `json:"ask"`
	CreatedAt  time.Time       `json:"created_at"`

	// how many of its recompactions are in each state; lists omit it
	States map[session.RecompactionState]int `json:"states,omitzero"`
	// the sum over all tenants; lists omit it
	Progress      *RecompactionProgress `json:"progress,omitempty"`
	TokensBefore  int64                 `json:"tokens_before"`
	TokensAfter   int64                 `json:"tokens_after"`
	Recompactions []RecompactionPart    `json:"recompactions,omitzero"` // by tenant; lists omit them
}

// RecompactionPart is the recompaction of one tenant of a group.
type RecompactionPart struct {
	Tenant       uuid.UUID                 `json:"tenant"`
	Recompaction uuid.UUID                 `json:"recompaction"`
	State        session.RecompactionState `json:"state"`
	Progress     RecompactionProgress      `json:"progress"`
	NextStartAt  *time.Time                `json:"next_start_at"`
}
