package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// policyOf answers with layer, and with the effective policy that it makes together with those below it.
func policyOf(version session.PolicyVersion, layer, effective json.RawMessage,
	sources map[string]string) protocol.Policy {
	return protocol.Policy{Version: version, Patch: layer, Effective: effective, Sources: sources}
}

// listProfiles is GET /v1/policies/profiles.
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

// readPolicySchema is GET /v1/policies/schema.
func (s *Server) readPolicySchema(req *request.Request) error {
	req.Query()
	if err := req.Err(); err != nil {
		return err
	}
	return req.Bytes(http.StatusOK, schemaType, policy.Schema())
}

// readTenantPolicy is GET /v1/policy.
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

// answerTenantPolicy answers with a tenant's default. The whole policy is the one that is in force: it was made when
// the layer was, perhaps by an older engine.
func answerTenantPolicy(req *request.Request, p session.Policy) error {
	_, sources, err := policy.ResolveStored(p.Patch, nil, "")
	if err != nil {
		return err
	}
	req.W.Header().Set("Etag", strconv.Quote(strconv.Itoa(p.Version.Tenant)))
	return req.JSON(http.StatusOK, policyOf(p.Version, p.Patch, p.Document, sources))
}

// replaced returns the layer that PUT makes, as policy.Merge returns that of PATCH.
func replaced(_, document []byte) []byte { return document }

// putTenantPolicy is PUT /v1/policy.
func (s *Server) putTenantPolicy(req *request.Request) error {
	return s.changeTenantPolicy(req, replaced)
}

// patchTenantPolicy is PATCH /v1/policy.
func (s *Server) patchTenantPolicy(req *request.Request) error {
	return s.changeTenantPolicy(req, policy.Merge)
}

// deleteTenantPolicy is DELETE /v1/policy: the default profile again.
func (s *Server) deleteTenantPolicy(req *request.Request) error {
	req.Query()
	id := req.EmptyBody()
	if err := req.Err(); err != nil {
		return err
	}
	return s.storeTenantPolicy(req, id, func(_, _ json.RawMessage) (session.Policy, error) {
		p, _, err := policy.ResolveStored(json.RawMessage(`{}`), nil, "")
		return p, err
	})
}

// changeTenantPolicy makes the tenant's new layer from the stored one and the body.
func (s *Server) changeTenantPolicy(req *request.Request, layer func(old, document []byte) []byte) error {
	req.Query()
	if err := req.Err(); err != nil {
		return err
	}
	document, id, err := policyDocument(req)
	if err != nil {
		return err
	}
	return s.storeTenantPolicy(req, id, func(tenant, _ json.RawMessage) (session.Policy, error) {
		p, _, err := policy.ResolveStored(layer(tenant, document), nil, "")
		return p, err
	})
}

func (s *Server) storeTenantPolicy(req *request.Request, id *session.Idempotency, edit session.PolicyEdit) error {
	expected, err := ifMatch(req)
	if err != nil {
		return err
	}
	changed, replayed, err := s.Store.ChangeTenantPolicy(req.Ctx, req.Tenant, session.TenantPolicy{
		Edit: edit, Expected: expected, ChangedBy: req.KeyDigest, Idempotency: id,
		Rebase: ingest.Rebase,
	})
	if err != nil {
		return err
	}
	req.Replayed(id, replayed)
	return answerTenantPolicy(req, changed)
}

// policyDocument returns a body that is a policy: a JSON object.
func policyDocument(req *request.Request) (json.RawMessage, *session.Idempotency, error) {
	body := req.Body()
	id := req.Idempotency()
	if err := req.Err(); err != nil {
		return nil, nil, err
	}
	d, err := request.Open(body)
	if err != nil {
		return nil, nil, err
	}
	value := rawjson.Value(body)
	if body[value.Start] != '{' {
		return nil, nil, session.Invalid("", request.InvalidRequest, "a policy must be an object, not %s",
			d.Kind(value))
	}
	return bytes.Clone(value.Of(body)), id, nil
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

// checkPolicy is POST /v1/policy/check: what PUT /v1/policy, or with as=session a session's policy, would make of it.
func (s *Server) checkPolicy(req *request.Request) error {
	q := req.Query("as")
	as := q.Choice("as", policy.TenantLayer, policy.SessionLayer)
	if err := q.Err(); err != nil {
		return err
	}
	document, _, err := policyDocument(req)
	if err != nil {
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
	p, sources, err := policy.ResolveStored(tenant, own, "")
	if err != nil {
		return err
	}
	return req.JSON(http.StatusOK, policyOf(below.Version, p.Patch, p.Document, sources))
}

// listTenantPolicyVersions is GET /v1/policy/versions.
func (s *Server) listTenantPolicyVersions(req *request.Request) error {
	list := req.List("policy versions")
	if err := req.Err(); err != nil {
		return err
	}
	found, err := s.Store.PolicyVersions(req.Ctx, req.Tenant, list.After.Order, list.Limit+1)
	if err != nil {
		return err
	}
	return request.AnswerList(list, found, versionAnswer, placeOfVersion)
}

func versionAnswer(r session.PolicyRecord) session.PolicyRecord {
	r.CreatedAt = r.CreatedAt.UTC()
	return r
}

func placeOfVersion(last session.PolicyRecord) request.Place {
	return request.Place{Order: int64(last.Version), ID: uuid.Nil}
}
