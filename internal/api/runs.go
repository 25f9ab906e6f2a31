package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/session"
)

// maxWait is how many seconds a caller can wait for a compaction.
const maxWait = 60

// compactSession is POST /v1/sessions/{id}/compact.
func (s *Server) compactSession(req *request.Request) error {
	q := req.Query("wait")
	wait := time.Duration(q.Integer("wait", 0, maxWait, 0)) * time.Second
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
		w := waiter{Request: req, server: s, at: at, up: time.Now().Add(wait)}
		if run, err = w.wait(run, replayed); err != nil {
			return err
		}
	}
	req.Replayed(id, replayed)
	return answerRun(req, run)
}

// run answers with a run: one that has not ended is accepted only.
func answerRun(req *request.Request, run session.Run) error {
	if run.State.Ended() {
		return req.JSON(http.StatusOK, runAnswer(run))
	}
	req.W.Header().Set("Location", "/v1/sessions/"+escapeID(req.SessionID)+"/runs/"+run.ID.String())
	req.W.Header()["Retry-After"] = request.RetryAfter
	return req.JSON(http.StatusAccepted, runAnswer(run))
}

// waiter is a caller who waits for a compaction.
type waiter struct {
	*request.Request
	server *Server
	at     session.Address
	up     time.Time // when it has waited long enough
}

// wait answers run when it has ended, or as it is when the time is up. A run that was under way already may have begun
// before the newest messages: if it has, wait asks once more and answers the run after it.
func (w *waiter) wait(run session.Run, replayed bool) (session.Run, error) {
	ctx, cancel := context.WithDeadline(w.R.Context(), w.up.Add(requestTimeout))
	defer cancel()
	w.WriteBy(w.up.Add(requestTimeout))
	if run.State != session.RunRunning || replayed {
		return w.await(ctx, run)
	}
	found, err := w.server.Store.Session(ctx, w.at)
	if err != nil {
		return run, err
	}
	run, err = w.await(ctx, run)
	if err != nil || !run.State.Ended() || run.Through != nil && *run.Through >= found.LastSeq || !time.Now().Before(w.up) {
		return run, err
	}
	if run, _, err = w.server.Store.Compact(ctx, w.at, nil); err != nil {
		return run, err
	}
	return w.await(ctx, run)
}

// await looks at a run until it ends or the time is up. It looks often at first, because most compactions are quick.
func (w *waiter) await(ctx context.Context, run session.Run) (session.Run, error) {
	up := time.After(time.Until(w.up))
	for pause := 10 * time.Millisecond; !run.State.Ended(); pause = min(pause*3/2, 250*time.Millisecond) {
		select {
		case <-time.After(pause):
			if w.server.draining.Load() {
				return run, nil // the process would wait for this request
			}
		case <-up:
			return run, nil
		case <-ctx.Done():
			return run, ctx.Err()
		}
		var err error
		if run, err = w.server.Store.Run(ctx, w.at, run.ID); err != nil {
			return run, err
		}
	}
	return run, nil
}

// readRun is GET /v1/sessions/{id}/runs/{run}.
func (s *Server) readRun(req *request.Request) error {
	req.Query()
	at := req.Address()
	if err := req.Err(); err != nil {
		return err
	}
	id, err := uuid.Parse(req.Param("run"))
	if err != nil {
		return errNoRun
	}
	run, err := s.Store.Run(req.Ctx, at, id)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return errNoRun
	case err != nil:
		return err
	}
	return req.JSON(http.StatusOK, runAnswer(run))
}

// listRuns is GET /v1/sessions/{id}/runs.
func (s *Server) listRuns(req *request.Request) error {
	at := req.Address()
	list := req.List("runs of " + at.ID)
	if err := req.Err(); err != nil {
		return err
	}
	found, err := s.Store.Runs(req.Ctx, at, list.Page())
	if err != nil {
		return err
	}
	return request.AnswerList(list, found, runAnswer, func(last session.Run) request.Place {
		return request.Place{Order: last.TriggeredAt.UnixMicro(), ID: last.ID}
	})
}

// runAnswer is a run as callers see it.
func runAnswer(run session.Run) session.Run {
	run.TriggeredAt = run.TriggeredAt.UTC()
	run.StartedAt, run.FinishedAt = utc(run.StartedAt), utc(run.FinishedAt)
	return run
}
