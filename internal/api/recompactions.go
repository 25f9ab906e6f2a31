package api

import (
	"fmt"
	"net/http"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// createRecompaction handles POST /v1/admin/recompactions.
func (s *Server) createRecompaction(req *request.Request) error {
	r, err := s.readRecompactionRequest(req, req.Body())
	if err != nil {
		return err
	}
	if r.tenant != "" && r.tenant != req.Tenant.String() {
		return fmt.Errorf("recompaction of tenant %s: %w", r.tenant, session.ErrForbidden)
	}
	token := r.confirmToken(req.Tenant)
	switch {
	case r.dryRun:
		return s.dryRun(req, r, token)
	case r.confirm != "" && r.confirm != token:
		return session.Invalid("/confirm_token", request.InvalidRequest,
			"the token is of a dry run with another filter, policy or engine: make a dry run of this body, then "+
				"send its confirm_token")
	}
	begun, replayed, err := s.Store.CreateRecompaction(req.Ctx, req.Tenant, session.Recompaction{Filter: r.filter,
		Policy: r.policy, MaxRunning: r.maxRunning}, req.Idempotency())
	if err != nil {
		return err
	}
	req.Replayed(replayed)
	return answerRecompaction(req, begun)
}

func (s *Server) readRecompactionRequest(req *request.Request, body []byte) (*recompactionRequest, error) {
	r, err := decodeRecompaction(body)
	if err != nil {
		return nil, err
	}
	if r.policy != nil {
		tenant, err := s.Store.TenantPolicy(req.Ctx, req.Tenant)
		if err != nil {
			return nil, err
		}
		r.resolve(tenant)
	}
	return r, r.Err()
}

// answerRecompaction answers with a recompaction: 202 until it has ended.
func answerRecompaction(req *request.Request, r session.Recompaction) error {
	if r.State.Ended() {
		return req.JSON(http.StatusOK, recompactionOf(r))
	}
	req.W.Header().Set("Location", "/v1/admin/recompactions/"+r.ID.String())
	req.W.Header()["Retry-After"] = request.RetryAfter
	return req.JSON(http.StatusAccepted, recompactionOf(r))
}

func recompactionOf(r session.Recompaction) protocol.Recompaction {
	return protocol.Recompaction{
		ID: r.ID, State: r.State, Filter: r.Filter, Policy: r.Policy,
		From: string(compactor.FromLog), MaxRunning: r.MaxRunning,
		Progress: protocol.RecompactionProgress{
			Total: r.Total, Done: r.Done(), Running: r.Running,
			Changed: r.Changed, Unchanged: r.Unchanged, Failed: r.Failed, Skipped: r.Skipped,
		},
		TokensBefore: r.TokensBefore, TokensAfter: r.TokensAfter, Error: r.Error, Errors: r.Errors,
		CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
	}
}

// readRecompaction handles GET /v1/admin/recompactions/{recompaction}.
func (s *Server) readRecompaction(req *request.Request) error {
	found, err := s.Store.Recompaction(req.Ctx, req.Tenant, req.PathID("recompaction"))
	return request.AnswerFound(req, found, err, recompactionOf)
}

// listRecompactions handles GET /v1/admin/recompactions.
func (s *Server) listRecompactions(req *request.Request) error {
	find := func(l *request.List) ([]session.Recompaction, error) {
		return s.Store.Recompactions(req.Ctx, req.Tenant, l.Page())
	}
	place := func(last session.Recompaction) request.Place { return request.PlaceIn(last.CreatedAt, last.ID) }
	return request.AnswerList(req, "recompactions", find, recompactionOf, place)
}

// listRecompactionSessions handles GET /v1/admin/recompactions/{recompaction}/sessions.
func (s *Server) listRecompactionSessions(req *request.Request) error {
	id := req.PathID("recompaction")
	find := func(l *request.List) ([]session.RecompactionSession, error) {
		return s.Store.RecompactionSessions(req.Ctx, req.Tenant, id, l.Page())
	}
	place := func(last session.RecompactionSession) request.Place { return request.Place{ID: last.Key} }
	return request.AnswerList(req, "sessions of recompaction "+id.String(), find, request.AsIs, place)
}

// cancelRecompaction handles POST /v1/admin/recompactions/{recompaction}/cancel.
func (s *Server) cancelRecompaction(req *request.Request) error {
	id, key := req.PathID("recompaction"), req.Idempotency()
	found, replayed, err := s.Store.CancelRecompaction(req.Ctx, req.Tenant, id, key)
	if err != nil {
		return err
	}
	req.Replayed(replayed)
	return answerRecompaction(req, found)
}
