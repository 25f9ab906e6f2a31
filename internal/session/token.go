package session

import (
	"time"

	"github.com/google/uuid"
)

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
	Last4     string     `json:"last4"` // the last four characters of its text
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
