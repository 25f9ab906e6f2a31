package recompact

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// handlers answer the requests about recompactions.
type handlers struct{ api *feature.API }

var (
	errNone   = request.Fail(request.NotFound, "there is no such recompaction: GET /v1/admin/recompactions lists them")
	errNoPart = request.Fail(request.NotFound, "the tenant has no such recompaction: "+
		"GET /v1/admin/tenants/recompactions lists those of many tenants, and "+
		"GET /v1/admin/tenants/recompactions/{group} the recompactions of one")
)

// routes returns the routes of recompactions, and those of operators if the process has a login for them.
func routes(a *feature.API) []request.Route {
	read, compact := request.Tenants(session.SessionsRead), request.Tenants(session.ScopeCompact).WithOwnKeys()
	h := handlers{a}
	const one = "/v1/admin/recompactions/:recompaction"
	list := []request.Route{
		compact.Post("/v1/admin/recompactions", h.create),
		read.List("/v1/admin/recompactions", h.list),
		read.Get(one, h.read).About("recompaction", errNone),
		read.List(one+"/sessions", h.listSessions).About("recompaction", errNone),
		read.Get(one+"/comparison", h.compare).About("recompaction", errNone),
	}
	for _, what := range []Control{Pause, Resume, Cancel, RollBack} {
		list = append(list, compact.Do(one+"/"+string(what), h.control(what)).About("recompaction", errNone))
	}
	if a.Operators != nil {
		list = append(list, h.ofOperators()...)
	}
	return list
}

// create handles POST /v1/admin/recompactions.
func (h handlers) create(req *request.Request) error {
	r, err := h.readRequest(req)
	if err != nil {
		return err
	}
	if err := req.Store.RequireTenant(req.Ctx, req.Tenant, r.tenant); err != nil {
		return err
	}
	token := r.confirmToken(req.Tenant)
	switch {
	case r.dryRun:
		return h.dryRun(req, r, token)
	case r.confirm != "" && r.confirm != token:
		return session.Invalid("/confirm_token", request.InvalidRequest,
			"the token is of a dry run with another filter, policy or engine: make a dry run of this body, then "+
				"send its confirm_token")
	}
	begun, replayed, err := store{req.Store}.Create(req.Ctx, req.Tenant, r.recompaction(), req.Idempotency())
	if err != nil {
		return err
	}
	req.Replayed(replayed)
	return answer(req, begun)
}

func (h handlers) readRequest(req *request.Request) (*body, error) {
	r, err := decode(req.Body())
	if err != nil {
		return nil, err
	}
	if r.policy != nil { // whether it fits a session's own policy shows when that session is compacted
		own, err := req.Store.TenantPolicy(req.Ctx, req.Tenant)
		if err != nil {
			return nil, err
		}
		ingest.PolicyOver(&r.Document, r.member, session.PolicyLayers{Tenant: own.Patch}, h.api.Writers)
	}
	if r.ask && r.policy != nil && !r.dryRun {
		r.Wrong("/ask", request.InvalidRequest, "%s", askBesidePolicy)
	}
	return r, r.Err()
}

// askBesidePolicy is what is wrong with asking models under a policy that is not the sessions'.
const askBesidePolicy = "models are asked under the sessions' own policies only, and policy changes them for this " +
	"recompaction: leave policy out, or ask out"

func answer(req *request.Request, r Stored) error {
	return request.AnswerWork(req, r.State.Ended(), "/v1/admin/recompactions/"+r.ID.String(), answerOf(r))
}

func answerOf(r Stored) Recompaction {
	return Recompaction{
		ID: r.ID, State: r.State, Filter: r.Filter, Policy: r.Policy,
		From: string(compactor.FromLog), MaxRunning: r.MaxRunning, PerMinute: r.PerMinute, StartAt: r.StartAt,
		Hours: r.Hours, NextStartAt: r.NextStartAt, Group: r.Group, Ask: r.Ask,
		Progress: RecompactionProgress{
			Total: r.Total, Done: r.Done(), Running: r.Running,
			Changed: r.Changed, Unchanged: r.Unchanged, Failed: r.Failed, Skipped: r.Skipped,
			RolledBack: r.RolledBack, Excepted: r.Excepted,
		},
		TokensBefore: r.TokensBefore, TokensAfter: r.TokensAfter, Error: r.Error, Errors: r.Errors,
		CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt, RolledBackAt: r.RolledBackAt,
	}
}

