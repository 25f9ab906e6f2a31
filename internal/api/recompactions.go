package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/postgres"
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
	begun, replayed, err := req.Store.CreateRecompaction(req.Ctx, req.Tenant, r.recompaction(), req.Idempotency())
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
	if r.policy != nil { // whether it fits a session's own policy shows when that session is compacted
		below, err := s.tenantLayers(req)
		if err != nil {
			return nil, err
		}
		ingest.PolicyOver(&r.Document, r.member, below, s.writers)
	}
	if r.ask && r.policy != nil && !r.dryRun {
		r.Wrong("/ask", request.InvalidRequest, "%s", askBesidePolicy)
	}
	return r, r.Err()
}

// askBesidePolicy is what is wrong with asking models under a policy that is not the sessions'.
const askBesidePolicy = "models are asked under the sessions' own policies only, and policy changes them for this " +
	"recompaction: leave policy out, or ask out"

func answerRecompaction(req *request.Request, r session.Recompaction) error {
	return request.AnswerWork(req, r.State.Ended(), "/v1/admin/recompactions/"+r.ID.String(), recompactionOf(r))
}

func recompactionOf(r session.Recompaction) protocol.Recompaction {
	return protocol.Recompaction{
		ID: r.ID, State: r.State, Filter: r.Filter, Policy: r.Policy,
		From: string(compactor.FromLog), MaxRunning: r.MaxRunning, PerMinute: r.PerMinute, StartAt: r.StartAt,
		Hours: r.Hours, NextStartAt: r.NextStartAt, Group: r.Group, Ask: r.Ask,
		Progress: protocol.RecompactionProgress{
			Total: r.Total, Done: r.Done(), Running: r.Running,
			Changed: r.Changed, Unchanged: r.Unchanged, Failed: r.Failed, Skipped: r.Skipped,
			RolledBack: r.RolledBack, Excepted: r.Excepted,
		},
		TokensBefore: r.TokensBefore, TokensAfter: r.TokensAfter, Error: r.Error, Errors: r.Errors,
		CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt, RolledBackAt: r.RolledBackAt,
	}
}

// readRecompaction handles GET /v1/admin/recompactions/{recompaction}.
func (s *Server) readRecompaction(req *request.Request) error {
	found, err := req.Store.Recompaction(req.Ctx, req.Tenant, req.PathID("recompaction"))
	return request.AnswerFound(req, found, err, recompactionOf)
}

// compareRecompaction handles GET /v1/admin/recompactions/{recompaction}/comparison.
func (s *Server) compareRecompaction(req *request.Request) error {
	found, err := req.Store.CompareRecompaction(req.Ctx, req.Tenant, req.PathID("recompaction"))
	return request.AnswerFound(req, found, err, request.AsIs)
}

// listRecompactions handles GET /v1/admin/recompactions.
func (s *Server) listRecompactions(req *request.Request) error {
	find := func(l *request.List) ([]session.Recompaction, error) {
		return req.Store.Recompactions(req.Ctx, req.Tenant, l.Page())
	}
	place := func(last session.Recompaction) request.Place { return request.PlaceIn(last.CreatedAt, last.ID) }
	return request.AnswerList(req, "recompactions", find, recompactionOf, place)
}

// listRecompactionSessions handles GET /v1/admin/recompactions/{recompaction}/sessions.
func (s *Server) listRecompactionSessions(req *request.Request) error {
	id := req.PathID("recompaction")
	find := func(l *request.List) ([]session.RecompactionSession, error) {
		return req.Store.RecompactionSessions(req.Ctx, req.Tenant, id, l.Page())
	}
	place := func(last session.RecompactionSession) request.Place { return request.Place{ID: last.Key} }
	return request.AnswerList(req, "sessions of recompaction "+id.String(), find, request.AsIs, place)
}

// controlRecompaction handles POST /v1/admin/recompactions/{recompaction}/ with what is asked behind it.
func (s *Server) controlRecompaction(what postgres.Control) handler {
	return func(req *request.Request) error {
		id, key := req.PathID("recompaction"), req.Idempotency()
		found, replayed, err := req.Store.ControlRecompaction(req.Ctx, req.Tenant, id, what, key)
		if err != nil {
			return err
		}
		req.Replayed(replayed)
		return answerRecompaction(req, found)
	}
}

