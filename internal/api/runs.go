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
	q := req.Query("wait")
	wait := q.Seconds("wait", maxWait)
	at := req.Address()
	id := req.EmptyBody()
	if err := req.Err(); err != nil {
		return err
	}
	run, replayed, err := s.Store.Compact(req.Ctx, at, id)
	if err != nil {
		return err
	}
	if wait > 0 {
		if run, err = s.waiter.Run(req, at, run, replayed, wait); err != nil {
			return err
		}
	}
	req.Replayed(id, replayed)
	return answerRun(req, run)
}

// answerRun answers with a run: 202 until it has ended.
func answerRun(req *request.Request, run session.Run) error {
	if run.State.Ended() {
		return req.JSON(http.StatusOK, runAnswer(run))
	}
	req.W.Header().Set("Location", "/v1/sessions/"+escapeID(req.SessionID)+"/runs/"+run.ID.String())
	req.W.Header()["Retry-After"] = request.RetryAfter
	return req.JSON(http.StatusAccepted, runAnswer(run))
}

// readRun handles GET /v1/sessions/{id}/runs/{run}.
func (s *Server) readRun(req *request.Request) error {
	req.Query()
	at := req.Address()
	id := req.PathID("run", errNoRun)
	if err := req.Err(); err != nil {
		return err
	}
	found, err := s.Store.Run(req.Ctx, at, id)
	return request.AnswerFound(req, found, orMissing(err, errNoRun), runAnswer)
}

// listRuns handles GET /v1/sessions/{id}/runs.
func (s *Server) listRuns(req *request.Request) error {
	at := req.Address()
	list := req.List("runs of " + at.ID)
	if err := req.Err(); err != nil {
		return err
	}
	found, err := s.Store.Runs(req.Ctx, at, list.Page())
	return request.AnswerList(list, found, err, runAnswer, func(last session.Run) request.Place {
		return request.Place{Order: last.TriggeredAt.UnixMicro(), ID: last.ID}
	})
}

// runAnswer returns a run with its times in UTC.
func runAnswer(run session.Run) session.Run {
	run.TriggeredAt = run.TriggeredAt.UTC()
	run.StartedAt, run.FinishedAt = utc(run.StartedAt), utc(run.FinishedAt)
	return run
}
