package session

import (
	"time"

	"github.com/google/uuid"
)

// FleetList is which sessions of all tenants operators list, and in which order.
type FleetList string

// The lists of sessions of all tenants.
const (
	FleetTokens      FleetList = "tokens"      // all, those first that have stored the most tokens
	FleetBytes       FleetList = "bytes"       // all, those first that have stored the most bytes
	FleetIdle        FleetList = "idle"        // those with messages, the oldest last append first
	FleetUnread      FleetList = "unread"      // all, those first that were not read for the most days
	FleetOverWindow  FleetList = "over_window" // whose view does not fit into the window, by tokens
	FleetFailing     FleetList = "failing"     // whose compaction fails, the longest time first
	FleetQuarantined FleetList = "quarantined" // whose compaction is not tried for now, the longest time first
)

// FleetLists returns all lists of sessions of all tenants.
func FleetLists() []FleetList {
	return []FleetList{FleetTokens, FleetBytes, FleetIdle, FleetUnread, FleetOverWindow, FleetFailing, FleetQuarantined}
}

// FleetSession is a session as operators see it, without anything of its content. Messages, Tokens and Bytes are what
// it has stored, as the ledger has counted it.
type FleetSession struct {
	Tenant        uuid.UUID  `json:"tenant"`
	TenantName    string     `json:"tenant_name"`
	Session       string     `json:"session"`
	Format        Format     `json:"format"`
	Model         string     `json:"model"`
	Messages      int64      `json:"messages"`
	Tokens        int64      `json:"tokens"`
	Bytes         int64      `json:"bytes"`
	ContextTokens int64      `json:"context_tokens"`
	WindowTokens  int        `json:"window_tokens"`
	OverWindow    bool       `json:"over_window"`
	Failures      int        `json:"failures"` // in a row, of its compaction
	FailingSince  *time.Time `json:"failing_since"`
	QuarantinedAt *time.Time `json:"quarantined_at"`
	CreatedAt     time.Time  `json:"created_at"`
	LastAppendAt  *time.Time `json:"last_append_at"`
	LastReadAt    *time.Time `json:"last_read_at"`

	Place FleetPlace `json:"-"`
}

// FleetPlace is the place of a session in a list of sessions of all tenants: a number, or a time in microseconds, and
// the session's key.
type FleetPlace struct {
	Order int64
	Key   uuid.UUID
}
