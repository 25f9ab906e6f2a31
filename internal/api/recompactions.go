package api

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// createRecompaction is POST /v1/admin/recompactions.
func (s *Server) createRecompaction(x *exchange) error {
	if err := x.query().err(); err != nil {
		return err
	}
	body, err := readBody(x)
	if err != nil {
		return err
	}
	defer body.free()
	id, err := x.idempotency(body.b)
	if err != nil {
		return err
	}
	r, err := decodeRecompaction(body.b, func() (session.Policy, error) { return s.Store.TenantPolicy(x.ctx, x.tenant) })
	if err != nil {
		return err
	}
	if r.tenant != "" && r.tenant != x.tenant.String() {
		return fmt.Errorf("recompaction of tenant %s: %w", r.tenant, session.ErrForbidden)
	}
	token := r.confirmToken(x.tenant)
	switch {
	case r.dryRun:
		return s.dryRun(x, r, token)
	case r.confirm != "" && r.confirm != token:
		return session.Invalid("/confirm_token", invalidRequest, "the token is of a dry run with another filter, policy or engine: make a dry run of this body, then send its confirm_token")
	}
	begun, replayed, err := s.Store.CreateRecompaction(x.ctx, x.tenant, session.Recompaction{Filter: r.filter, Policy: r.policy, MaxRunning: r.maxRunning}, id)
	if err != nil {
		return err
	}
	x.replayed(id, replayed)
	return x.recompaction(begun)
}

// recompaction answers with a recompaction: one that has not ended is accepted only.
func (x *exchange) recompaction(r session.Recompaction) error {
	if r.State.Ended() {
		return x.json(http.StatusOK, recompactionOf(r))
	}
	x.w.Header().Set("Location", "/v1/admin/recompactions/"+r.ID.String())
	x.w.Header()["Retry-After"] = retryAfter
	return x.json(http.StatusAccepted, recompactionOf(r))
}

func recompactionOf(r session.Recompaction) protocol.Recompaction {
	return protocol.Recompaction{
		ID: r.ID, State: string(r.State), Filter: protocol.RecompactionFilter(r.Filter), Policy: r.Policy,
		From: string(compactor.FromLog), MaxRunning: r.MaxRunning,
		Progress: protocol.RecompactionProgress{
			Total: r.Total, Done: r.Done(), Running: r.Running,
			Changed: r.Changed, Unchanged: r.Unchanged, Failed: r.Failed, Skipped: r.Skipped,
		},
		TokensBefore: r.TokensBefore, TokensAfter: r.TokensAfter, Error: r.Error, Errors: sessionErrors(r.Errors),
		CreatedAt: r.CreatedAt.UTC(), StartedAt: utc(r.StartedAt), FinishedAt: utc(r.FinishedAt),
	}
}

// sessionErrors keeps nil, which a list's entries have, apart from none.
func sessionErrors(found []session.RecompactionError) (list []protocol.SessionError) {
	if found != nil {
		list = make([]protocol.SessionError, len(found))
	}
	for i, e := range found {
		list[i] = protocol.SessionError(e)
	}
	return list
}

// recompactionID is the recompaction that the path names.
func (x *exchange) recompactionID() (uuid.UUID, error) {
	id, err := uuid.Parse(x.param("recompaction"))
	if err != nil {
		return id, errNoRecompaction
	}
	return id, nil
}

func recompactionMissing(err error) error {
	if errors.Is(err, session.ErrNotFound) {
		return errNoRecompaction
	}
	return err
}

// readRecompaction is GET /v1/admin/recompactions/{recompaction}.
func (s *Server) readRecompaction(x *exchange) error {
	if err := x.query().err(); err != nil {
		return err
	}
	id, err := x.recompactionID()
	if err != nil {
		return err
	}
	found, err := s.Store.Recompaction(x.ctx, x.tenant, id)
	if err != nil {
		return recompactionMissing(err)
	}
	return x.json(http.StatusOK, recompactionOf(found))
}

// listRecompactions is GET /v1/admin/recompactions.
func (s *Server) listRecompactions(x *exchange) error {
	list := listOf(x, "recompactions")
	page, err := list.page()
	if err != nil {
		return err
	}
	found, err := s.Store.Recompactions(x.ctx, x.tenant, page)
	if err != nil {
		return err
	}
	return answerList(list, found, recompactionOf, func(last session.Recompaction) place { return place{last.CreatedAt.UnixMicro(), last.ID} })
}

// listRecompactionSessions is GET /v1/admin/recompactions/{recompaction}/sessions.
func (s *Server) listRecompactionSessions(x *exchange) error {
	id, err := x.recompactionID()
	if err != nil {
		return err
	}
	list := listOf(x, "sessions of recompaction "+id.String())
	page, err := list.page()
	if err != nil {
		return err
	}
	found, err := s.Store.RecompactionSessions(x.ctx, x.tenant, id, page)
	if err != nil {
		return recompactionMissing(err)
	}
	return answerList(list, found, func(r session.RecompactionSession) protocol.RecompactionSession {
		return protocol.RecompactionSession{
			Session: r.Session, State: r.State, Failures: r.Failures, Run: r.Run,
			TokensBefore: r.TokensBefore, TokensAfter: r.TokensAfter, Error: r.Error, FinishedAt: utc(r.FinishedAt),
		}
	}, func(last session.RecompactionSession) place { return place{id: last.Key} })
}

// cancelRecompaction is POST /v1/admin/recompactions/{recompaction}/cancel.
func (s *Server) cancelRecompaction(x *exchange) error {
	if err := x.query().err(); err != nil {
		return err
	}
	key, err := x.emptyBody()
	if err != nil {
		return err
	}
	id, err := x.recompactionID()
	if err != nil {
		return err
	}
	found, replayed, err := s.Store.CancelRecompaction(x.ctx, x.tenant, id, key)
	if err != nil {
		return recompactionMissing(err)
	}
	x.replayed(key, replayed)
	return x.recompaction(found)
}
