package api

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// The ranges of a rollout's settings.
const (
	maxGuardFactor = 1000
	maxGuarded     = 1_000_000
	maxMinSessions = 1_000_000
)

var (
	rolloutMembers  = []string{"policy", "version", "per_mille", "min_sessions", "guard"}
	guardMembers    = []string{"factor", "min_compactions"}
	rolloutChanges  = []string{"per_mille", "min_sessions", "guard"}
	rolloutBackings = []string{"roll_back"}
)

// rolloutRequest is the body of POST /v1/policy/rollouts.
type rolloutRequest struct {
	request.Document
	start session.RolloutStart
	layer json.RawMessage
}

// startRollout handles POST /v1/policy/rollouts.
func (s *Server) startRollout(req *request.Request) error {
	r, err := decodeRollout(req.Body())
	if err != nil {
		return err
	}
	r.start.ChangedBy, r.start.Rebase = req.KeyDigest, ingest.Rebase
	r.start.Idempotency = req.Idempotency()
	if r.start.Expected, err = ifMatch(req); err != nil {
		return err
	}
	r.start.Edit = func(_, from json.RawMessage) (session.Policy, error) {
		if from != nil {
			return s.writers.ResolveStored(from, nil, "")
		}
		return s.writers.ResolveStored(r.layer, nil, "/policy")
	}
	made, replayed, err := s.Store.StartRollout(req.Ctx, req.Tenant, r.start)
	if err != nil {
		return err
	}
	req.Replayed(replayed)
	req.W.Header().Set("Location", "/v1/policy/rollouts/"+made.ID.String())
	return answerRollout(req, http.StatusCreated, made)
}

// answerRollout answers with a rollout, and its revision as the ETag.
func answerRollout(req *request.Request, status int, r session.Rollout) error {
	setRevision(req, r)
	return req.JSON(status, r)
}

func setRevision(req *request.Request, r session.Rollout) {
	req.W.Header().Set("Etag", strconv.Quote(strconv.Itoa(r.Revision)))
}

func decodeRollout(body []byte) (*rolloutRequest, error) {
	d, err := request.Open(body)
	if err != nil {
		return nil, err
	}
	r := &rolloutRequest{Document: *d}
	for name, value := range r.Fields(rolloutMembers) {
		r.set(name, value)
	}
	if r.start.PerMille == 0 && !r.Has("/per_mille") {
		r.Wrong("/per_mille", request.InvalidRequest, "is missing: it is the share of sessions, in thousandths")
	}
	if (r.layer == nil) == (r.start.From == 0) && len(r.Problems) == 0 {
		r.Wrong("/policy", request.InvalidRequest, "send either policy, a new layer, or version, that of an old one")
	}
	return r, r.Err()
}

func (r *rolloutRequest) set(name string, value rawjson.Span) {
	switch name {
	case "policy":
		if r.Data[value.Start] != '{' {
			r.Wrong("/policy", request.InvalidRequest, "must be an object, not %s", r.Kind(value))
			return
		}
		r.layer = bytes.Clone(value.Of(r.Data))
	case "version":
		r.start.From = int(r.Integer("/version", value, 1, math.MaxInt32))
	case "per_mille":
		r.start.PerMille = int(r.Integer("/per_mille", value, 1, session.MaxShare))
	case "min_sessions":
		r.start.MinSessions = int(r.Integer("/min_sessions", value, 0, maxMinSessions))
	case "guard":
		r.start.Guard = guardOf(&r.Document, value)
	}
}

// guardOf reads when a rollout goes back by itself.
func guardOf(d *request.Document, value rawjson.Span) *session.RolloutGuard {
	g := &session.RolloutGuard{Factor: 2, MinCompactions: 100}
	for name, member := range d.Members("/guard", value, guardMembers) {
		switch name {
		case "factor":
			factor, err := strconv.ParseFloat(string(member.Of(d.Data)), 64)
			if err != nil || factor < 1 || factor > maxGuardFactor {
				d.Wrong("/guard/factor", request.InvalidRequest, "must be a number from 1 to %d", maxGuardFactor)
			}
			g.Factor = factor
		case "min_compactions":
			g.MinCompactions = d.Integer("/guard/min_compactions", member, 1, maxGuarded)
		}
	}
	return g
}

