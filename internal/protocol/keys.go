package protocol

import (
	"encoding/json"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
)

// KeyRequest is the body that makes a key of a tenant. Scopes and Role exclude each other.
type KeyRequest struct {
	Name       string          `json:"name,omitempty"`
	TTLSeconds int64           `json:"ttl_seconds,omitempty"`
	Scopes     []session.Scope `json:"scopes,omitempty"`
	Role       session.Role    `json:"role,omitempty"`
}

// NewKey is a key of a tenant that was just made. This answer alone has its text.
type NewKey struct {
	// the text, which is not stored
	Text string `json:"key" schema:"pattern: '^vk_[0-9a-f]{32}_[0-9A-Za-z]{36}$'"`
	session.APIKey
}

// RotateRequest is the body that rotates a key: how long the old one lives on.
type RotateRequest struct {
	OverlapSeconds *int64 `json:"overlap_seconds,omitempty"`
}

// TenantRequest is the body that makes a tenant; all members but the name may be absent.
type TenantRequest struct {
	ID     *uuid.UUID      `json:"id,omitempty"`
	Name   string          `json:"name,omitempty"`
	Policy json.RawMessage `json:"policy,omitempty"`
	Quotas json.RawMessage `json:"quotas,omitempty"`
	Key    *KeyRequest     `json:"key,omitempty"`

	MostKept *session.RetentionBound `json:"retention_at_most,omitempty"`
}

// NewTenant is a tenant that was just made, with its first key if one was asked for.
type NewTenant struct {
	session.TenantDetails
	Key *NewKey `json:"key"`
}

// TenantChange is the body that changes a tenant. An absent member keeps what it is; Suspended may be null.
type TenantChange struct {
	Name      string          `json:"name,omitempty"`
	Suspended json.RawMessage `json:"suspended,omitempty"`
	Quotas    json.RawMessage `json:"quotas,omitempty"`

	MostKept *session.RetentionBound `json:"retention_at_most,omitempty"`
}

// NewOperatorKey is a key of an operator that was just made. This answer alone has its text.
type NewOperatorKey struct {
	// the text, which is not stored
	Text string `json:"key" schema:"pattern: '^vop_[0-9A-Za-z]{36}$'"`
	session.OperatorKey
}
