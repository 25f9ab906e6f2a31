package postgres_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// callOf returns a call that can use 100 tokens of the request, 20 of the answer and 300 millionths.
func callOf(tenant, key uuid.UUID, asked string) session.ModelCall {
	digest := sha256.Sum256([]byte(asked))
	return session.ModelCall{
		Tenant: tenant, Session: key, Key: digest, Digest: digest, Provider: "p", Model: "m", PromptVersion: "1",
		Bound: session.ModelSpending{Calls: 1, Input: 100, Output: 20, CostMicros: 300}, Time: time.Hour,
	}
}

func answerOf(text string) session.ModelAnswer {
	return session.ModelAnswer{
		Text: text, AnsweredBy: "m-1", Cached: 3, Spent: session.ModelSpending{Calls: 1, Input: 40, Output: 5, CostMicros: 70},
	}
}

func spentToday(t *testing.T, store *postgres.Store, tenant uuid.UUID) (all session.ModelSpending) {
	t.Helper()
	list, err := store.Spending(t.Context(), tenant, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for i, one := range list {
		if i > 0 && one.Model == "" {
			t.Errorf("the spending of all models is at %d", i)
		}
		if one.Model == "" {
			all = one.ModelSpending
		}
	}
	return all
}

func TestACallIsReservedKeptAndSettled(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	call := callOf(tenant, uuid.Nil, "a")
	lease, err := store.BeginCall(t.Context(), call, session.ModelBudget{})
	if err != nil {
		t.Fatal(err)
	}
	if got := spentToday(t, store, tenant); got != call.Bound {
		t.Errorf("reserved %+v", got)
	}
	if _, err := store.BeginCall(t.Context(), call, session.ModelBudget{}); !errors.Is(err, session.ErrModelAsked) {
		t.Errorf("a second caller gets %v", err)
	}
	if _, _, err := store.KeptAnswer(t.Context(), tenant, call.Key); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("an answer that has not come is read: %v", err)
	}
	answer := answerOf("yes\x00\xff")
	if err := store.KeepAnswer(t.Context(), lease, answer); err != nil {
		t.Fatal(err)
	}
	if got := spentToday(t, store, tenant); got != answer.Spent {
		t.Errorf("settled %+v", got)
	}
	if err := store.KeepAnswer(t.Context(), lease, answer); !errors.Is(err, session.ErrStale) || spentToday(t, store, tenant) != answer.Spent {
		t.Errorf("it is settled twice: %v, %+v", err, spentToday(t, store, tenant))
	}
	if _, err := store.BeginCall(t.Context(), call, session.ModelBudget{}); !errors.Is(err, session.ErrExists) {
		t.Errorf("what is kept is asked again: %v", err)
	}
	got, age, err := store.KeptAnswer(t.Context(), tenant, call.Key)
	if err != nil || got != answer || age > time.Hour {
		t.Errorf("kept %+v, %v, %v", got, age, err)
	}
	if _, _, err := store.KeptAnswer(t.Context(), newTenant(t, store, "other"), call.Key); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("another tenant finds it: %v", err)
	}
}

func TestACallThatFailsGivesItsReservationBack(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	lease, err := store.BeginCall(t.Context(), callOf(tenant, uuid.Nil, "a"), session.ModelBudget{})
	if err != nil {
		t.Fatal(err)
	}
	used := session.ModelSpending{Calls: 1, Input: 7}
	if err := store.EndCall(t.Context(), lease, used); err != nil {
		t.Fatal(err)
	}
	if got := spentToday(t, store, tenant); got != used {
		t.Errorf("spent %+v", got)
	}
	if _, err := store.BeginCall(t.Context(), callOf(tenant, uuid.Nil, "a"), session.ModelBudget{}); err != nil {
		t.Errorf("it cannot be asked again: %v", err)
	}
}

func TestThirtyTwoAskersNeverPassTheBudget(t *testing.T) {
	t.Parallel()
	for name, budget := range map[string]session.ModelBudget{
		"calls": {Calls: 7}, "tokens": {Tokens: 7*120 + 119}, "money": {CostMicros: 7*300 + 299},
	} {
		store, tenant := newStore(t)
		var allowed, refused int
		var mu sync.Mutex
		var group sync.WaitGroup
		for i := range 32 {
			group.Go(func() {
				_, err := store.BeginCall(t.Context(), callOf(tenant, uuid.Nil, fmt.Sprint(i)), budget)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					allowed++
				case errors.Is(err, session.ErrModelBudget):
					refused++
				default:
					t.Error(err)
				}
			})
		}
		group.Wait()
		if allowed != 7 || refused != 25 || !budget.Allows(spentToday(t, store, tenant)) {
			t.Errorf("%s: %d allowed, %d refused, spent %+v of %+v", name, allowed, refused, spentToday(t, store, tenant), budget)
		}
		if list, err := store.Spending(t.Context(), tenant, time.Now()); err != nil || len(list) != 2 || list[0].ModelSpending != list[1].ModelSpending {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
	}
}

