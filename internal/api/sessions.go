package api

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

func answerOf(s session.Session) protocol.Session {
	a := briefAnswer(s)
	a.Policy = s.Policy.Document
	return a
}

// briefAnswer returns a session without its policy, which would be most of the answer.
func briefAnswer(s session.Session) protocol.Session {
	a := listedAnswer(s)
	a.Warnings = ingest.WarningsOf(&s)
	return a
}

// includeParameter asks for what an answer has only if it is asked for.
const includeParameter = "include"

// readInclude returns how the request wants a session.
func readInclude(req *request.Request) (answer func(session.Session) protocol.Session, err error) {
	q := req.Query()
	if !q.Values.Has(includeParameter) {
		return briefAnswer, nil
	}
	q.Choice(includeParameter, "policy")
	return answerOf, req.Err()
}

// listedAnswer returns a session as lists have it, without its policy and warnings.
func listedAnswer(s session.Session) protocol.Session {
	a := protocol.Session{
		ID: s.ID, Model: s.Model, WindowTokens: s.WindowTokens, WindowSource: s.WindowSource,
		OverheadTokens: s.OverheadTokens, Metadata: s.Metadata, PolicyVersion: s.Policy.Version,
		LastSeq: s.LastSeq, ContextTokens: s.ContextTokens, TotalTokens: s.TotalTokens, Checkpoint: s.Checkpoint,
		Failing:     s.Failing,
		ForkedFrom:  s.Forked,
		Calibration: s.Calibration, UnseenTokens: s.UnseenTokens, CalibratedTokens: s.CalibratedTokens(),
		LastUsage: s.LastUsage, CreatedAt: s.CreatedAt, LastAppendAt: s.LastAppendAt,
	}
	if s.Expiry != nil {
		a.Retention, a.ExpiresAt = s.Expiry.Own, s.Expiry.ExpiresAt
	}
	if s.Format != "" {
		a.Format = &s.Format
	}
	return a
}

// createSession handles POST /v1/sessions.
func (s *Server) createSession(req *request.Request) error {
	answer, err := readInclude(req)
	if err != nil {
		return err
	}
	set, err := s.readSettings(req, ingest.NewSession, s.tenantLayers)
	if err != nil {
		return err
	}
	if set.ID == "" {
		set.ID = uuid.Must(uuid.NewV7()).String()
	}
	req.SessionID = set.ID
	at := session.Address{Tenant: req.Tenant, ID: set.ID}
	empty := session.Append{Session: at, Idempotency: req.Idempotency()}
	made, replayed, err := req.Store.CreateWith(req.Ctx, empty, set.Change)
	if err != nil {
		return err
	}
	req.Replayed(replayed)
	return answerCreated(req, answer(made))
}

// putSession handles PUT /v1/sessions/{id}.
func (s *Server) putSession(req *request.Request) error {
	answer, err := readInclude(req)
	if err != nil {
		return err
	}
	set, err := s.readSettings(req, ingest.NewSession, s.tenantLayers)
	if err != nil {
		return err
	}
	made, replayed, err := req.Store.Create(req.Ctx, req.Address(), set.Change, req.Idempotency())
	if err != nil {
		return err
	}
	req.Replayed(replayed)
	if !made.Created {
		return req.JSON(http.StatusOK, answer(made.Session))
	}
	return answerCreated(req, answer(made.Session))
}

// readSession handles GET /v1/sessions/{id}.
func (s *Server) readSession(req *request.Request) error {
	answer, err := readInclude(req)
	if err != nil {
		return err
	}
	found, err := req.Store.Session(req.Ctx, req.Address())
	return request.AnswerFound(req, found, err, answer)
}

// patchSession handles PATCH /v1/sessions/{id}.
func (s *Server) patchSession(req *request.Request) error {
	answer, err := readInclude(req)
	if err != nil {
		return err
	}
	set, err := s.readSettings(req, ingest.OldSession, s.sessionLayers)
	if err != nil {
		return err
	}
	changed, replayed, err := req.Store.Update(req.Ctx, req.Address(), set.Change, req.Idempotency())
	return request.AnswerChanged(req, changed, replayed, err, answer)
}

// deleteSession handles DELETE /v1/sessions/{id}.
func (s *Server) deleteSession(req *request.Request) error {
	done, err := req.Store.Delete(req.Ctx, req.Address(), req.Idempotency())
	if err != nil {
		return err
	}
	req.Replayed(done.Replayed)
	if done.Erasure != uuid.Nil {
		req.W.Header().Set("Location", erasurePath(done.Erasure))
	}
	req.W.WriteHeader(http.StatusNoContent)
	return nil
}

// answerCreated answers with a new session.
func answerCreated(req *request.Request, made protocol.Session) error {
	req.W.Header().Set("Location", "/v1/sessions/"+escapeID(made.ID))
	return req.JSON(http.StatusCreated, made)
}

// escapeID writes a session's id as one segment of a path.
func escapeID(id string) string { return url.PathEscape(id) }

// readSettings decodes the settings of a session, and resolves their policy and window.
func (s *Server) readSettings(req *request.Request, known []string, layers layersBelow) (*ingest.Settings, error) {
	set, err := ingest.DecodeSettings(req.Body(), known)
	if err == nil {
		err = s.resolveSettings(req, set, layers)
	}
	if err != nil {
		return nil, err
	}
	if named := req.Address().ID; named != "" && set.ID != "" && set.ID != named {
		return nil, session.Invalid("/id", request.InvalidRequest, "id is %q, but the path names %q: leave it out",
			set.ID, named)
	}
	return set, nil
}

// resolveSettings checks that the caller may set what the settings set, and resolves their policy and window.
func (s *Server) resolveSettings(req *request.Request, set *ingest.Settings, layers layersBelow) error {
	if set.HasPolicy() {
		if !req.Caller.May(session.ScopePolicy) {
			return lacks(session.ScopePolicy)
		}
		below, err := layers(req)
		if err != nil {
			return err
		}
		set.ResolvePolicy(below, s.writers)
	}
	if set.ChangesRetention() && !req.Caller.May(session.ScopeErase) {
		return lacks(session.ScopeErase)
	}
	set.ChangedBy = req.KeyDigest
	return set.Finish(req.Query().Flag(strictParameter))
}

// layersBelow reads the layers that a session's policy is put on top of, and its own that a change is merged into.
type layersBelow func(*request.Request) (session.PolicyLayers, error)

// tenantLayers returns the layers of a new session.
func (s *Server) tenantLayers(req *request.Request) (session.PolicyLayers, error) {
	p, err := req.Store.TenantPolicy(req.Ctx, req.Tenant)
	return session.PolicyLayers{Tenant: p.Patch}, err
}

// sessionLayers returns the layers of a session. If it does not exist, the store reports that later.
func (s *Server) sessionLayers(req *request.Request) (session.PolicyLayers, error) {
	found, err := req.Store.SessionPolicy(req.Ctx, req.Address())
	if errors.Is(err, session.ErrNotFound) {
		return s.tenantLayers(req)
	}
	return found, err
}
