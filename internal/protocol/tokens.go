package protocol

import "github.com/varve-dev/varve/internal/session"

// TokenRequest is the body that makes a session token. All members may be absent: an hour, and the scope read.
type TokenRequest struct {
	Name       string          `json:"name,omitempty"`
	TTLSeconds int             `json:"ttl_seconds,omitempty"`
	Scopes     []session.Scope `json:"scopes,omitempty"`
}

// NewToken is a session token that was just made. This answer alone has its text.
type NewToken struct {
	// the text, which is not stored
	Text string `json:"token" schema:"pattern: '^st_[0-9a-f]{32}_[0-9A-Za-z]{36}$'"`
	session.Token
}
