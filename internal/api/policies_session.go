package api

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
)

// readSessionPolicy is GET /v1/sessions/{id}/policy.
func (s *Server) readSessionPolicy(req *request.Request) error {
	req.Query()
	at := req.Address()
	if err := req.Err(); err != nil {
		return err
	}
	found, err := s.Store.SessionPolicy(req.Ctx, at)
	if err != nil {
		return err
	}
	_, sources, err := policy.ResolveStored(found.Tenant, found.Own, "")
	if err != nil {
		return err
	}
	return req.JSON(http.StatusOK, policyOf(found.Version, found.Own, found.Document, sources))
}

// putSessionPolicy is PUT /v1/sessions/{id}/policy.
func (s *Server) putSessionPolicy(req *request.Request) error {
	return s.changeSessionPolicy(req, replaced)
}

// patchSessionPolicy is PATCH /v1/sessions/{id}/policy.
func (s *Server) patchSessionPolicy(req *request.Request) error {
	return s.changeSessionPolicy(req, policy.Merge)
}

// changeSessionPolicy makes the session's new layer from the stored one and the body.
func (s *Server) changeSessionPolicy(req *request.Request, layer func(old, document []byte) []byte) error {
	req.Query()
	at := req.Address()
	if err := req.Err(); err != nil {
		return err
	}
	document, id, err := policyDocument(req)
	if err != nil {
		return err
	}
	return s.storeSessionPolicy(req, at, id, session.Change{ChangedBy: req.KeyDigest, EditPolicy: func(tenant,
		own json.RawMessage) (session.Policy, error) {
		p, _, err := policy.ResolveStored(tenant, layer(own, document), "")
		return p, err
	}})
}

// deleteSessionPolicy is DELETE /v1/sessions/{id}/policy: the tenant's default again.
func (s *Server) deleteSessionPolicy(req *request.Request) error {
	req.Query()
	at := req.Address()
	id := req.EmptyBody()
	if err := req.Err(); err != nil {
		return err
	}
	return s.storeSessionPolicy(req, at, id, session.Change{ChangedBy: req.KeyDigest, DefaultPolicy: true})
}

func (s *Server) storeSessionPolicy(req *request.Request, at session.Address, id *session.Idempotency,
	change session.Change) error {
	changed, replayed, err := s.Store.Update(req.Ctx, at, change, id)
	if err != nil {
		return err
	}
	req.Replayed(id, replayed)
	return req.JSON(http.StatusOK, answerOf(changed))
}

// listSessionPolicyVersions is GET /v1/sessions/{id}/policy/versions.
func (s *Server) listSessionPolicyVersions(req *request.Request) error {
	at := req.Address()
	list := req.List("policy versions of " + at.ID)
	if err := req.Err(); err != nil {
		return err
	}
	found, err := s.Store.SessionPolicyVersions(req.Ctx, at, list.After.Order, list.Limit+1)
	if err != nil {
		return err
	}
	return request.AnswerList(list, found, versionAnswer, placeOfVersion)
}

// layersBelow reads the layers that a session's policy is put on top of, and its own that a change is merged into.
type layersBelow func(req *request.Request, at session.Address) (session.PolicyLayers, error)

// tenantLayers returns the layers of a new session.
func (s *Server) tenantLayers(req *request.Request, _ session.Address) (session.PolicyLayers, error) {
	p, err := s.Store.TenantPolicy(req.Ctx, req.Tenant)
	return session.PolicyLayers{Tenant: p.Patch}, err
}

// sessionLayers returns the layers of a session. If it does not exist, the store reports that later.
func (s *Server) sessionLayers(req *request.Request, at session.Address) (session.PolicyLayers, error) {
	found, err := s.Store.SessionPolicy(req.Ctx, at)
	if errors.Is(err, session.ErrNotFound) {
		return s.tenantLayers(req, at)
	}
	return found, err
}
