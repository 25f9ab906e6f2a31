package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// policyOf answers with layer, and with the effective policy that it makes together with those below it.
func policyOf(version session.PolicyVersion, layer, effective json.RawMessage, sources map[string]string) protocol.Policy {
	return protocol.Policy{Version: version, Patch: layer, Effective: effective, Sources: sources}
}

// listProfiles is GET /v1/policies/profiles.
func (s *Server) listProfiles(x *exchange) error {
	if err := x.query().err(); err != nil {
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
	return x.json(http.StatusOK, a)
}

var schemaType = []string{"application/schema+json"}

// readPolicySchema is GET /v1/policies/schema.
func (s *Server) readPolicySchema(x *exchange) error {
	if err := x.query().err(); err != nil {
		return err
	}
	return x.bytes(http.StatusOK, schemaType, policy.Schema())
}

// readTenantPolicy is GET /v1/policy.
func (s *Server) readTenantPolicy(x *exchange) error {
	if err := x.query().err(); err != nil {
		return err
	}
	found, err := s.Store.TenantPolicy(x.ctx, x.tenant)
	if err != nil {
		return err
	}
	return x.tenantPolicy(found)
}

// tenantPolicy answers with a tenant's default. The whole policy is the one that is in force: it was made when the
// layer was, perhaps by an older engine.
func (x *exchange) tenantPolicy(p session.Policy) error {
	_, sources, err := policy.ResolveStored(p.Patch, nil, "")
	if err != nil {
		return err
	}
	x.w.Header().Set("Etag", strconv.Quote(strconv.Itoa(p.Version.Tenant)))
	return x.json(http.StatusOK, policyOf(p.Version, p.Patch, p.Document, sources))
}

// replaced is the layer that PUT makes, as policy.Merge is that of PATCH.
func replaced(_, document []byte) []byte { return document }

// putTenantPolicy is PUT /v1/policy.
func (s *Server) putTenantPolicy(x *exchange) error {
	return s.changeTenantPolicy(x, replaced)
}

// patchTenantPolicy is PATCH /v1/policy.
func (s *Server) patchTenantPolicy(x *exchange) error {
	return s.changeTenantPolicy(x, policy.Merge)
}

// deleteTenantPolicy is DELETE /v1/policy: the default profile again.
func (s *Server) deleteTenantPolicy(x *exchange) error {
	if err := x.query().err(); err != nil {
		return err
	}
	id, err := x.emptyBody()
	if err != nil {
		return err
	}
	return s.storeTenantPolicy(x, id, func(_, _ json.RawMessage) (session.Policy, error) {
		p, _, err := policy.ResolveStored(json.RawMessage(`{}`), nil, "")
		return p, err
	})
}

// changeTenantPolicy makes the tenant's layer of the stored one and the body.
func (s *Server) changeTenantPolicy(x *exchange, layer func(old, document []byte) []byte) error {
	if err := x.query().err(); err != nil {
		return err
	}
	document, id, err := x.policyDocument()
	if err != nil {
		return err
	}
	return s.storeTenantPolicy(x, id, func(tenant, _ json.RawMessage) (session.Policy, error) {
		p, _, err := policy.ResolveStored(layer(tenant, document), nil, "")
		return p, err
	})
}

func (s *Server) storeTenantPolicy(x *exchange, id *session.Idempotency, edit session.PolicyEdit) error {
	expected, err := x.ifMatch()
	if err != nil {
		return err
	}
	changed, replayed, err := s.Store.ChangeTenantPolicy(x.ctx, x.tenant, session.TenantPolicy{
		Edit: edit, Expected: expected, ChangedBy: x.key, Idempotency: id,
		Rebase: func(tenant, own json.RawMessage) (session.Policy, error) {
			p, _, err := policy.ResolveStored(tenant, own, "")
			return p, err
		},
	})
	if err != nil {
		return err
	}
	x.replayed(id, replayed)
	return x.tenantPolicy(changed)
}

// policyDocument is a body that is a policy: a JSON object.
func (x *exchange) policyDocument() (json.RawMessage, *session.Idempotency, error) {
	body, err := readBody(x)
	if err != nil {
		return nil, nil, err
	}
	defer body.free()
	id, err := x.idempotency(body.b)
	if err != nil {
		return nil, nil, err
	}
	d := &document{data: body.b}
	if err := d.check(rawjson.Limits{Depth: session.MaxJSONDepth, Nodes: session.MaxJSONNodes, NumberBytes: session.MaxNumberBytes}); err != nil {
		return nil, nil, err
	}
	value := rawjson.Value(body.b)
	if body.b[value.Start] != '{' {
		return nil, nil, session.Invalid("", invalidRequest, "a policy is an object, this is %s", kindOf(body.b[value.Start]))
	}
	return append(json.RawMessage(nil), value.Of(body.b)...), id, nil
}

// ifMatch is the version of the policy that the caller has seen; nil if it does not say, or does not mind which.
func (x *exchange) ifMatch() (*int, error) {
	header := x.r.Header.Get("If-Match")
	if header == "" || header == "*" {
		return nil, nil
	}
	version, err := strconv.Atoi(strings.Trim(header, `"`))
	if err != nil {
		return nil, session.Invalid("If-Match", invalidRequest, "If-Match is %q: send the ETag of GET /v1/policy", shorten(header))
	}
	return &version, nil
}

// checkPolicy is POST /v1/policy/check: what PUT /v1/policy, or with as=session a session's policy, would make of it.
func (s *Server) checkPolicy(x *exchange) error {
	q := x.query("as")
	as := q.choice("as", policy.TenantLayer, policy.SessionLayer)
	if err := q.err(); err != nil {
		return err
	}
	document, _, err := x.policyDocument()
	if err != nil {
		return err
	}
	below, err := s.Store.TenantPolicy(x.ctx, x.tenant)
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
	return x.json(http.StatusOK, policyOf(below.Version, p.Patch, p.Document, sources))
}

// listTenantPolicyVersions is GET /v1/policy/versions.
func (s *Server) listTenantPolicyVersions(x *exchange) error {
	list := listOf(x, "policy versions")
	if list.err != nil {
		return list.err
	}
	found, err := s.Store.PolicyVersions(x.ctx, x.tenant, list.after.order, list.limit+1)
	if err != nil {
		return err
	}
	return answerList(list, found, versionAnswer, placeOfVersion)
}

func versionAnswer(r session.PolicyRecord) session.PolicyRecord {
	r.CreatedAt = r.CreatedAt.UTC()
	return r
}

func placeOfVersion(last session.PolicyRecord) place { return place{int64(last.Version), uuid.Nil} }
