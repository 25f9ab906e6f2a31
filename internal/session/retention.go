package session

import (
	"reflect"
	"time"
)

// Retention says when sessions expire, and what becomes of them then. The zero Retention keeps them for ever.
type Retention struct {
	IdleSeconds *int64 `json:"idle_seconds"`    // since the last append or, without one, since the creation
	AgeSeconds  *int64 `json:"max_age_seconds"` // since the creation
	Then        Then   `json:"then"`            // "" in a request is ThenErase

	// ArchiveSeconds is how long archives are kept, since they were made or, if that is later, since the session would
	// have expired; nil is for ever.
	ArchiveSeconds *int64 `json:"archive_max_age_seconds"`
}

// Then is what becomes of an expired session.
type Then string

// What may become of it.
const (
	ThenErase   Then = "erase"
	ThenArchive Then = "archive"
)

// Archives reports whether expired sessions are archived.
func (r *Retention) Archives() bool { return r.Then == ThenArchive }

// RetentionBound is the longest retention that operators leave a tenant and its sessions. What is nil is not bounded.
type RetentionBound struct {
	IdleSeconds *int64 `json:"idle_seconds"`
	AgeSeconds  *int64 `json:"max_age_seconds"`
}

// TenantRetention is a tenant's retention, and the longest that operators leave it and its sessions.
type TenantRetention struct {
	Retention
	AtMost RetentionBound `json:"at_most"`
}

// Held returns the retention that holds: the shorter of what was set and what operators leave.
func (r TenantRetention) Held() Retention {
	held := r.Retention
	held.IdleSeconds = shorter(r.IdleSeconds, r.AtMost.IdleSeconds)
	held.AgeSeconds = shorter(r.AgeSeconds, r.AtMost.AgeSeconds)
	return held
}

// shorter returns the smaller of two numbers; nil means that there is no limit.
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

// SameOwn reports whether the session's own retention is the same in both states; none equals none.
func (e *Expiry) SameOwn(other *Expiry) bool { return reflect.DeepEqual(e.Own, other.Own) }

// Expired is what a retention would do now.
type Expired struct {
	Expired  int64    `json:"expired"`  // sessions that would be erased or archived
	Held     int64    `json:"held"`     // expired sessions that a legal hold keeps
	Sessions []string `json:"sessions"` // the ids of the first that would be erased or archived
	Erased   int64    `json:"erased"`   // of those that expired, how many would be erased, archives among them
	Archived int64    `json:"archived"` // and how many would be archived
}
