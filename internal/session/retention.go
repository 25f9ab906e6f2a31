package session

import (
	"reflect"
	"time"
)

// Retention says when sessions expire. The zero Retention keeps them for ever.
type Retention struct {
	IdleSeconds *int64 `json:"idle_seconds"`    // since the last append or, without one, since the creation
	AgeSeconds  *int64 `json:"max_age_seconds"` // since the creation
}

// The bounds of the numbers of a Retention. The worker looks every hour.
const (
	MinRetention = int64(time.Hour / time.Second)
	MaxRetention = int64(100 * 365 * 24 * time.Hour / time.Second)
)

// Expiry is what a session's retention comes to.
type Expiry struct {
	Own       *Retention `json:"own"`        // nil: it has the tenant's
	ExpiresAt *time.Time `json:"expires_at"` // nil: never
}

// SameOwn reports whether a session has the same retention of its own, or none, as in another state.
func (e *Expiry) SameOwn(other *Expiry) bool { return reflect.DeepEqual(e.Own, other.Own) }

// Expired is what a retention would erase now.
type Expired struct {
	Expired  int64    `json:"expired"`  // sessions that would be erased
	Held     int64    `json:"held"`     // expired sessions that a legal hold keeps
	Sessions []string `json:"sessions"` // the ids of the first of them
}
