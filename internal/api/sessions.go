package api

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

func answerOf(s session.Session) protocol.Session {
	a := protocol.Session{
		ID: s.ID, Model: s.Model, WindowTokens: s.WindowTokens, WindowSource: s.WindowSource,
		OverheadTokens: s.OverheadTokens, Metadata: s.Metadata, Policy: s.Policy.Document,
		PolicyVersion: s.Policy.Version,
		LastSeq:       s.LastSeq, ContextTokens: s.ContextTokens, TotalTokens: s.TotalTokens, Checkpoint: s.Checkpoint,
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

// listedAnswer returns a session as lists have it, without its policy.
func listedAnswer(s session.Session) protocol.Session {
	a := answerOf(s)
	a.Policy = nil
	return a
}

// createSession handles POST /v1/sessions.
func (s *Server) createSession(req *request.Request) error {
	req.Query()
	body := req.Body()
	id := req.Idempotency()
	if err := req.Err(); err != nil {
		return err
	}
	set, err := s.readSettings(req, body, ingest.NewSession, session.Address{}, s.tenantLayers)
	if err != nil {
		return err
	}
	if set.ID == "" {
		set.ID = uuid.Must(uuid.NewV7()).String()
	}
	req.SessionID = set.ID
	empty := session.Append{Session: session.Address{Tenant: req.Tenant, ID: set.ID}, Idempotency: id}
	made, replayed, err := s.Store.CreateWith(req.Ctx, empty, set.Change)
	if err != nil {
		return err
	}
	req.Replayed(id, replayed)
	return answerCreated(req, made)
}

// putSession handles PUT /v1/sessions/{id}.
func (s *Server) putSession(req *request.Request) error {
	at, settings, id, err := s.settingsOf(req, ingest.NewSession, s.tenantLayers)
	if err != nil {
		return err
	}
	made, replayed, err := s.Store.Create(req.Ctx, at, settings, id)
	if err != nil {
		return err
	}
	req.Replayed(id, replayed)
	if !made.Created {
		return req.JSON(http.StatusOK, answerOf(made.Session))
	}
	return answerCreated(req, made.Session)
}

// readSession handles GET /v1/sessions/{id}.
func (s *Server) readSession(req *request.Request) error {
	req.Query()
	at := req.Address()
	if err := req.Err(); err != nil {
		return err
	}
	found, err := s.Store.Session(req.Ctx, at)
	return request.AnswerFound(req, found, err, answerOf)
}

// patchSession handles PATCH /v1/sessions/{id}.
func (s *Server) patchSession(req *request.Request) error {
	at, settings, id, err := s.settingsOf(req, ingest.OldSession, s.sessionLayers)
	if err != nil {
		return err
	}
	changed, replayed, err := s.Store.Update(req.Ctx, at, settings, id)
	if err != nil {
		return err
	}
	req.Replayed(id, replayed)
	return req.JSON(http.StatusOK, answerOf(changed))
}

// deleteSession handles DELETE /v1/sessions/{id}.
func (s *Server) deleteSession(req *request.Request) error {
	req.Query()
	at := req.Address()
	id := req.EmptyBody()
	if err := req.Err(); err != nil {
		return err
	}
	replayed, err := s.Store.Delete(req.Ctx, at, id)
	if err != nil {
		return err
	}
	req.Replayed(id, replayed)
	req.W.WriteHeader(http.StatusNoContent)
	return nil
}

// listSessions handles GET /v1/sessions.
func (s *Server) listSessions(req *request.Request) error {
	list := req.List("sessions")
	if err := req.Err(); err != nil {
		return err
	}
	found, err := s.Store.Sessions(req.Ctx, req.Tenant, list.Page())
	return request.AnswerList(list, found, err, listedAnswer, func(last session.Session) request.Place {
		return request.Place{Order: last.CreatedAt.UnixMicro(), ID: last.Key}
	})
}

// answerCreated answers with a new session.
func answerCreated(req *request.Request, made session.Session) error {
	req.W.Header().Set("Location", "/v1/sessions/"+escapeID(made.ID))
	return req.JSON(http.StatusCreated, answerOf(made))
}

// escapeID writes a session's id as one segment of a path.
func escapeID(id string) string { return url.PathEscape(id) }

// settingsOf reads a request that changes the session that its path names.
func (s *Server) settingsOf(req *request.Request, known []string, layers layersBelow) (
	at session.Address, change session.Change, key *session.Idempotency, err error,
) {
	req.Query()
	at = req.Address()
	body := req.Body()
	key = req.Idempotency()
	if err := req.Err(); err != nil {
		return at, change, nil, err
	}
	set, err := s.readSettings(req, body, known, at, layers)
	if err != nil {
		return at, change, nil, err
	}
	if set.ID != "" && set.ID != at.ID {
		err = session.Invalid("/id", request.InvalidRequest, "id is %q, but the path names %q: leave it out", set.ID,
			at.ID)
	}
	return at, set.Change, key, err
}

// readSettings decodes the settings of a session, and resolves their policy and window.
func (s *Server) readSettings(
	req *request.Request, body []byte, known []string, at session.Address, layers layersBelow,
) (*ingest.Settings, error) {
	set, err := ingest.DecodeSettings(body, known)
	if err != nil {
		return nil, err
	}
	if set.HasPolicy() {
		below, err := layers(req, at)
		if err != nil {
			return nil, err
		}
		set.ResolvePolicy(below)
	}
	set.ChangedBy = req.KeyDigest
	return set, set.Finish(s.Models)
}

// layersBelow reads the layers that a session's policy is put on top of, and its own that a change is merged into.
type layersBelow func(req *request.Request, at session.Address) (session.PolicyLayers, error)

// tenantLayers returns the layers of a new session.
func (s *Server) tenantLayers(req *request.Request, _ session.Address) (session.PolicyLayers, error) {
	p, err := s.Store.TenantPolicy(req.Ctx, req.Tenant)
	return session.PolicyLayers{Tenant: p.Patch}, err
}

// sessionLayers returns the layers of a session. If it does not exist, the store reports that later.
func (s *Server) sessionLayers(req *request.Request, at session.Address) (session.PolicyLayers, error) {
	found, err := s.Store.SessionPolicy(req.Ctx, at)
	if errors.Is(err, session.ErrNotFound) {
		return s.tenantLayers(req, at)
	}
	return found, err
}
