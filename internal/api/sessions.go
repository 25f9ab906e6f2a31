package api

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

func answerOf(s session.Session) protocol.Session {
	a := protocol.Session{
		ID: s.ID, Model: s.Model, WindowTokens: s.WindowTokens, WindowSource: s.WindowSource, OverheadTokens: s.OverheadTokens, Metadata: s.Metadata, Policy: s.Policy.Document, PolicyVersion: s.Policy.Version,
		LastSeq: s.LastSeq, ContextTokens: s.ContextTokens, TotalTokens: s.TotalTokens, Checkpoint: s.Checkpoint,
		Calibration: s.Calibration, CalibratedTokens: s.CalibratedTokens(), LastUsage: s.LastUsage,
		CreatedAt: s.CreatedAt.UTC(), LastAppendAt: utc(s.LastAppendAt),
	}
	if s.Format != "" {
		a.Format = &s.Format
	}
	return a
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	in := t.UTC()
	return &in
}

// listedAnswer is a session in a list.
func listedAnswer(s session.Session) protocol.Session {
	a := answerOf(s)
	a.Policy = nil
	return a
}

// createSession is POST /v1/sessions.
func (s *Server) createSession(x *exchange) error {
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
	settings, err := decodeSettings(body.b, newSession, s.Models, func() (session.PolicyLayers, error) { return s.tenantLayers(x, session.Address{}) })
	if err != nil {
		return err
	}
	settings.ChangedBy = x.key
	if settings.id == "" {
		settings.id = uuid.Must(uuid.NewV7()).String()
	}
	x.session = settings.id
	made, replayed, err := s.Store.CreateNew(x.ctx, session.Address{Tenant: x.tenant, ID: settings.id}, settings.Change, id)
	if err != nil {
		return err
	}
	x.replayed(id, replayed)
	return x.created(made)
}

// putSession is PUT /v1/sessions/{id}.
func (s *Server) putSession(x *exchange) error {
	at, settings, id, err := x.settings(namedSession, s.Models, s.tenantLayers)
	if err != nil {
		return err
	}
	made, replayed, err := s.Store.Create(x.ctx, at, settings, id)
	if err != nil {
		return err
	}
	x.replayed(id, replayed)
	if !made.Created {
		return x.json(http.StatusOK, answerOf(made.Session))
	}
	return x.created(made.Session)
}

// readSession is GET /v1/sessions/{id}.
func (s *Server) readSession(x *exchange) error {
	at, err := x.addressAlone()
	if err != nil {
		return err
	}
	found, err := s.Store.Session(x.ctx, at)
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, answerOf(found))
}

// patchSession is PATCH /v1/sessions/{id}.
func (s *Server) patchSession(x *exchange) error {
	at, settings, id, err := x.settings(oldSession, s.Models, s.sessionLayers)
	if err != nil {
		return err
	}
	changed, replayed, err := s.Store.Update(x.ctx, at, settings, id)
	if err != nil {
		return err
	}
	x.replayed(id, replayed)
	return x.json(http.StatusOK, answerOf(changed))
}

// deleteSession is DELETE /v1/sessions/{id}.
func (s *Server) deleteSession(x *exchange) error {
	at, err := x.addressAlone()
	if err != nil {
		return err
	}
	id, err := x.emptyBody()
	if err != nil {
		return err
	}
	replayed, err := s.Store.Delete(x.ctx, at, id)
	if err != nil {
		return err
	}
	x.replayed(id, replayed)
	x.w.WriteHeader(http.StatusNoContent)
	return nil
}

// listSessions is GET /v1/sessions.
func (s *Server) listSessions(x *exchange) error {
	list := listOf(x, "sessions")
	page, err := list.page()
	if err != nil {
		return err
	}
	found, err := s.Store.Sessions(x.ctx, x.tenant, page)
	if err != nil {
		return err
	}
	return answerList(list, found, listedAnswer, func(last session.Session) place { return place{last.CreatedAt.UnixMicro(), last.Key} })
}

// addressAlone is the session that the path names, for a route that has no parameters.
func (x *exchange) addressAlone() (session.Address, error) {
	if err := x.query().err(); err != nil {
		return session.Address{}, err
	}
	return x.address()
}

// created answers with a session that is new.
func (x *exchange) created(made session.Session) error {
	x.w.Header().Set("Location", "/v1/sessions/"+escapeID(made.ID))
	return x.json(http.StatusCreated, answerOf(made))
}
