package api

import (
	"slices"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// allSessionsQuery are the parameters of the list of sessions of all tenants.
var allSessionsQuery = append([]string{"order", "tenant"}, request.ListQuery...)

// listAllSessions handles GET /v1/admin/sessions.
func (s *Server) listAllSessions(req *request.Request) error {
	q := req.Query()
	order := session.SessionOrder(q.Text("order", string(session.ByTokens)))
	if !slices.Contains(session.SessionOrders(), order) {
		q.Wrong("order", request.InvalidRequest, "must be one of %s, not %q", request.Names(session.SessionOrders()),
			spelling.Shorten(string(order)))
	}
	var tenant *uuid.UUID
	if q.Values.Has("tenant") {
		id, err := uuid.Parse(q.Text("tenant", ""))
		if err != nil {
			q.Wrong("tenant", request.InvalidRequest, "must be the id of a tenant")
		}
		tenant = &id
	}
	find := func(l *request.List) ([]session.SessionOfTenant, error) {
		var after *session.SessionPlace
		if l.After != (request.Place{}) {
			after = &session.SessionPlace{Order: l.After.Order, Key: l.After.ID}
		}
		found, beyond, err := s.Operators.AllSessions(req.Ctx, order, tenant, after, l.Limit)
		if beyond != nil {
			l.Beyond = &request.Place{Order: beyond.Order, ID: beyond.Key}
		}
		return found, err
	}
	place := func(last session.SessionOfTenant) request.Place {
		return request.Place{Order: last.Place.Order, ID: last.Place.Key}
	}
	name := "all sessions " + string(order) + " " + q.Text("tenant", "") // a cursor belongs to its list
	return request.AnswerList(req, name, find, request.AsIs, place)
}
