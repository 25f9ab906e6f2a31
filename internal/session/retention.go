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

// TenantRetention is a tenant's retention, and the longest that operators leave it and its sessions.
type TenantRetention struct {
	Retention
	AtMost Retention `json:"at_most"` // nil members bound nothing
}

// Held returns the retention that holds: the shorter of what was set and what operators leave.
func (r TenantRetention) Held() Retention {
	return Retention{
		IdleSeconds: shorter(r.IdleSeconds, r.AtMost.IdleSeconds),
		AgeSeconds:  shorter(r.AgeSeconds, r.AtMost.AgeSeconds),
	}
}

// shorter returns the smaller of two numbers, of which nil is none.
func shorter(a, b *int64) *int64 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
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
