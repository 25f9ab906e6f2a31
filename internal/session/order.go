package session

import (
	"time"

	"github.com/google/uuid"
)

// SessionOrder is in which order operators list the sessions of all tenants, and which of them.
type SessionOrder string

// The orders of the sessions of all tenants.
const (
	ByTokens      SessionOrder = "tokens"      // all, those first that have stored the most tokens
	ByBytes       SessionOrder = "bytes"       // all, those first that have stored the most bytes
	ByIdle        SessionOrder = "idle"        // those with messages, the oldest last append first
	ByUnread      SessionOrder = "unread"      // all, those first that were not read for the most days
	ByOverWindow  SessionOrder = "over_window" // whose view does not fit into the window, by tokens
	ByFailing     SessionOrder = "failing"     // whose compaction fails, the longest time first
	ByQuarantined SessionOrder = "quarantined" // whose compaction is not tried for now, the longest time first
)

// SessionOrders returns all orders of the sessions of all tenants.
func SessionOrders() []SessionOrder {
	return []SessionOrder{ByTokens, ByBytes, ByIdle, ByUnread, ByOverWindow, ByFailing, ByQuarantined}
}

// SessionOfTenant is a session as operators see it, without anything of its content. Messages, Tokens and Bytes are
// what it has stored, as the ledger has counted it.
type SessionOfTenant struct {
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

	Place SessionPlace `json:"-"`
}

// SessionPlace is the place of a session in an order of the sessions of all tenants: a number, or a time in
// microseconds, and the session's key.
type SessionPlace struct {
	Order int64
	Key   uuid.UUID
}