const (
	sampledSessions = 20
	sampleTime      = 15 * time.Second // an answer with a smaller sample is better than none
)

// dryRun counts the sessions that a recompaction would change, and runs the engine on a sample of them. It writes
// nothing.
func (s *Server) dryRun(req *request.Request, r *recompactionRequest, token string) error {
	found, err := req.Store.CountRecompaction(req.Ctx, req.Tenant, r.filter, sampledSessions)
	if err != nil {
		return err
	}
	sample, err := s.sample(req.Ctx, req.Store, found.Sample, r.policy)
	if err != nil {
		return err
	}
	a := planOf(found, sample)
	a.ConfirmToken = token
	return req.JSON(http.StatusOK, a)
}

func planOf(found session.RecompactionCount, sample protocol.RecompactionSample) protocol.RecompactionPlan {
	return protocol.RecompactionPlan{
		DryRun: true, Sessions: found.Sessions, Messages: found.Messages, TotalTokens: found.TotalTokens,
		ContextTokens: found.ContextTokens, Sample: sample, Estimate: estimateOf(&sample, found),
	}
}

func (s *Server) sample(ctx context.Context, store *postgres.Store, sessions []session.SampledSession,
	policy json.RawMessage) (a protocol.RecompactionSample, err error) {
	a.Errors = []session.RecompactionError{}
	for began := time.Now(); len(sessions) > 0 && time.Since(began) < sampleTime; sessions = sessions[1:] {
		var p *compactor.Proposal
		err := s.thawer.Read(ctx, sessions[0].Key)
		if err == nil {
			p, err = compactor.ProposeRecompaction(ctx, store, sessions[0].Key, policy, s.Caller, false)
		}
		switch {
		case errors.Is(err, session.ErrNotFound):
			continue // it was erased just now
		case ctx.Err() != nil || databaseIsDown(err):
			return a, err
		case err != nil:
			a.Failed++
			a.Errors = append(a.Errors, session.RecompactionError{Session: sessions[0].ID, Error: err.Error(),
				At: time.Now().UTC()})
		default:
			addProposal(&a, p)
			addModels(&a.Models, p.Wants(s.Caller))
		}
		a.Sessions++
	}
	return a, nil
}

// addModels adds what models are wanted for in one session.
func addModels(m *protocol.RecompactionModels, wanted []protocol.WantedSummary) {
	for i := range wanted {
		w := &wanted[i]
		m.Summaries++
		if w.State == string(compactor.AnswerKept) {
			m.Kept++
			continue
		}
		m.Calls += w.Calls
		m.InputTokens += w.Input
		m.OutputTokensMax += w.OutputMax
		m.CostMax += w.CostMax
	}
}

func addProposal(a *protocol.RecompactionSample, p *compactor.Proposal) {
	a.TokensBefore += p.View()
	if !p.Changed {
		a.Unchanged++
		a.TokensAfter += p.View()
		return
	}
	a.Changed++
	a.TokensAfter += p.View() - p.Saved()
}

// estimateOf scales the sample to all sessions that were found.
func estimateOf(a *protocol.RecompactionSample, found session.RecompactionCount) (e protocol.RecompactionEstimate) {
	e.TokensBefore, e.TokensAfter = found.ContextTokens, found.ContextTokens
	if a.Sessions > 0 {
		e.Changed = (int64(a.Changed)*found.Sessions + int64(a.Sessions)/2) / int64(a.Sessions)
	}
	if a.Sessions > 0 {
		scale := float64(found.Sessions) / float64(a.Sessions)
		e.Calls = int64(math.Ceil(scale * float64(a.Models.Calls)))
		e.InputTokens = int64(math.Ceil(scale * float64(a.Models.InputTokens)))
		e.OutputTokensMax = int64(math.Ceil(scale * float64(a.Models.OutputTokensMax)))
		e.CostMax = scale * a.Models.CostMax
	}
	if a.TokensBefore > 0 {
		e.TokensAfter = int64(float64(found.ContextTokens) * float64(a.TokensAfter) / float64(a.TokensBefore))
	}
	e.TokensSaved = e.TokensBefore - e.TokensAfter
	return e
}
