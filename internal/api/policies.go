package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// listProfiles handles GET /v1/policies/profiles.
func (s *Server) listProfiles(req *request.Request) error {
	req.Query()
	if err := req.Err(); err != nil {
		return err
	}
	a := protocol.List[protocol.Profile]{Object: "list"}
	for _, name := range policy.Profiles() {
		p, err := policy.Profile(name)
		if err != nil {
			return err
		}
		a.Data = append(a.Data, protocol.Profile{Name: name, Policy: p.Document()})
	}
	return req.JSON(http.StatusOK, a)
}

var schemaType = []string{"application/schema+json"}

// readPolicySchema handles GET /v1/policies/schema.
func (s *Server) readPolicySchema(req *request.Request) error {
	req.Query()
	if err := req.Err(); err != nil {
		return err
	}
	return req.Bytes(http.StatusOK, schemaType, policy.Schema())
}

// readTenantPolicy handles GET /v1/policy.
func (s *Server) readTenantPolicy(req *request.Request) error {
	req.Query()
	if err := req.Err(); err != nil {
		return err
	}
	found, err := s.Store.TenantPolicy(req.Ctx, req.Tenant)
	if err != nil {
		return err
	}
	return answerTenantPolicy(req, found)
}

// answerTenantPolicy answers with a tenant's default, and its version as the ETag.
func answerTenantPolicy(req *request.Request, p session.Policy) error {
	req.W.Header().Set("Etag", strconv.Quote(strconv.Itoa(p.Version.Tenant)))
	return answerPolicy(req, p, p.Patch, p.Patch, nil)
}

// readSessionPolicy handles GET /v1/sessions/{id}/policy.
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
	return answerPolicy(req, found.Policy, found.Own, found.Tenant, found.Own)
}

// answerPolicy answers with a layer, and with the policy that it makes together with those below it. The whole policy
// is the one that is in force: it was made when the layer was, perhaps by an older engine.
func answerPolicy(req *request.Request, p session.Policy, layer, tenant, own json.RawMessage) error {
	_, sources, err := policy.Resolve(tenant, own, "")
	if err != nil {
		return err
	}
	return req.JSON(http.StatusOK, protocol.Policy{
		Version: p.Version, Patch: layer, Effective: p.Document, Sources: sources,
	})
}

// A layerChange reads how a request changes a layer of a policy; nil removes the layer. Its error is kept for Err.
type layerChange func(*request.Request) func(old json.RawMessage) json.RawMessage

// replaceLayer reads the request of PUT: the body is the new layer.
func replaceLayer(req *request.Request) func(json.RawMessage) json.RawMessage {
	document := policyDocument(req)
	return func(json.RawMessage) json.RawMessage { return document }
}

// mergeLayer reads the request of PATCH: the body is merged into the layer.
func mergeLayer(req *request.Request) func(json.RawMessage) json.RawMessage {
	document := policyDocument(req)
	return func(old json.RawMessage) json.RawMessage { return policy.Merge(old, document) }
}

// removeLayer reads the request of DELETE: what is below the layer holds again.
func removeLayer(req *request.Request) func(json.RawMessage) json.RawMessage {
	req.EmptyBody()
	return nil
}

// policyDocument returns a body that is a policy: a JSON object. Its error is kept for Err.
func policyDocument(req *request.Request) json.RawMessage {
	body := req.Body()
	if req.Err() != nil {
		return nil
	}
	d, err := request.Open(body)
	if err != nil {
		req.Fail(err)
		return nil
	}
	value := rawjson.Value(body)
	if body[value.Start] != '{' {
		req.Fail(session.Invalid("", request.InvalidRequest, "a policy must be an object, not %s", d.Kind(value)))
		return nil
	}
	return bytes.Clone(value.Of(body))
}

