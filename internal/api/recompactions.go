package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/postgres"
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
	begun, replayed, err := s.Store.CreateRecompaction(x.ctx, x.tenant, postgres.Recompaction{Filter: r.filter, Policy: r.policy, MaxRunning: r.maxRunning}, id)
	if err != nil {
		return err
	}
	x.replayed(id, replayed)
	return x.recompaction(begun)
}

// recompaction answers with a recompaction: one that has not ended is accepted only.
func (x *exchange) recompaction(r postgres.Recompaction) error {
	if r.State.Ended() {
		return x.json(http.StatusOK, recompactionOf(r))
	}
	x.w.Header().Set("Location", "/v1/admin/recompactions/"+r.ID.String())
	x.w.Header()["Retry-After"] = retryAfter
	return x.json(http.StatusAccepted, recompactionOf(r))
}

// recompactionAnswer is a recompaction as callers see it.
type recompactionAnswer struct {
	ID           uuid.UUID                    `json:"id"`
	State        postgres.RecompactionState   `json:"state"`
	Filter       postgres.RecompactionFilter  `json:"filter"`
	Policy       json.RawMessage              `json:"policy,omitempty"` // not there: each session's own
	From         compactor.From               `json:"from"`
	MaxRunning   int                          `json:"max_running"`
	Progress     progressAnswer               `json:"progress"`
	TokensBefore int64                        `json:"tokens_before"`
	TokensAfter  int64                        `json:"tokens_after"`
	Error        *string                      `json:"error"`
	Errors       []postgres.RecompactionError `json:"errors,omitzero"` // lists leave them out
	CreatedAt    time.Time                    `json:"created_at"`
	StartedAt    *time.Time                   `json:"started_at"`
	FinishedAt   *time.Time                   `json:"finished_at"`
}

// progressAnswer counts the sessions of a recompaction. done are those that will not be touched any more.
type progressAnswer struct {
	Total     int64 `json:"total"`
	Done      int64 `json:"done"`
	Running   int64 `json:"running"`
	Changed   int64 `json:"changed"`
	Unchanged int64 `json:"unchanged"`
	Failed    int64 `json:"failed"`
	Skipped   int64 `json:"skipped"`
}

func recompactionOf(r postgres.Recompaction) recompactionAnswer {
	return recompactionAnswer{
		ID: r.ID, State: r.State, Filter: r.Filter, Policy: r.Policy, From: compactor.FromLog, MaxRunning: r.MaxRunning,
		Progress: progressAnswer{
			Total: r.Total, Done: r.Done(), Running: r.Running,
			Changed: r.Changed, Unchanged: r.Unchanged, Failed: r.Failed, Skipped: r.Skipped,
		},
		TokensBefore: r.TokensBefore, TokensAfter: r.TokensAfter, Error: r.Error, Errors: r.Errors,
		CreatedAt: r.CreatedAt.UTC(), StartedAt: utc(r.StartedAt), FinishedAt: utc(r.FinishedAt),
	}
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
	return answerList(list, found, recompactionOf, func(last postgres.Recompaction) place { return place{last.CreatedAt.UnixMicro(), last.ID} })
}

// recompactionSession is a session of a recompaction as callers see it.
type recompactionSession struct {
	Session      *string    `json:"session"` // null once it is erased
	State        string     `json:"state"`
	Failures     int        `json:"failures"`
	Run          *uuid.UUID `json:"run"`
	TokensBefore *int64     `json:"tokens_before"`
	TokensAfter  *int64     `json:"tokens_after"`
	Error        *string    `json:"error"`
	FinishedAt   *time.Time `json:"finished_at"`
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
	return answerList(list, found, func(r postgres.RecompactionSession) recompactionSession {
		return recompactionSession{r.Session, r.State, r.Failures, r.Run, r.TokensBefore, r.TokensAfter, r.Error, utc(r.FinishedAt)}
	}, func(last postgres.RecompactionSession) place { return place{id: last.Key} })
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
