package api

import (
	"bytes"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/erasure"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/session"
)

func erasurePath(id uuid.UUID) string { return "/v1/erasures/" + id.String() }

// createErasure handles POST /v1/erasures.
func (s *Server) createErasure(req *request.Request) error {
	metadata, err := readSubject(req.Body())
	if err != nil {
		return err
	}
	begun, replayed, err := erasure.OfSubject(req.Ctx, req.Store, req.Tenant, metadata, req.Idempotency())
	if err != nil {
		return err
	}
	req.Replayed(replayed)
	return request.AnswerWork(req, begun.State == session.ErasureDone, erasurePath(begun.ID), begun)
}

// readSubject reads the metadata of the sessions that are to be erased. None would be those of everybody.
func readSubject(body []byte) (json.RawMessage, error) {
	d, err := request.Open(body)
	if err != nil {
		return nil, err
	}
	var metadata []byte
	for _, value := range d.Fields([]string{"metadata"}) {
		metadata = ingest.ReadMetadata(d, value)
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	if len(bytes.Trim(metadata, "{} \t\r\n")) == 0 {
		return nil, session.Invalid("/metadata", request.InvalidRequest, "must have the members of the metadata that "+
			"the sessions to erase have, like {\"user_id\":\"u1\"}: without any, it would be all sessions")
	}
	return metadata, nil
}

// readErasure handles GET /v1/erasures/{erasure}.
func (s *Server) readErasure(req *request.Request) error {
	found, err := erasure.Read(req.Ctx, req.Store, req.Tenant, req.PathID("erasure"))
	return request.AnswerFound(req, found, err, request.AsIs)
}

// listErasures handles GET /v1/erasures.
func (s *Server) listErasures(req *request.Request) error {
	find := func(l *request.List) ([]session.Erasure, error) {
		return erasure.List(req.Ctx, req.Store, req.Tenant, l.Page())
	}
	place := func(last session.Erasure) request.Place { return request.PlaceIn(last.CreatedAt, last.ID) }
	return request.AnswerList(req, "erasures", find, request.AsIs, place)
}
