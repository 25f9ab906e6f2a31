// Package modelcall asks the operator's language models for summaries, and pays once for each answer.
//
// Start at Caller.Ask, which returns the answer to a summary.Request for a tenant, and at run.call (call.go), which
// makes one call: a kept answer if there is one, else a reservation of the tenant's budget, the call, and the answer
// kept with what it cost. Requests that are too large for a model's window are divided (run.whole). Answers are read
// by summary.Accept; after one that is refused the model is asked once more, with the reason (run.accepted). Kept and
// Estimate ask nothing.
//
// No transaction is open and no lock is held while a model is asked: the row of the call is a lease, which this
// package renews (lease.go). calls.go has the SQL of the tables model_answers and model_spending.
package modelcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// Caller asks models. It may be used by several goroutines at once.
type Caller struct {
	Store   *postgres.Store
	Models  *llm.Models
	Budgets Budgets

	lease time.Duration // 0 for leaseTime
}

// Budgets bound what models may cost.
type Budgets struct {
	Run session.ModelBudget // of one call of Ask
	Day session.ModelBudget // of a tenant in a day, in UTC, unless its own quotas say otherwise
}

// The reasons why a model is not asked. They wrap summary.ErrFailed.
var (
	ErrUnknownModel = fmt.Errorf("%w: no such model is configured", summary.ErrFailed)
	ErrTooLarge     = fmt.Errorf("%w: the request has parts too large for the model's window", summary.ErrFailed)
	ErrBudget       = fmt.Errorf("%w: the budget does not allow the call", summary.ErrFailed)
	ErrUnusable     = fmt.Errorf("%w: its answers cannot be used", summary.ErrFailed)
)

// Ask returns the answer to a request, from answers that are kept as far as there are, and otherwise by asking the
// model of that name. key is the session's, uuid.Nil for a request that has none. What was paid for before an error is
// kept.
//
// Errors wrap summary.ErrFailed if the model, its budget or its answers are the reason: see Again. Other errors are
// those of the database and of ctx; ErrNotFound if the session is gone.
func (a *Caller) Ask(ctx context.Context, tenant, key uuid.UUID, model string, r summary.Request) (
	session.SummaryAnswer, error,
) {
	run, err := a.newRun(tenant, key, model, r)
	if err != nil {
		return session.SummaryAnswer{}, err
	}
	if run.day, err = a.dayBudget(ctx, tenant); err != nil {
		return session.SummaryAnswer{}, err
	}
	return run.result(ctx, r)
}

// dayBudget returns a tenant's budget of a day: the operator's, with what the tenant's own quotas say.
func (a *Caller) dayBudget(ctx context.Context, tenant uuid.UUID) (session.ModelBudget, error) {
	quotas, err := a.Store.Quotas(ctx, tenant, a.Budgets.Day.Quotas())
	return quotas.ModelBudget(), err
}

// Kept returns the answer to a request if the answers of all calls that it takes are kept, and reports whether they
// are. It asks nothing. Its errors are those of the database.
func (a *Caller) Kept(ctx context.Context, tenant uuid.UUID, model string, r summary.Request) (
	answer session.SummaryAnswer, ok bool, err error,
) {
	run, err := a.newRun(tenant, uuid.Nil, model, r)
	if err != nil {
		return answer, false, nil
	}
	run.lookUp = true
	answer, err = run.result(ctx, r)
	if errors.Is(err, errNotKept) || errors.Is(err, summary.ErrFailed) {
		return session.SummaryAnswer{}, false, nil
	}
	return answer, err == nil, err
}

// newRun returns a run of a request; ErrUnknownModel.
func (a *Caller) newRun(tenant, key uuid.UUID, name string, r summary.Request) (*run, error) {
	model, ok := a.Models.Named(name)
	if !ok {
		return nil, fmt.Errorf("%w: %q; there are: %s", ErrUnknownModel, name, strings.Join(a.Models.Names(), ", "))
	}
	return &run{
		caller: a, model: model, tenant: tenant, session: key,
		from: session.Provenance{
			Model: model.Name, Provider: model.Provider, PromptVersion: summary.PromptVersion,
			SourceDigest: r.Digest().String(), Chunks: 1,
		},
	}, nil
}

// result returns the answer with its provenance.
func (r *run) result(ctx context.Context, request summary.Request) (session.SummaryAnswer, error) {
	answer, err := r.whole(ctx, request)
	if err != nil {
		return session.SummaryAnswer{}, err
	}
	if r.from.Claims, err = json.Marshal(r.claims); err != nil {
		return session.SummaryAnswer{}, err
	}
	return session.SummaryAnswer{
		Retain: answer.Retain, Summary: answer.Summary, Flags: answer.Flags, Provenance: r.from,
	}, nil
}

// waits are how long after a failure the same may be asked again, if nothing says when.
const (
	waitAfterFailure = time.Minute
	waitForOperator  = 10 * time.Minute // to correct a key, an address or a name
	waitAfterRefusal = 24 * time.Hour
)

// Again returns when the same may be asked again after an error of Ask, and reports whether a later attempt can do
// better than this one although nothing else has changed: a model that is down may come back, but one that refuses a
// request will refuse it again.
func Again(err error, now time.Time) (at time.Time, transient bool) {
	var failed *llm.Error
	switch {
	case errors.Is(err, ErrBudget) && errors.Is(err, session.ErrModelBudget):
		return now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour), false
	case errors.Is(err, ErrUnknownModel):
		return now.Add(waitForOperator), false
	case errors.As(err, &failed):
		return again(failed, now)
	case errors.Is(err, summary.ErrFailed):
		return now.Add(waitAfterRefusal), false
	}
	return now.Add(waitAfterFailure), true
}

// again returns what Again does, for a call that failed.
func again(failed *llm.Error, now time.Time) (at time.Time, transient bool) {
	switch {
	case failed.Kind == llm.ErrRefused, failed.Reason == llm.ContextLength, failed.Status == http.StatusBadRequest:
		return now.Add(waitAfterRefusal), false
	case failed.Kind == llm.ErrRejected:
		return now.Add(waitForOperator), false
	}
	return now.Add(max(failed.RetryAfter, waitAfterFailure)), true
}
