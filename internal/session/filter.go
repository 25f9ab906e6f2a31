package session

import (
	"encoding/json"
	"time"
)

// SessionFilter selects sessions of a tenant: those for which every condition that is set holds.
type SessionFilter struct {
	Sessions           []string        `json:"sessions,omitzero"`  // ids; none of them if it is empty
	Metadata           json.RawMessage `json:"metadata,omitempty"` // a subset of the session's metadata
	CreatedBefore      *time.Time      `json:"created_before,omitempty"`
	CreatedAfter       *time.Time      `json:"created_after,omitempty"`
	MinTokens          *int64          `json:"min_tokens,omitempty"`           // of the view
	PolicyVersionBelow *int64          `json:"policy_version_below,omitempty"` // tenant's, at the newest checkpoint
	EngineVersionBelow *int64          `json:"engine_version_below,omitempty"` // at the newest checkpoint
	Model              string          `json:"model,omitempty"`
	Format             Format          `json:"format,omitempty"`
	ForkedFrom         string          `json:"forked_from,omitempty"` // id
	UpdatedAfter       *time.Time      `json:"updated_after,omitempty"`
	OverWindow         bool            `json:"over_window,omitempty"`
	Failing            bool            `json:"failing,omitempty"`
	Percent            int             `json:"percent,omitempty"` // of these sessions, chosen by a hash of their keys
}
