package session

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// Scope is a kind of routes that a session token may use.
type Scope string

// The scopes. Every token may read.
const (
	ScopeRead    Scope = "read"    // the session's view, log, results, runs and checkpoints
	ScopeCompact Scope = "compact" // ask for a compaction, and preview one
)

// Scopes returns every scope.
func Scopes() []Scope { return []Scope{ScopeRead, ScopeCompact} }

// The lifetime of session tokens.
const (
	DefaultTokenLifetime = time.Hour
	MaxTokenLifetime     = 24 * time.Hour
)

// MaxLiveTokens is how many tokens of one session may be valid at a time.
const MaxLiveTokens = 1000

// KeptTokens is how long a token is listed after its end.
const KeptTokens = 7 * 24 * time.Hour

// Token is a session token as it is stored: all but its text.
type Token struct {
	ID        uuid.UUID  `json:"id"`
	Name      string     `json:"name"`
	Last4     string     `json:"last4"`
	Scopes    []Scope    `json:"scopes"`
	MadeBy    uuid.UUID  `json:"made_by"` // the API key, whose revocation ends the token
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt time.Time  `json:"expires_at"`
	RevokedAt *time.Time `json:"revoked_at"`
}

// NewToken is a session token to be stored. MadeBy is the digest of the API key that asks for it.
type NewToken struct {
	Name     string
	Text     string
	Scopes   []Scope
	Lifetime time.Duration
	MadeBy   [32]byte
}

// Caller is who sent a request: the holder of a tenant's key or of a session token.
type Caller struct {
	Tenant  uuid.UUID
	Session string    // the session that a token is for; "" for a tenant's key, which reaches all
	Key     uuid.UUID // of that session
	Token   uuid.UUID // the token's id
	Scopes  []Scope   // of the token
}

// Address returns the session that a token is for.
func (c *Caller) Address() Address { return Address{Tenant: c.Tenant, ID: c.Session} }

// Bound reports whether the caller holds a session token.
func (c *Caller) Bound() bool { return c.Session != "" }

// May reports whether the caller may use routes and tools of a scope. A tenant's key may use all.
func (c *Caller) May(scope Scope) bool { return !c.Bound() || slices.Contains(c.Scopes, scope) }
