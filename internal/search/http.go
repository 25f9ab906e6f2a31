package search

import (
	"net/http"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/session"
)

// handlers answer the requests about the search.
type handlers struct{ store store }

// routes returns the routes of the search.
func routes(a *feature.API) []request.Route {
	h := handlers{store{a.Store}}
	return []request.Route{
		request.Tenants(session.SessionsRead, session.ResultsRead).
			Get("/v1/search", h.search, append([]string{"q"}, request.ListQuery...)...),
		request.Tenants(session.SessionsRead).Get("/v1/search/settings", h.readSettings),
		request.Tenants(session.ScopeAdmin).Put("/v1/search/settings", h.putSettings),
	}
}

// search handles GET /v1/search.
func (h handlers) search(req *request.Request) error {
	query := req.Query().Text("q", "")
	var answer Answer
	page := func(l *request.List) (hits []Hit, err error) {
		var beyond *place
		hits, answer.Covers, beyond, err = find(req.Ctx, h.store, req.Tenant, query, placeAfter(l.After), l.Limit)
		if beyond != nil {
			l.Beyond = new(beyond.inList())
		}
		return hits, err
	}
	placeOf := func(last Hit) request.Place { return last.at.inList() }
	var err error
	answer.List, err = request.PageOf(req, "search"+query, page, request.AsIs, placeOf)
	if err != nil {
		return err
	}
	return req.JSON(http.StatusOK, answer)
}

// readSettings handles GET /v1/search/settings.
func (h handlers) readSettings(req *request.Request) error {
	state, err := h.store.state(req.Ctx, req.Tenant)
	return request.AnswerFound(req, state, err, request.AsIs)
}

// putSettings handles PUT /v1/search/settings. Doing it twice changes nothing.
func (h handlers) putSettings(req *request.Request) error {
	d, err := request.Open(req.Body())
	if err != nil {
		return err
	}
	var want Settings
	for name, value := range d.Fields([]string{"language", "results"}) {
		if name == "results" {
			want.Results = d.Boolean("/results", value)
		} else {
			want.Language, _ = d.Text("/language", value, session.MaxIDBytes)
		}
	}
	if err := d.Err(); err != nil {
		return err
	}
	state, err := store{req.Store}.set(req.Ctx, req.Tenant, want)
	return request.AnswerFound(req, state, err, request.AsIs)
}