func TestACallLargerThanTheBudgetIsRefusedOnAnEmptyDay(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	_, err := store.BeginCall(t.Context(), callOf(tenant, uuid.Nil, "a"), session.ModelBudget{Tokens: 119})
	if !errors.Is(err, session.ErrModelBudget) {
		t.Errorf("got %v", err)
	}
	if _, err := store.BeginCall(t.Context(), callOf(tenant, uuid.Nil, "a"), session.ModelBudget{Tokens: 120}); err != nil {
		t.Errorf("a refused call holds its lease: %v", err)
	}
}

func TestTheReservationOfADeadProcessStaysSpent(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	call := callOf(tenant, uuid.Nil, "a")
	dead, err := store.BeginCall(t.Context(), call, session.ModelBudget{})
	if err != nil {
		t.Fatal(err)
	}
	if err := execInTenant(t, store, tenant, `UPDATE model_answers SET leased_until = now() - interval '1 second'`); err != nil {
		t.Fatal(err)
	}
	alive, err := store.BeginCall(t.Context(), call, session.ModelBudget{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.KeepAnswer(t.Context(), dead, answerOf("late")); !errors.Is(err, session.ErrStale) {
		t.Errorf("the dead one's answer: %v", err)
	}
	if err := store.KeepAnswer(t.Context(), alive, answerOf("yes")); err != nil {
		t.Fatal(err)
	}
	want := call.Bound.Plus(answerOf("").Spent)
	if got := spentToday(t, store, tenant); got != want {
		t.Errorf("spent %+v, want %+v", got, want)
	}
}

func TestAnErasedSessionLeavesNoAnswers(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	key := keyOf(t, store, at)
	for _, asked := range []string{"kept", "under way"} {
		lease, err := store.BeginCall(t.Context(), callOf(tenant, key.Key, asked), session.ModelBudget{})
		if err != nil {
			t.Fatal(err)
		}
		if asked == "kept" {
			if err := store.KeepAnswer(t.Context(), lease, answerOf("the secret")); err != nil {
				t.Fatal(err)
			}
			continue
		}
		insertDue(t, store, key, dueSummary("m", "x"))
		if _, err := store.Delete(t.Context(), at, nil); err != nil {
			t.Fatal(err)
		}
		if err := store.KeepAnswer(t.Context(), lease, answerOf("late secret")); !errors.Is(err, session.ErrStale) {
			t.Errorf("the answer to an erased session: %v", err)
		}
	}
	for _, table := range []string{"model_answers", "summaries"} {
		if n := countIn(t, store, tenant, table); n != 0 {
			t.Errorf("%d rows of %s are left", n, table)
		}
	}
	_, err := store.BeginCall(t.Context(), callOf(tenant, key.Key, "new"), session.ModelBudget{})
	if !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a call for an erased session: %v", err)
	}
}

func TestAnAnswerThatCannotBeUsedIsForgottenAfterItsTime(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	call := callOf(tenant, uuid.Nil, "a")
	lease, err := store.BeginCall(t.Context(), call, session.ModelBudget{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.KeepAnswer(t.Context(), lease, answerOf("no")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		older time.Duration
		left  int
	}{{time.Hour, 1}, {0, 0}} {
		if err := store.ForgetAnswer(t.Context(), tenant, call.Key, c.older); err != nil {
			t.Fatal(err)
		}
		if n := countIn(t, store, tenant, "model_answers"); n != c.left {
			t.Errorf("older than %v: %d rows are left", c.older, n)
		}
	}
}

func TestAnswersOfNoSessionAndOldSpendingArePruned(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	key := keyOf(t, store, newSession(t, store, tenant, "s"))
	for asked, owner := range map[string]uuid.UUID{"old": uuid.Nil, "of a session": key.Key, "new": uuid.Nil} {
		lease, err := store.BeginCall(t.Context(), callOf(tenant, owner, asked), session.ModelBudget{})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.KeepAnswer(t.Context(), lease, answerOf(asked)); err != nil {
			t.Fatal(err)
		}
	}
	for _, sql := range []string{
		`UPDATE model_answers SET created_at = now() - interval '8 days' WHERE answer <> 'new'`,
		`INSERT INTO model_spending
		 SELECT tenant_id, day - 401, model, calls, input_tokens, output_tokens, cost_micros FROM model_spending`,
	} {
		if err := execInTenant(t, store, tenant, sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Prune(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]int{
		"model_answers": 2, "model_answers WHERE answer = 'old'": 0, "model_spending": 2,
	} {
		if n := countIn(t, store, tenant, table); n != want {
			t.Errorf("%s: %d rows are left, want %d", table, n, want)
		}
	}
}
