package modelcall

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/session"
)

// How often a process looks whether another one has the answer that it needs, too.
const (
	firstLook = 50 * time.Millisecond
	nextLooks = time.Second
)

// call returns the text of an answer: one that is kept, or that of a call. A process that finds another one at the
// same call waits for its answer.
func (r *run) call(ctx context.Context, key [32]byte, request summary.Request, d summary.Dialogue) (string, error) {
	call := r.newCall(key, request, d)
	stale := false // the row of the call was gone or another's: who has it now may have the answer
	for wait := firstLook; ; wait = min(2*wait, nextLooks) {
		text, err := r.kept(ctx, key, request)
		if err == nil || r.lookUp || !errors.Is(err, errNotKept) {
			return text, err
		}
		text, err = r.paid(ctx, call, d)
		r.count(err)
		switch {
		case errors.Is(err, session.ErrStale) && !stale:
			stale = true
			continue
		case errors.Is(err, session.ErrExists):
			continue
		case !errors.Is(err, session.ErrModelAsked):
			return text, err
		}
		if err := pause(ctx, wait); err != nil {
			return "", err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (r *run) newCall(key [32]byte, request summary.Request, d summary.Dialogue) session.ModelCall {
	bound := r.model.Bound(d)
	return session.ModelCall{
		Tenant: r.tenant, Session: r.session, Key: key, Provider: r.model.Provider, Model: r.model.Name,
		PromptVersion: summary.PromptVersion, Digest: session.SummaryDigest(request.Digest()),
		Time: r.caller.leaseTime(), Bound: r.spending(bound),
	}
}

// spending returns what a call that used this costs.
func (r *run) spending(u llm.Usage) session.ModelSpending {
	return session.ModelSpending{
		Calls: 1, Input: u.Input, Output: u.Output, CostMicros: int64(math.Ceil(r.model.Price.Of(u))),
	}
}

// kept returns a kept answer, or errNotKept. One that could not be used is forgotten when it has had its time.
func (r *run) kept(ctx context.Context, key [32]byte, request summary.Request) (string, error) {
	found, age, err := r.calls().Kept(ctx, r.tenant, key)
	if errors.Is(err, session.ErrNotFound) {
		return "", errNotKept
	}
	if err != nil {
		return "", err
	}
	if _, refusal := accept(found.Text, request); refusal != nil && age > refusedFor && !r.lookUp {
		if err := r.calls().Forget(ctx, r.tenant, key, refusedFor); err != nil {
			return "", err
		}
		return "", errNotKept
	}
	r.note(key, found.AnsweredBy, session.ModelSpending{})
	answersTotal.WithLabelValues(r.model.Name, "kept").Inc()
	return found.Text, nil
}

// note notes a call in the provenance. A call that has spent nothing was kept.
func (r *run) note(key [32]byte, answeredBy string, spent session.ModelSpending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from.Calls++
	if spent.Calls == 0 {
		r.from.Kept++
	}
	r.from.Spent = r.from.Spent.Plus(spent)
	r.from.AnsweredBy = answeredBy
	r.from.Keys = append(r.from.Keys, key[:])
}

// paid makes a call under the budgets of the run and of the day.
//
// Errors: ErrExists, ErrModelAsked, ErrNotFound, ErrBudget, and those of pay.
func (r *run) paid(ctx context.Context, call session.ModelCall, d summary.Dialogue) (string, error) {
	if err := r.hold(call.Bound); err != nil {
		return "", err
	}
	lease, err := r.calls().Begin(ctx, call, r.day)
	if err != nil {
		r.release(call.Bound, session.ModelSpending{})
		if errors.Is(err, session.ErrModelBudget) {
			err = fmt.Errorf("%w: %w", ErrBudget, err)
		}
		return "", err
	}
	text, used, err := r.pay(ctx, lease, d)
	r.release(call.Bound, used)
	return text, err
}

// hold takes the most that a call can use off the run's budget.
func (r *run) hold(bound session.ModelSpending) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	with, budget := r.held.Plus(bound), r.caller.Budgets.Run
	if !budget.Allows(with) {
		return fmt.Errorf("%w: with it this summary could take %d calls, %d tokens and %d millionths; "+
			"the budget of one summary is %d calls, %d tokens and %d millionths (0: no bound)", ErrBudget,
			with.Calls, with.Input+with.Output, with.CostMicros, budget.Calls, budget.Tokens, budget.CostMicros)
	}
	r.held = with
	return nil
}

// release gives back what a call has not used.
func (r *run) release(bound, used session.ModelSpending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = r.held.Plus(used).Minus(bound)
}

// pay makes a call whose budget is reserved, and keeps its answer. An answer that was cut is kept as an empty one,
// which no model gives otherwise: it costs as much as a good one. It returns what the call has used.
func (r *run) pay(ctx context.Context, lease session.ModelLease, d summary.Dialogue) (
	text string, used session.ModelSpending, err error,
) {
	reply, err := r.leased(ctx, lease, d)
	var failed *llm.Error
	switch {
	case err == nil:
		used = r.spending(reply.Usage)
	case errors.As(err, &failed) && failed.Kind == llm.ErrCut:
		used, reply = r.usedBy(failed, lease), llm.Reply{Model: r.model.Model}
	default:
		used = lease.Call.Bound // nobody knows
		if failed != nil {
			used = r.usedBy(failed, lease)
			err = fmt.Errorf("%w: %w", summary.ErrFailed, err)
		}
		return "", used, errors.Join(err, ignoreStale(r.settle(ctx, func(ctx context.Context) error {
			return r.calls().End(ctx, lease, used)
		})))
	}
	answer := session.ModelAnswer{Text: reply.Text, AnsweredBy: reply.Model, Cached: reply.Usage.Cached, Spent: used}
	err = r.settle(ctx, func(ctx context.Context) error { return r.calls().Keep(ctx, lease, answer) })
	if err != nil {
		return "", used, err
	}
	r.note(lease.Call.Key, answer.AnsweredBy, used)
	return answer.Text, used, nil
}

// ignoreStale returns nil for a call whose row is gone: there is nothing to end.
func ignoreStale(err error) error {
	if errors.Is(err, session.ErrStale) {
		return nil
	}
	return err
}

// usedBy returns what a call has used that has failed: all that it can have used, if the provider may have worked on
// it and does not say.
func (r *run) usedBy(failed *llm.Error, lease session.ModelLease) session.ModelSpending {
	switch {
	case failed.Kind == llm.ErrOpen:
		return session.ModelSpending{}
	case failed.Free:
		return session.ModelSpending{Calls: 1}
	case failed.Usage != llm.Usage{}:
		return r.spending(failed.Usage)
	}
	return lease.Call.Bound
}
