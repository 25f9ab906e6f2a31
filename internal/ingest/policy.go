package ingest

import (
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// PolicyOver reads the member policy as the whole policy that a session would have with it: an object is merged into
// the session's own layer, null is the tenant's default. It returns nil if the policy has problems, which it adds to
// the document's.
func PolicyOver(d *request.Document, value rawjson.Span, below session.PolicyLayers) *policy.Policy {
	switch d.Data[value.Start] {
	case '{':
		return resolved(d, below.Tenant, policy.Merge(below.Own, value.Of(d.Data)), "/policy")
	case 'n':
		return TenantPolicy(d, below)
	}
	d.Wrong("/policy", request.InvalidRequest, "must be an object or null, not %s", d.Kind(value))
	return nil
}

// TenantPolicy returns the policy of a session that has none of its own.
func TenantPolicy(d *request.Document, below session.PolicyLayers) *policy.Policy {
	return resolved(d, below.Tenant, nil, "")
}

func resolved(d *request.Document, tenant, own []byte, pointer string) *policy.Policy {
	p, _, err := policy.Resolve(tenant, own, pointer)
	if err != nil {
		d.Add("", err)
		return nil
	}
	return &p
}
