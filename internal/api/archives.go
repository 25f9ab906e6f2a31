package api

import (
	"errors"
	"net/http"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
)

// archiveSession handles POST /v1/sessions/{id}/archive. Doing it twice changes nothing.
func (s *Server) archiveSession(req *request.Request) error {
	found, replayed, err := tier.Archive(req.Ctx, req.Store, req.Address(), req.Idempotency())
	return answerArchive(req, found, replayed, err)
}

// unarchiveSession handles POST /v1/sessions/{id}/unarchive. Doing it twice changes nothing.
func (s *Server) unarchiveSession(req *request.Request) error {
	found, replayed, err := tier.Unarchive(req.Ctx, req.Store, req.Address(), req.Idempotency())
	return answerArchive(req, found, replayed, orNoArchive(err))
}

func answerArchive(req *request.Request, found session.Archive, replayed bool, err error) error {
	if err != nil {
		return err
	}
	req.Replayed(replayed)
	return req.JSON(http.StatusAccepted, found)
}

// readArchive handles GET /v1/sessions/{id}/archive.
func (s *Server) readArchive(req *request.Request) error {
	found, err := tier.ArchiveOf(req.Ctx, req.Store, req.Address())
	return request.AnswerFound(req, found, orNoArchive(err), request.AsIs)
}

// listArchives handles GET /v1/archives.
func (s *Server) listArchives(req *request.Request) error {
	find := func(l *request.List) ([]session.Archive, error) {
		return tier.Archives(req.Ctx, req.Store, req.Tenant, l.Page())
	}
	place := func(last session.Archive) request.Place { return request.PlaceIn(last.AskedAt, last.Key) }
	return request.AnswerList(req, "archives", find, request.AsIs, place)
}

// orNoArchive returns the error of an archive that there is not.
func orNoArchive(err error) error {
	if errors.Is(err, session.ErrNotFound) {
		return errNoArchive
	}
	return err
}
