package api

import (
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// readRetention handles GET /v1/retention.
func (s *Server) readRetention(req *request.Request) error {
	found, err := req.Store.Retention(req.Ctx, req.Tenant)
	return request.AnswerFound(req, found, err, request.AsIs)
}

// putRetention handles PUT /v1/retention. Doing it twice changes nothing.
func (s *Server) putRetention(req *request.Request) error {
	d, err := request.Open(req.Body())
	if err != nil {
		return err
	}
	wanted := ingest.ReadRetention(d, "", rawjson.Value(d.Data))
	if err := d.Err(); err != nil {
		return err
	}
	set, err := req.Store.SetRetention(req.Ctx, req.Tenant, wanted)
	return request.AnswerFound(req, set, err, request.AsIs)
}

// previewRetention handles GET /v1/retention/preview: what the tenant's retention, or that of the query, would do.
// Both are held to what operators leave the tenant.
func (s *Server) previewRetention(req *request.Request) error {
	query := req.Query()
	by := &session.Retention{
		IdleSeconds: secondsIn(query, "idle_seconds"), AgeSeconds: secondsIn(query, "max_age_seconds"),
		ArchiveSeconds: secondsIn(query, "archive_max_age_seconds"),
	}
	if query.Values.Has("then") {
		by.Then = session.Then(query.Choice("then", string(session.ThenErase), string(session.ThenArchive)))
	}
	if err := query.Err(); err != nil {
		return err
	}
	if *by == (session.Retention{}) {
		by = nil
	}
	found, err := req.Store.ExpiredBy(req.Ctx, req.Tenant, by)
	return request.AnswerFound(req, found, err, request.AsIs)
}

// secondsIn reads a number of a retention from a query, nil if it is not there.
func secondsIn(query *request.Query, name string) *int64 {
	if !query.Values.Has(name) {
		return nil
	}
	return new(query.Integer(name, session.MinRetention, session.MaxRetention, 0))
}
