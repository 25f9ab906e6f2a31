package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"

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
	body, err := profiles()
	if err != nil {
		return err
	}
	return req.Bytes(http.StatusOK, request.JSONType, body)
}

// What is the same for everybody is written once: it takes milliseconds.
var (
	profiles = sync.OnceValues(func() ([]byte, error) {
		a := protocol.List[protocol.Profile]{Object: "list"}
		for _, name := range policy.Profiles() {
			p, err := policy.Profile(name)
			if err != nil {
				return nil, err
			}
			profile := protocol.Profile{Name: name, Policy: p.Document(), Explained: []protocol.Explained{}}
			document, fields := policy.Explain(name)
			profile.Document = document
			for _, field := range fields {
				profile.Explained = append(profile.Explained, protocol.Explained(field))
			}
			a.Data = append(a.Data, profile)
		}
		return json.Marshal(a)
	})
	policySchema = sync.OnceValue(policy.Schema)
)

var schemaType = []string{"application/schema+json"}

// readPolicySchema handles GET /v1/policies/schema.
func (s *Server) readPolicySchema(req *request.Request) error {
	return req.Bytes(http.StatusOK, schemaType, policySchema())
}

// readTenantPolicy handles GET /v1/policy.
func (s *Server) readTenantPolicy(req *request.Request) error {
	found, err := req.Store.TenantPolicy(req.Ctx, req.Tenant)
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
	found, err := req.Store.SessionPolicy(req.Ctx, req.Address())
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

// A layerChange makes the new layer of a policy of the old one and the body of the request; nil removes the layer.
type layerChange func(old, body json.RawMessage) json.RawMessage

// replaceLayer makes the change of PUT.
func replaceLayer(_, body json.RawMessage) json.RawMessage { return body }

// mergeLayer makes the change of PATCH.
func mergeLayer(old, body json.RawMessage) json.RawMessage { return policy.Merge(old, body) }

// removeLayer is the change of DELETE: what is below the layer holds again.
var removeLayer layerChange

// policyEdit returns what a request makes of a layer, nil if it removes the layer.
func policyEdit(req *request.Request, change layerChange) (func(old json.RawMessage) json.RawMessage, error) {
	if change == nil {
		return nil, nil
	}
	body, err := policyDocument(req)
	return func(old json.RawMessage) json.RawMessage { return change(old, body) }, err
}

// policyDocument returns a body that is a policy: a JSON object.
func policyDocument(req *request.Request) (json.RawMessage, error) {
	d, err := request.Open(req.Body())
	if err != nil {
		return nil, err
	}
	value := rawjson.Value(d.Data)
	if d.Data[value.Start] != '{' {
		return nil, session.Invalid("", request.InvalidRequest, "a policy must be an object, not %s", d.Kind(value))
	}
	return bytes.Clone(value.Of(d.Data)), nil
}

// changeTenantPolicy handles PUT, PATCH and DELETE /v1/policy.
func (s *Server) changeTenantPolicy(change layerChange) handler {
	return func(req *request.Request) error {
		edit, err := policyEdit(req, change)
		if err != nil {
			return err
		}
		expected, err := ifMatch(req)
		if err != nil {
			return err
		}
		changed, replayed, err := req.Store.ChangeTenantPolicy(req.Ctx, req.Tenant, session.TenantPolicy{
			Expected: expected, ChangedBy: req.KeyDigest, Idempotency: req.Idempotency(), Rebase: ingest.Rebase,
			Edit: func(tenant, _ json.RawMessage) (session.Policy, error) {
				if edit == nil {
					return policy.StoredDefault(), nil
				}
				return s.writers.ResolveStored(edit(tenant), nil, "")
			},
		})
		if err != nil {
			return err
		}
		req.Replayed(replayed)
		return answerTenantPolicy(req, changed)
	}
}

// changeSessionPolicy handles PUT, PATCH and DELETE /v1/sessions/{id}/policy.
func (s *Server) changeSessionPolicy(change layerChange) handler {
	return func(req *request.Request) error {
		edit, err := policyEdit(req, change)
		if err != nil {
			return err
		}
		settings := session.Change{ChangedBy: req.KeyDigest, DefaultPolicy: edit == nil}
		if edit != nil {
			settings.EditPolicy = func(tenant, own json.RawMessage) (session.Policy, error) {
				return s.writers.ResolveStored(tenant, edit(own), "")
			}
		}
		changed, replayed, err := req.Store.Update(req.Ctx, req.Address(), settings, req.Idempotency())
		return request.AnswerChanged(req, changed, replayed, err, answerOf)
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
			"If-Match is %q: send the ETag of what you change", spelling.Shorten(header))
	}
	return &version, nil
}

// checkPolicy handles POST /v1/policy/check: it answers with what PUT /v1/policy, or with as=session the PUT of a
// session's policy, would make of the body.
func (s *Server) checkPolicy(req *request.Request) error {
	as := req.Query().Choice("as", policy.TenantLayer, policy.SessionLayer)
	if err := req.Err(); err != nil {
		return err
	}
	document, err := policyDocument(req)
	if err != nil {
		return err
	}
	below, err := req.Store.TenantPolicy(req.Ctx, req.Tenant)
	if err != nil {
		return err
	}
	tenant, own := document, json.RawMessage(nil)
	if as == policy.SessionLayer {
		tenant, own = below.Patch, document
	}
	p, err := s.writers.ResolveStored(tenant, own, "")
	if err != nil {
		return err
	}
	p.Version = below.Version
	return answerPolicy(req, p, p.Patch, tenant, own)
}

// listTenantPolicyVersions handles GET /v1/policy/versions.
func (s *Server) listTenantPolicyVersions(req *request.Request) error {
	find := func(l *request.List) ([]session.PolicyRecord, error) {
		return req.Store.PolicyVersions(req.Ctx, req.Tenant, l.After.Order, l.Limit)
	}
	return request.AnswerList(req, "policy versions", find, request.AsIs, placeOfVersion)
}

// listSessionPolicyVersions handles GET /v1/sessions/{id}/policy/versions.
func (s *Server) listSessionPolicyVersions(req *request.Request) error {
	at := req.Address()
	find := func(l *request.List) ([]session.PolicyRecord, error) {
		return req.Store.SessionPolicyVersions(req.Ctx, at, l.After.Order, l.Limit)
	}
	return request.AnswerList(req, "policy versions of "+at.ID, find, request.AsIs, placeOfVersion)
}

func placeOfVersion(last session.PolicyRecord) request.Place {
	return request.Place{Order: int64(last.Version)}
}
