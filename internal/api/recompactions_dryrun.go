package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

const (
	sampledSessions = 20
	sampleTime      = 15 * time.Second // an answer with a smaller sample is better than none
)

// dryRun counts what a recompaction would do, and has the engine do it to a sample, without writing anything.
func (s *Server) dryRun(req *request.Request, r *recompactionRequest, token string) error {
	found, err := s.Store.CountRecompaction(req.Ctx, req.Tenant, r.filter, sampledSessions)
	if err != nil {
		return err
	}
	sample, err := s.sample(req.Ctx, found.Sample, r.policy)
	if err != nil {
		return err
	}
	a := protocol.RecompactionPlan{
		DryRun: true, Sessions: found.Sessions, Messages: found.Messages, TotalTokens: found.TotalTokens,
		ContextTokens: found.ContextTokens,
		Sample:        sample, Estimate: estimateOf(&sample, found), ConfirmToken: token,
	}
	return req.JSON(http.StatusOK, a)
}

func (s *Server) sample(ctx context.Context, sessions []session.SampledSession,
	policy json.RawMessage) (a protocol.RecompactionSample, err error) {
	a.Errors = []session.RecompactionError{}
	for began := time.Now(); len(sessions) > 0 && time.Since(began) < sampleTime; sessions = sessions[1:] {
		p, err := compactor.ProposeRecompaction(ctx, s.Store, sessions[0].Key, policy)
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
		}
		a.Sessions++
	}
	return a, nil
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
	if a.TokensBefore > 0 {
		e.TokensAfter = int64(float64(found.ContextTokens) * float64(a.TokensAfter) / float64(a.TokensBefore))
	}
	return e
}
