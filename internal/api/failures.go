package api

import (
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/session"
)

// listFailures handles GET /v1/admin/failures.
func (s *Server) listFailures(req *request.Request) error {
	find := func(l *request.List) ([]session.Failing, error) {
		return req.Store.Failures(req.Ctx, req.Tenant, l.Page())
	}
	place := func(last session.Failing) request.Place { return request.PlaceIn(last.Since, last.Key) }
	return request.AnswerList(req, "failures", find, request.AsIs, place)
}

// retryFailure handles POST /v1/admin/failures/{session}/retry: what POST /v1/sessions/{id}/compact does, for a session
// that fails.
func (s *Server) retryFailure(req *request.Request) error {
	at := session.Address{Tenant: req.Tenant, ID: req.SessionID}
	run, replayed, err := req.Store.Retry(req.Ctx, at, req.Idempotency())
	if err != nil {
		return err
	}
	req.Replayed(replayed)
	return request.AnswerWork(req, run.State.Ended(), "/v1/sessions/"+escapeID(at.ID)+"/runs/"+run.ID.String(), run)
}
