package api

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/erasure"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// enterTenant makes the request of an operator one of the tenant that the path names, if it names one.
func (s *Server) enterTenant(req *request.Request, route *request.Route) error {
	if !route.OfTenant() {
		return nil
	}
	id, err := uuid.Parse(req.Param("tenant"))
	if err != nil {
		return errNoTenant
	}
	exists, err := s.Operators.TenantExists(req.Ctx, id)
	if err == nil && !exists {
		err = errNoTenant
	}
	req.Tenant = id
	return err
}

// mostKeptMember bounds the retention of a tenant.
const mostKeptMember = "retention_at_most"

var tenantMembers = []string{"id", "name", "policy", "quotas", "key", mostKeptMember}

// createTenant handles POST /v1/admin/tenants: a tenant with its policy, its quotas and its first key, or nothing.
func (s *Server) createTenant(req *request.Request) error {
	wanted, err := s.readNewTenant(req)
	if err != nil {
		return err
	}
	made, key, err := req.Store.ProvisionTenant(req.Ctx, wanted)
	if err != nil {
		return err
	}
	answer := protocol.NewTenant{TenantDetails: made}
	if key != nil {
		answer.Key = &protocol.NewKey{Text: wanted.Key.Text, APIKey: *key}
	}
	req.W.Header().Set("Location", "/v1/admin/tenants/"+made.ID.String())
	return req.JSON(http.StatusCreated, answer)
}

func (s *Server) readNewTenant(req *request.Request) (session.NewTenant, error) {
	t := session.NewTenant{ID: uuid.Must(uuid.NewV7()), Policy: policy.StoredDefault()}
	d, err := request.Open(req.Body())
	if err != nil {
		return t, err
	}
	named := false
	for member, value := range d.Fields(tenantMembers) {
		switch member {
		case "id":
			t.ID = d.UUID("/id", value)
		case "name":
			t.Name, named = tenantName(d, value), true
		case "policy":
			t.Policy = s.policyOf(d, value)
		case "quotas":
			t.Quotas = quotasOf(d, value)
		case mostKeptMember:
			t.MostKept = ingest.ReadRetentionBound(d, "/"+mostKeptMember, value)
		case "key":
			t.Key = new(keyIn(d, "/key", value))
		}
	}
	if !named {
		d.Wrong("/name", request.InvalidRequest, "a tenant needs a name")
	}
	if t.Key != nil {
		t.Key.Text = session.NewAPIKey(t.ID)
	}
	return t, d.Err()
}

func tenantName(d *request.Document, value rawjson.Span) string {
	name, ok := d.Text("/name", value, session.MaxIDBytes)
	if err := session.CheckTenantName(name); ok && err != nil {
		d.Wrong("/name", request.InvalidRequest, "%s", err)
	}
	return name
}

// policyOf reads the layer that a tenant's default policy is to be.
func (s *Server) policyOf(d *request.Document, value rawjson.Span) session.Policy {
	stored, err := s.writers.ResolveStored(bytes.Clone(value.Of(d.Data)), nil, "")
	if err != nil {
		d.Add("/policy", err)
	}
	return stored
}

// quotasOf reads quotas of a tenant's own.
func quotasOf(d *request.Document, value rawjson.Span) json.RawMessage {
	before := len(d.Problems)
	var names []string
	whole := map[string]bool{}
	for _, member := range session.QuotaMembers() {
		names = append(names, member.Name)
		whole[member.Name] = member.Whole
	}
	for name, quota := range d.Members("/quotas", value, names) {
		number := json.Number(quota.Of(d.Data))
		_, isWhole := number.Int64()
		_, isNumber := number.Float64()
		switch {
		case isNumber != nil:
			d.Wrong("/quotas/"+name, request.InvalidRequest, "must be a number, not %s: leave it out for none of the "+
				"tenant's own", d.Kind(quota))
		case isWhole != nil && whole[name]:
			d.Wrong("/quotas/"+name, request.InvalidRequest, "must be a whole number, not %s", number)
		}
	}
	text := json.RawMessage(bytes.Clone(value.Of(d.Data)))
	if len(d.Problems) > before {
		return text
	}
	if _, err := session.ParseQuotas(text, session.Quotas{}); err != nil {
		d.Wrong("/quotas", request.InvalidRequest, "%s", err)
	}
	return text
}

// listTenants handles GET /v1/admin/tenants.
func (s *Server) listTenants(req *request.Request) error {
	find := func(l *request.List) ([]session.TenantDetails, error) {
		return req.Store.TenantPage(req.Ctx, l.Page())
	}
	place := func(last session.TenantDetails) request.Place { return request.PlaceIn(last.CreatedAt, last.ID) }
	return request.AnswerList(req, "tenants", find, request.AsIs, place)
}

// readTenant handles GET /v1/admin/tenants/{tenant}.
func (s *Server) readTenant(req *request.Request) error {
	found, err := req.Store.Tenant(req.Ctx, req.Tenant)
	return request.AnswerFound(req, found, err, request.AsIs)
}

// changeTenant handles PATCH /v1/admin/tenants/{tenant}. Doing it twice changes nothing.
func (s *Server) changeTenant(req *request.Request) error {
	d, err := request.Open(req.Body())
	if err != nil {
		return err
	}
	change := session.TenantChange{}
	for member, value := range d.Fields([]string{"name", "suspended", "quotas", mostKeptMember}) {
		switch member {
		case "name":
			change.Name = new(tenantName(d, value))
		case "suspended":
			change.Suspended = new(suspensionOf(d, value))
		case "quotas":
			change.Quotas = quotasOf(d, value)
		case mostKeptMember:
			change.MostKept = new(ingest.ReadRetentionBound(d, "/"+mostKeptMember, value))
		}
	}
	if err := d.Err(); err != nil {
		return err
	}
	changed, err := req.Store.ChangeTenant(req.Ctx, req.Tenant, change)
	return request.AnswerFound(req, changed, err, request.AsIs)
}

// deleteTenant handles DELETE /v1/admin/tenants/{tenant}: it names the tenant a second time. Doing it twice changes
// nothing.
func (s *Server) deleteTenant(req *request.Request) error {
	if named, err := uuid.Parse(req.Query().Text("confirm", "")); err != nil || named != req.Tenant {
		return session.Invalid("confirm", request.InvalidRequest, "must be the id of the tenant, %s: all that it has "+
			"is erased, and nothing brings it back", req.Tenant)
	}
	begun, err := erasure.DeleteTenant(req.Ctx, req.Store, req.Tenant)
	if err != nil {
		return err
	}
	return request.AnswerWork(req, begun.State == session.ErasureDone, "/v1/admin/erasures/"+begun.ID.String(), begun)
}

// suspensionOf reads what is to be refused; null is nothing.
func suspensionOf(d *request.Document, value rawjson.Span) session.Suspension {
	if d.IsNull(value) {
		return ""
	}
	text, ok := d.Text("/suspended", value, session.MaxIDBytes)
	for _, known := range session.Suspensions() {
		if string(known) == text {
			return known
		}
	}
	if ok {
		d.Wrong("/suspended", request.InvalidRequest, "must be null or one of %s, not %q",
			request.Names(session.Suspensions()), spelling.Shorten(text))
	}
	return ""
}
