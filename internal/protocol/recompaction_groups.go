package protocol

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
)

// RecompactionGroup is a recompaction of many tenants. Lists omit what became of it.
type RecompactionGroup struct {
	ID         uuid.UUID             `json:"id"`
	Tenants    int                   `json:"tenants"`
	Filter     session.SessionFilter `json:"filter"`
	Policy     json.RawMessage       `json:"policy,omitempty"`
	MaxRunning int                   `json:"max_running"`
	PerMinute  *int                  `json:"per_minute"`
	StartAt    *time.Time            `json:"start_at"`
	Hours      *session.Hours        `json:"hours"`
	Ask        bool                  `json:"ask"`
	CreatedAt  time.Time             `json:"created_at"`

	// States says how many of its recompactions are in each.
	States        map[session.RecompactionState]int `json:"states,omitzero"`
	Progress      *RecompactionProgress             `json:"progress,omitempty"`
	TokensBefore  int64                             `json:"tokens_before"`
	TokensAfter   int64                             `json:"tokens_after"`
	Recompactions []RecompactionPart                `json:"recompactions,omitzero"`
}

// RecompactionPart is the recompaction of one tenant of a group.
type RecompactionPart struct {
	Tenant       uuid.UUID                 `json:"tenant"`
	Recompaction uuid.UUID                 `json:"recompaction"`
	State        session.RecompactionState `json:"state"`
	Progress     RecompactionProgress      `json:"progress"`
	NextStartAt  *time.Time                `json:"next_start_at"`
}
