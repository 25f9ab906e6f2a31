package api

import (
	"encoding/binary"
	"math"
	"net/http"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/search"
	"github.com/varve-dev/varve/internal/session"
)

// searchTenant handles GET /v1/search. The place of a hit is its rank and, among equal ones, its number.
func (s *Server) searchTenant(req *request.Request) error {
	query := req.Query().Text("q", "")
	var answer protocol.SearchAnswer
	find := func(l *request.List) (hits []protocol.SearchHit, err error) {
		want := search.Wanted{
			Query: query, Rank: math.Float32frombits(uint32(l.After.Order)),
			ID: int64(binary.BigEndian.Uint64(l.After.ID[8:])), Limit: l.Limit,
		}
		hits, answer.Covers, err = search.Find(req.Ctx, s.Store, req.Tenant, want)
		return hits, err
	}
	place := func(last protocol.SearchHit) request.Place {
		at := request.Place{Order: int64(math.Float32bits(last.Rank))}
		binary.BigEndian.PutUint64(at.ID[8:], uint64(last.ID))
		return at
	}
	var err error
	answer.List, err = request.PageOf(req, "search"+query, find, request.AsIs, place)
	if err != nil {
		return err
	}
	return req.JSON(http.StatusOK, answer)
}

// readSearchSettings handles GET /v1/search/settings.
func (s *Server) readSearchSettings(req *request.Request) error {
	state, err := s.Store.SearchState(req.Ctx, req.Tenant)
	return request.AnswerFound(req, state, err, request.AsIs)
}

// putSearchSettings handles PUT /v1/search/settings. Doing it twice changes nothing.
func (s *Server) putSearchSettings(req *request.Request) error {
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
	state, err := s.Store.SetSearchLanguage(req.Ctx, req.Tenant, language)
	return request.AnswerFound(req, state, err, request.AsIs)
}
