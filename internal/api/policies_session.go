package api

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// readSessionPolicy is GET /v1/sessions/{id}/policy.
func (s *Server) readSessionPolicy(x *exchange) error {
	at, err := x.addressAlone()
	if err != nil {
		return err
	}
	found, err := s.Store.SessionPolicy(x.ctx, at)
	if err != nil {
		return err
	}
	_, sources, err := policy.ResolveStored(found.Tenant, found.Own, "")
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, policyOf(found.Version, found.Own, found.Document, sources))
}

// putSessionPolicy is PUT /v1/sessions/{id}/policy.
func (s *Server) putSessionPolicy(x *exchange) error {
	return s.changeSessionPolicy(x, replaced)
}

// patchSessionPolicy is PATCH /v1/sessions/{id}/policy.
func (s *Server) patchSessionPolicy(x *exchange) error {
	return s.changeSessionPolicy(x, policy.Merge)
}

// changeSessionPolicy makes the session's own layer of the stored one and the body.
func (s *Server) changeSessionPolicy(x *exchange, layer func(old, document []byte) []byte) error {
	at, err := x.addressAlone()
	if err != nil {
		return err
	}
	document, id, err := x.policyDocument()
	if err != nil {
		return err
	}
	return s.storeSessionPolicy(x, at, id, session.Change{ChangedBy: x.key, EditPolicy: func(tenant, own json.RawMessage) (session.Policy, error) {
		p, _, err := policy.ResolveStored(tenant, layer(own, document), "")
		return p, err
	}})
}

// deleteSessionPolicy is DELETE /v1/sessions/{id}/policy: the tenant's default again.
func (s *Server) deleteSessionPolicy(x *exchange) error {
	at, err := x.addressAlone()
	if err != nil {
		return err
	}
	id, err := x.emptyBody()
	if err != nil {
		return err
	}
	return s.storeSessionPolicy(x, at, id, session.Change{ChangedBy: x.key, DefaultPolicy: true})
}

func (s *Server) storeSessionPolicy(x *exchange, at session.Address, id *session.Idempotency, change session.Change) error {
	changed, replayed, err := s.Store.Update(x.ctx, at, change, id)
	if err != nil {
		return err
	}
	x.replayed(id, replayed)
	return x.json(http.StatusOK, answerOf(changed))
}

// listSessionPolicyVersions is GET /v1/sessions/{id}/policy/versions.
func (s *Server) listSessionPolicyVersions(x *exchange) error {
	at, err := x.address()
	if err != nil {
		return err
	}
	list := listOf(x, "policy versions of "+at.ID)
	if list.err != nil {
		return list.err
	}
	found, err := s.Store.SessionPolicyVersions(x.ctx, at, list.after.order, list.limit+1)
	if err != nil {
		return err
	}
	return answerList(list, found, versionAnswer, placeOfVersion)
}

// layersBelow reads the layers that a session's policy is put on top of, and its own that a change is merged into.
type layersBelow func(x *exchange, at session.Address) (session.PolicyLayers, error)

// tenantLayers are those of a session that is new.
func (s *Server) tenantLayers(x *exchange, _ session.Address) (session.PolicyLayers, error) {
	p, err := s.Store.TenantPolicy(x.ctx, x.tenant)
	return session.PolicyLayers{Tenant: p.Patch}, err
}

// sessionLayers are those of a session that may be there; if it is not, that will be told.
func (s *Server) sessionLayers(x *exchange, at session.Address) (session.PolicyLayers, error) {
	found, err := s.Store.SessionPolicy(x.ctx, at)
	if errors.Is(err, session.ErrNotFound) {
		return s.tenantLayers(x, at)
	}
	return found, err
}

// editPolicy reads member policy: null goes back to the tenant's default, an object is merged into the session's own
// layer. It is tried here, so that its problems are told together with those of other members, and done in the store on
// the layers that are there then.
func (s *settings) editPolicy(d *document, below func() (session.PolicyLayers, error)) error {
	if s.policy == (rawjson.Span{}) {
		return nil
	}
	switch d.data[s.policy.Start] {
	case 'n':
		s.DefaultPolicy = true
		return nil
	case '{':
	default:
		d.wrong("/policy", invalidRequest, "an object or null is needed, this is %s", kindOf(d.data[s.policy.Start]))
		return nil
	}
	layers, err := below()
	if err != nil {
		return err
	}
	edit := merging(append([]byte(nil), s.policy.Of(d.data)...))
	if _, err := edit(layers.Tenant, layers.Own); err != nil {
		d.add("", err)
		return nil
	}
	s.EditPolicy = edit
	return nil
}

// merging merges a document into a session's own layer.
func merging(document []byte) session.PolicyEdit {
	return func(tenant, own json.RawMessage) (session.Policy, error) {
		p, _, err := policy.ResolveStored(tenant, policy.Merge(own, document), "/policy")
		return p, err
	}
}