// read handles GET /v1/admin/recompactions/{recompaction}.
func (h handlers) read(req *request.Request) error {
	found, err := store{req.Store}.Read(req.Ctx, req.Tenant, req.PathID("recompaction"))
	return request.AnswerFound(req, found, err, answerOf)
}

// compare handles GET /v1/admin/recompactions/{recompaction}/comparison.
func (h handlers) compare(req *request.Request) error {
	found, err := store{req.Store}.Compare(req.Ctx, req.Tenant, req.PathID("recompaction"))
	return request.AnswerFound(req, found, err, request.AsIs)
}

// list handles GET /v1/admin/recompactions.
func (h handlers) list(req *request.Request) error {
	find := func(l *request.List) ([]Stored, error) {
		return store{req.Store}.List(req.Ctx, req.Tenant, l.Page())
	}
	place := func(last Stored) request.Place { return request.PlaceIn(last.CreatedAt, last.ID) }
	return request.AnswerList(req, "recompactions", find, answerOf, place)
}

// listSessions handles GET /v1/admin/recompactions/{recompaction}/sessions.
func (h handlers) listSessions(req *request.Request) error {
	id := req.PathID("recompaction")
	find := func(l *request.List) ([]RecompactionSession, error) {
		return store{req.Store}.Sessions(req.Ctx, req.Tenant, id, l.Page())
	}
	place := func(last RecompactionSession) request.Place { return request.Place{ID: last.Key} }
	return request.AnswerList(req, "sessions of recompaction "+id.String(), find, request.AsIs, place)
}

// control handles POST /v1/admin/recompactions/{recompaction}/ with what is asked behind it.
func (h handlers) control(what Control) func(*request.Request) error {
	return func(req *request.Request) error {
		id, key := req.PathID("recompaction"), req.Idempotency()
		found, replayed, err := store{req.Store}.Control(req.Ctx, req.Tenant, id, what, key)
		if err != nil {
			return err
		}
		req.Replayed(replayed)
		return answer(req, found)
	}
}

const (
	sampledSessions = 20
	sampleTime      = 15 * time.Second // an answer with a smaller sample is better than none
)

// dryRun counts the sessions that a recompaction would change, and runs the engine on a sample of them. It writes
// nothing.
func (h handlers) dryRun(req *request.Request, r *body, token string) error {
	found, err := store{req.Store}.Count(req.Ctx, req.Tenant, r.filter, sampledSessions)
	if err != nil {
		return err
	}
	sample, err := h.sample(req.Ctx, req.Store, found.Sample, r.policy)
	if err != nil {
		return err
	}
	a := planOf(found, sample)
	a.ConfirmToken = token
	return req.JSON(http.StatusOK, a)
}

func planOf(found Count, sample RecompactionSample) RecompactionPlan {
	return RecompactionPlan{
		DryRun: true, Sessions: found.Sessions, Messages: found.Messages, TotalTokens: found.TotalTokens,
		ContextTokens: found.ContextTokens, Sample: sample, Estimate: estimateOf(&sample, found),
	}
}

func (h handlers) sample(ctx context.Context, store *postgres.Store, sessions []Sampled,
	policy json.RawMessage) (a RecompactionSample, err error) {
	a.Errors = []RecompactionError{}
	for began := time.Now(); len(sessions) > 0 && time.Since(began) < sampleTime; sessions = sessions[1:] {
		var p *compactor.Proposal
		err := h.api.Thaw(ctx, sessions[0].Key)
		if err == nil {
			p, err = compactor.ProposeRecompaction(ctx, store, sessions[0].Key, policy, h.api.Caller)
		}
		switch {
		case errors.Is(err, session.ErrNotFound):
			continue // it was erased just now
		case ctx.Err() != nil || h.api.IsDown(err):
			return a, err
		case err != nil:
			a.Failed++
			a.Errors = append(a.Errors, RecompactionError{Session: sessions[0].ID, Error: err.Error(),
				At: time.Now().UTC()})
		default:
			addProposal(&a, p)
			addModels(&a.Models, p.Wants(h.api.Caller))
		}
		a.Sessions++
	}
	return a, nil
}

// addModels adds what models are wanted for in one session.
func addModels(m *RecompactionModels, wanted []protocol.WantedSummary) {
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

func addProposal(a *RecompactionSample, p *compactor.Proposal) {
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
func estimateOf(a *RecompactionSample, found Count) (e RecompactionEstimate) {
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
