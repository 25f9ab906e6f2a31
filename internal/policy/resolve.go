package policy

import (
	"encoding/json"
	"time"

	"github.com/varve-dev/varve/internal/session"
)

// The names of the layers above a profile, as Sources has them.
const (
	TenantLayer  = "tenant"
	SessionLayer = "session"
)

// Resolve puts a session's own layer, nil if it has none, on top of its tenant's. pointer is that of the topmost of the
// two in the caller's document. The error is that of ParseLayers.
func Resolve(tenant, own json.RawMessage, pointer string) (Policy, Sources, error) {
	if own == nil {
		return ParseLayers(Layer{Name: TenantLayer, Document: tenant, Pointer: pointer})
	}
	return ParseLayers(
		Layer{Name: TenantLayer, Document: tenant},
		Layer{Name: SessionLayer, Document: own, Pointer: pointer},
	)
}

// ResolveStored resolves, like Resolve, a policy that is to be stored.
func ResolveStored(tenant, own json.RawMessage, pointer string) (session.Policy, error) {
	p, _, err := Resolve(tenant, own, pointer)
	if err != nil {
		return session.Policy{}, err
	}
	stored := p.Stored()
	if stored.Patch = tenant; own != nil {
		stored.Patch = own
	}
	return stored, nil
}

// Stored returns the policy as the database keeps it, without the layer that it was made of.
func (p Policy) Stored() session.Policy {
	return session.Policy{
		Trigger:  p.Trigger,
		Hard:     p.Hard,
		CacheTTL: time.Duration(p.Cache.TTLSeconds) * time.Second,
		Document: p.Document(),
	}
}

// StoredDefault returns the policy of a new tenant: a layer that changes nothing of the default profile.
func StoredDefault() session.Policy {
	stored := Default().Stored()
	stored.Patch = json.RawMessage(`{}`)
	return stored
}