// listRollouts handles GET /v1/policy/rollouts.
func (s *Server) listRollouts(req *request.Request) error {
	find := func(l *request.List) ([]session.Rollout, error) {
		return s.Store.Rollouts(req.Ctx, req.Tenant, l.Page())
	}
	place := func(last session.Rollout) request.Place { return request.PlaceIn(last.StartedAt, last.ID) }
	return request.AnswerList(req, "rollouts", find, request.AsIs, place)
}

// readRollout handles GET /v1/policy/rollouts/{rollout}.
func (s *Server) readRollout(req *request.Request) error {
	found, err := s.Store.Rollout(req.Ctx, req.Tenant, req.PathID("rollout"))
	if err == nil {
		setRevision(req, found.Rollout)
	}
	return request.AnswerFound(req, found, err, rolloutOf)
}

func rolloutOf(r postgres.RolloutFound) protocol.Rollout {
	a := protocol.Rollout{Rollout: r.Rollout, Comparison: r.Comparison, ReplayReport: r.Report}
	if r.Replay != nil {
		a.Replay = new(replayOf(*r.Replay))
	}
	return a
}

// A rolloutStep changes a rollout in the store.
type rolloutStep func(
	*postgres.Store, *request.Request, uuid.UUID, session.RolloutChange,
) (session.Rollout, bool, error)

// stepRollout returns the handler of a step, whose body decode reads.
func (s *Server) stepRollout(decode func(*request.Document, *session.RolloutChange), step rolloutStep) handler {
	return func(req *request.Request) error {
		change := session.RolloutChange{Rebase: ingest.Rebase, Idempotency: req.Idempotency()}
		var err error
		if change.Expected, err = ifMatch(req); err != nil {
			return err
		}
		if body := req.Body(); decode != nil && len(body) > 0 {
			d, err := request.Open(body)
			if err != nil {
				return err
			}
			decode(d, &change)
			if err := d.Err(); err != nil {
				return err
			}
		}
		if missing := req.Caller.Lacks(session.ScopeCompact); change.RollBack && missing != "" {
			return lacks(missing)
		}
		changed, replayed, err := step(s.Store, req, req.PathID("rollout"), change)
		if err != nil {
			return err
		}
		req.Replayed(replayed)
		return answerRollout(req, http.StatusOK, changed)
	}
}

// changeRollout handles PATCH /v1/policy/rollouts/{rollout}.
func (s *Server) changeRollout() handler {
	decode := func(d *request.Document, change *session.RolloutChange) {
		for name, value := range d.Fields(rolloutChanges) {
			switch name {
			case "per_mille":
				change.PerMille = int(d.Integer("/per_mille", value, 1, session.MaxShare))
			case "min_sessions":
				change.MinSessions = new(int(d.Integer("/min_sessions", value, 0, maxMinSessions)))
			case "guard":
				if change.NoGuard = d.IsNull(value); !change.NoGuard {
					change.Guard = guardOf(d, value)
				}
			}
		}
	}
	return s.stepRollout(decode, func(store *postgres.Store, req *request.Request, id uuid.UUID,
		change session.RolloutChange) (session.Rollout, bool, error) {
		return store.ChangeRollout(req.Ctx, req.Tenant, id, change)
	})
}

// promoteRollout handles POST /v1/policy/rollouts/{rollout}/promote.
func (s *Server) promoteRollout() handler {
	return s.stepRollout(nil, func(store *postgres.Store, req *request.Request, id uuid.UUID,
		change session.RolloutChange) (session.Rollout, bool, error) {
		return store.PromoteRollout(req.Ctx, req.Tenant, id, change)
	})
}

// endRolloutBack handles POST /v1/policy/rollouts/{rollout}/back.
func (s *Server) endRolloutBack() handler {
	decode := func(d *request.Document, change *session.RolloutChange) {
		for name, value := range d.Fields(rolloutBackings) {
			if name == "roll_back" {
				change.RollBack = d.Boolean("/roll_back", value)
			}
		}
	}
	return s.stepRollout(decode, func(store *postgres.Store, req *request.Request, id uuid.UUID,
		change session.RolloutChange) (session.Rollout, bool, error) {
		return store.EndRolloutBack(req.Ctx, req.Tenant, id, change)
	})
}
