package protocol

import "github.com/varve-dev/varve/internal/session"

// KeyRequest is the body that makes a key of a tenant. Scopes and Role exclude each other.
type KeyRequest struct {
	Name       string          `json:"name,omitempty"`
	TTLSeconds int64           `json:"ttl_seconds,omitempty"`
	Scopes     []session.Scope `json:"scopes,omitempty"`
	Role       session.Role    `json:"role,omitempty"`
}

// NewKey is a key of a tenant that was just made. This answer alone has its text.
type NewKey struct {
	Text string `json:"key"`
	session.APIKey
}

// RotateRequest is the body that rotates a key: how long the old one lives on.
type RotateRequest struct {
	OverlapSeconds *int64 `json:"overlap_seconds,omitempty"`
}

// NewOperatorKey is a key of an operator that was just made. This answer alone has its text.
type NewOperatorKey struct {
	Text string `json:"key"`
	session.OperatorKey
}
