package protocol

import (
	"encoding/json"

	"github.com/varve-dev/varve/internal/session"
)

// Policy is one layer of a policy, and what it makes together with those below it.
type Policy struct {
	Version   session.PolicyVersion `json:"policy_version"`
	Patch     json.RawMessage       `json:"patch"` // null for a session without a policy of its own
	Effective json.RawMessage       `json:"effective"`
	Sources   map[string]string     `json:"sources"` // the layer of each field, by JSON pointer
}

// Profile is a policy by name.
type Profile struct {
	Name   string          `json:"name"`
	Policy json.RawMessage `json:"policy"`
}
