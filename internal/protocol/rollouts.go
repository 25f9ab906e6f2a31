package protocol

import (
	"encoding/json"

	"github.com/varve-dev/varve/internal/session"
)

// Rollout is a version of a tenant's policy that a share of its sessions has, with what is known of it beside the
// default.
type Rollout struct {
	session.Rollout
	Comparison   session.RolloutComparison `json:"comparison"`
	Replay       *Replay                   `json:"replay"`        // the newest that measures both versions
	ReplayReport json.RawMessage           `json:"replay_report"` // null if there is none yet
}

// RolloutRequest is the body that starts a rollout: of a new layer, or of that of an earlier version.
type RolloutRequest struct {
	Policy      json.RawMessage       `json:"policy,omitempty"`
	Version     int                   `json:"version,omitempty"`
	PerMille    int                   `json:"per_mille"`
	MinSessions int                   `json:"min_sessions,omitempty"`
	Guard       *session.RolloutGuard `json:"guard,omitempty"`
}

// RolloutChange is the body that changes a rollout.
type RolloutChange struct {
	PerMille    int  `json:"per_mille,omitempty"`
	MinSessions *int `json:"min_sessions,omitempty"`

	Guard json.RawMessage `json:"guard,omitempty"` // a session.RolloutGuard, or null for none
}

// RolloutBack is the body that ends a rollout with the tenant's default for all.
type RolloutBack struct {
	RollBack bool `json:"roll_back,omitempty"`
}
