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
	Text string `json:"token"`
	session.Token
}