// changeTenantPolicy handles PUT, PATCH and DELETE /v1/policy.
func (s *Server) changeTenantPolicy(change layerChange) handler {
	return func(req *request.Request) error {
		req.Query()
		layer := change(req)
		id := req.Idempotency()
		if err := req.Err(); err != nil {
			return err
		}
		expected, err := ifMatch(req)
		if err != nil {
			return err
		}
		changed, replayed, err := s.Store.ChangeTenantPolicy(req.Ctx, req.Tenant, session.TenantPolicy{
			Expected: expected, ChangedBy: req.KeyDigest, Idempotency: id, Rebase: ingest.Rebase,
			Edit: func(tenant, _ json.RawMessage) (session.Policy, error) {
				if layer == nil {
					return policy.StoredDefault(), nil
				}
				return policy.ResolveStored(layer(tenant), nil, "")
			},
		})
		if err != nil {
			return err
		}
		req.Replayed(id, replayed)
		return answerTenantPolicy(req, changed)
	}
}

// changeSessionPolicy handles PUT, PATCH and DELETE /v1/sessions/{id}/policy.
func (s *Server) changeSessionPolicy(change layerChange) handler {
	return func(req *request.Request) error {
		req.Query()
		at := req.Address()
		layer := change(req)
		id := req.Idempotency()
		if err := req.Err(); err != nil {
			return err
		}
		edit := session.Change{ChangedBy: req.KeyDigest, DefaultPolicy: layer == nil}
		if layer != nil {
			edit.EditPolicy = func(tenant, own json.RawMessage) (session.Policy, error) {
				return policy.ResolveStored(tenant, layer(own), "")
			}
		}
		changed, replayed, err := s.Store.Update(req.Ctx, at, edit, id)
		if err != nil {
			return err
		}
		req.Replayed(id, replayed)
		return req.JSON(http.StatusOK, answerOf(changed))
	}
}

// ifMatch returns the version of the policy that the caller has seen, nil if it names none or accepts any.
func ifMatch(req *request.Request) (*int, error) {
	header := req.R.Header.Get("If-Match")
	if header == "" || header == "*" {
		return nil, nil
	}
	version, err := strconv.Atoi(strings.Trim(header, `"`))
	if err != nil {
		return nil, session.Invalid("If-Match", request.InvalidRequest,
			"If-Match is %q: send the ETag of GET /v1/policy", spelling.Shorten(header))
	}
	return &version, nil
}

// checkPolicy handles POST /v1/policy/check: it answers with what PUT /v1/policy, or with as=session the PUT of a
// session's policy, would make of the body.
func (s *Server) checkPolicy(req *request.Request) error {
	q := req.Query("as")
	as := q.Choice("as", policy.TenantLayer, policy.SessionLayer)
	document := policyDocument(req)
	if err := req.Err(); err != nil {
		return err
	}
	below, err := s.Store.TenantPolicy(req.Ctx, req.Tenant)
	if err != nil {
		return err
	}
	tenant, own := document, json.RawMessage(nil)
	if as == policy.SessionLayer {
		tenant, own = below.Patch, document
	}
	p, err := policy.ResolveStored(tenant, own, "")
	if err != nil {
		return err
	}
	p.Version = below.Version
	return answerPolicy(req, p, document, tenant, own)
}

// listTenantPolicyVersions handles GET /v1/policy/versions.
func (s *Server) listTenantPolicyVersions(req *request.Request) error {
	list := req.List("policy versions")
	if err := req.Err(); err != nil {
		return err
	}
	found, err := s.Store.PolicyVersions(req.Ctx, req.Tenant, list.After.Order, list.Limit+1)
	return request.AnswerList(list, found, err, versionAnswer, placeOfVersion)
}

// listSessionPolicyVersions handles GET /v1/sessions/{id}/policy/versions.
func (s *Server) listSessionPolicyVersions(req *request.Request) error {
	at := req.Address()
	list := req.List("policy versions of " + at.ID)
	if err := req.Err(); err != nil {
		return err
	}
	found, err := s.Store.SessionPolicyVersions(req.Ctx, at, list.After.Order, list.Limit+1)
	return request.AnswerList(list, found, err, versionAnswer, placeOfVersion)
}

func versionAnswer(r session.PolicyRecord) session.PolicyRecord {
	r.CreatedAt = r.CreatedAt.UTC()
	return r
}

func placeOfVersion(last session.PolicyRecord) request.Place {
	return request.Place{Order: int64(last.Version)}
}
