package session

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Policy is a compaction policy as it is stored: what every append compares with, and the document that package compact
// reads.
type Policy struct {
	Trigger  float64         `json:"trigger"` // share of the window at which a compaction is due
	Hard     float64         `json:"hard"`    // share of the window at which it no longer waits for a cold cache
	CacheTTL time.Duration   `json:"cache_ttl"`
	Document json.RawMessage `json:"document"`        // the whole policy
	Patch    json.RawMessage `json:"patch,omitempty"` // its top layer; nil stores the document as the layer
	Version  PolicyVersion   `json:"version"`
}

// PolicyLayers is a policy with the layers that it is made of.
type PolicyLayers struct {
	Policy
	Tenant json.RawMessage `json:"tenant"`        // the tenant's default
	Own    json.RawMessage `json:"own,omitempty"` // the session's; nil if it has none, or if the policy is the tenant's
}

// PolicyVersion names the layers that a policy is made of, each by how often it was changed.
type PolicyVersion struct {
	Tenant  int `json:"tenant"`
	Session int `json:"session"` // 0 if the session has no layer
}

// PolicyEdit makes a policy from the two stored layers: the tenant's default, and the session's own, which is nil if it
// has none. It runs in an open transaction, so it must only compute.
type PolicyEdit func(tenant, own json.RawMessage) (Policy, error)

// TenantPolicy is a change of a tenant's default policy.
type TenantPolicy struct {
	Edit        PolicyEdit // makes the new default from the stored one
	Rebase      PolicyEdit // merges the new default into the policy of a session with its own layer
	Expected    *int       // the version that the caller knows; nil does not check
	ChangedBy   [32]byte   // the digest of the key that makes it
	Idempotency *Idempotency
}

// PolicyRecord is one version of a layer.
type PolicyRecord struct {
	Version       int `json:"version" schema:"minimum: 1"`
	TenantVersion int `json:"tenant_version"` // of the layer below it, when it was made
	// null if the session returned to the tenant's default
	Patch     json.RawMessage `json:"patch" schema:"Policy"`
	Document  json.RawMessage `json:"effective" schema:"Policy"` // the whole policy that came of it
	ChangedBy *uuid.UUID      `json:"changed_by"`                // the id of the key; null for the operator
	CreatedAt time.Time       `json:"created_at"`
}

// StaleVersionError is returned if a policy, or what Of names, was changed meanwhile.
type StaleVersionError struct {
	Of                string
	Expected, Current int
}

func (e *StaleVersionError) Error() string {
	return fmt.Sprintf("the %s's version is %d, not %d: read it anew, then change that one",
		cmp.Or(e.Of, "policy"), e.Current, e.Expected)
}
