package api

import (
	"net/http"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/session"
)

// maxWait is how many seconds a caller can wait for a compaction.
const maxWait = 60

// compactSession handles POST /v1/sessions/{id}/compact.
func (s *Server) compactSession(req *request.Request) error {
	wait := req.Query().Seconds("wait", maxWait)
	if err := req.Err(); err != nil {
		return err
	}
	run, replayed, err := s.waiter.Compact(req, req.Address(), wait)
	if err != nil {
		return err
	}
	req.Replayed(replayed)
	return answerRun(req, run)
}

// answerRun answers with a run: 202 until it has ended.
func answerRun(req *request.Request, run session.Run) error {
	if run.State.Ended() {
		return req.JSON(http.StatusOK, run)
	}
	req.W.Header().Set("Location", "/v1/sessions/"+escapeID(req.SessionID)+"/runs/"+run.ID.String())
	req.W.Header()["Retry-After"] = request.RetryAfter
	return req.JSON(http.StatusAccepted, run)
}

// readRun handles GET /v1/sessions/{id}/runs/{run}.
func (s *Server) readRun(req *request.Request) error {
	found, err := s.Store.Run(req.Ctx, req.Address(), req.PathID("run"))
	return request.AnswerFound(req, found, err, request.AsIs)
}

// listRuns handles GET /v1/sessions/{id}/runs.
func (s *Server) listRuns(req *request.Request) error {
	at := req.Address()
	find := func(l *request.List) ([]session.Run, error) { return s.Store.Runs(req.Ctx, at, l.Page()) }
	place := func(last session.Run) request.Place { return request.PlaceIn(last.TriggeredAt, last.ID) }
	return request.AnswerList(req, "runs of "+at.ID, find, request.AsIs, place)
}
