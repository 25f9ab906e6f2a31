package api

import (
	"slices"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// fleetQuery are the parameters of the list of sessions of all tenants.
var fleetQuery = append([]string{"list", "tenant"}, request.ListQuery...)

// listFleet handles GET /v1/admin/sessions.
func (s *Server) listFleet(req *request.Request) error {
	q := req.Query()
	wanted := session.FleetList(q.Text("list", string(session.FleetTokens)))
	if !slices.Contains(session.FleetLists(), wanted) {
		q.Wrong("list", request.InvalidRequest, "must be one of %s, not %q", request.Names(session.FleetLists()),
			spelling.Shorten(string(wanted)))
	}
	var tenant *uuid.UUID
	if q.Values.Has("tenant") {
		id, err := uuid.Parse(q.Text("tenant", ""))
		if err != nil {
			q.Wrong("tenant", request.InvalidRequest, "must be the id of a tenant")
		}
		tenant = &id
	}
	find := func(l *request.List) ([]session.FleetSession, error) {
		var after *session.FleetPlace
		if l.After != (request.Place{}) {
			after = &session.FleetPlace{Order: l.After.Order, Key: l.After.ID}
		}
		found, beyond, err := s.Operators.Fleet(req.Ctx, wanted, tenant, after, l.Limit)
		if beyond != nil {
			l.Beyond = &request.Place{Order: beyond.Order, ID: beyond.Key}
		}
		return found, err
	}
	place := func(last session.FleetSession) request.Place {
		return request.Place{Order: last.Place.Order, ID: last.Place.Key}
	}
	name := "fleet " + string(wanted) + " " + q.Text("tenant", "") // a cursor belongs to its list
	return request.AnswerList(req, name, find, request.AsIs, place)
}
