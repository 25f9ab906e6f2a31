package search

import (
	"encoding/binary"
	"math"
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

// search handles GET /v1/search. The place of a hit is its rank and, among equal ones, its number.
func (h handlers) search(req *request.Request) error {
	query := req.Query().Text("q", "")
	var answer Answer
	page := func(l *request.List) (hits []Hit, err error) {
		want := searchPage{
			Query: query, Rank: math.Float32frombits(uint32(l.After.Order)),
			ID: int64(binary.BigEndian.Uint64(l.After.ID[8:])), Limit: l.Limit,
		}
		hits, answer.Covers, err = find(req.Ctx, h.store, req.Tenant, want)
		return hits, err
	}
	place := func(last Hit) request.Place {
		at := request.Place{Order: int64(math.Float32bits(last.Rank))}
		binary.BigEndian.PutUint64(at.ID[8:], uint64(last.ID))
		return at
	}
	var err error
	answer.List, err = request.PageOf(req, "search"+query, page, request.AsIs, place)
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
	language := ""
	for _, value := range d.Fields([]string{"language"}) {
		language, _ = d.Text("/language", value, session.MaxIDBytes)
	}
	if err := d.Err(); err != nil {
		return err
	}
	state, err := store{req.Store}.setSearchLanguage(req.Ctx, req.Tenant, language)
	return request.AnswerFound(req, state, err, request.AsIs)
}
