package modelcall

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/llm/fake"
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

func TestACallIsReservedKeptAndSettled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	calls, tenant := Calls{w.caller.Store}, w.at.Tenant
	call := callOf(tenant, uuid.Nil, "a")
	lease, err := calls.Begin(t.Context(), call, session.ModelBudget{})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.spent(); got != call.Bound {
		t.Errorf("reserved %+v", got)
	}
	if _, err := calls.Begin(t.Context(), call, session.ModelBudget{}); !errors.Is(err, session.ErrModelAsked) {
		t.Errorf("a second caller gets %v", err)
	}
	if _, _, err := calls.Kept(t.Context(), tenant, call.Key); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("an answer that has not come is read: %v", err)
	}
	answer := answerOf("yes\x00\xff")
	if err := calls.Keep(t.Context(), lease, answer); err != nil {
		t.Fatal(err)
	}
	if got := w.spent(); got != answer.Spent {
		t.Errorf("settled %+v", got)
	}
	if err := calls.Keep(t.Context(), lease, answer); !errors.Is(err, session.ErrStale) || w.spent() != answer.Spent {
		t.Errorf("it is settled twice: %v, %+v", err, w.spent())
	}
	if _, err := calls.Begin(t.Context(), call, session.ModelBudget{}); !errors.Is(err, session.ErrExists) {
		t.Errorf("what is kept is asked again: %v", err)
	}
	got, age, err := calls.Kept(t.Context(), tenant, call.Key)
	if err != nil || got != answer || age > time.Hour {
		t.Errorf("kept %+v, %v, %v", got, age, err)
	}
	if _, _, err := calls.Kept(t.Context(), w.tenant("other"), call.Key); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("another tenant finds it: %v", err)
	}
}

func TestACallThatFailsGivesItsReservationBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	calls, tenant := Calls{w.caller.Store}, w.at.Tenant
	lease, err := calls.Begin(t.Context(), callOf(tenant, uuid.Nil, "a"), session.ModelBudget{})
	if err != nil {
		t.Fatal(err)
	}
	used := session.ModelSpending{Calls: 1, Input: 7}
	if err := calls.End(t.Context(), lease, used); err != nil {
		t.Fatal(err)
	}
	if got := w.spent(); got != used {
		t.Errorf("spent %+v", got)
	}
	if _, err := calls.Begin(t.Context(), callOf(tenant, uuid.Nil, "a"), session.ModelBudget{}); err != nil {
		t.Errorf("it cannot be asked again: %v", err)
	}
}

func TestThirtyTwoAskersNeverPassTheBudget(t *testing.T) {
	t.Parallel()
	for name, budget := range map[string]session.ModelBudget{
		"calls": {Calls: 7}, "tokens": {Tokens: 7*120 + 119}, "money": {CostMicros: 7*300 + 299},
	} {
		w := newWorld(t, fake.Options{})
		calls, tenant := Calls{w.caller.Store}, w.at.Tenant
		var allowed, refused int
		var mu sync.Mutex
		var group sync.WaitGroup
		for i := range 32 {
			group.Go(func() {
				_, err := calls.Begin(t.Context(), callOf(tenant, uuid.Nil, fmt.Sprint(i)), budget)
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
		if allowed != 7 || refused != 25 || !budget.Allows(w.spent()) {
			t.Errorf("%s: %d allowed, %d refused, spent %+v of %+v", name, allowed, refused, w.spent(), budget)
		}
		if list, err := calls.Spending(t.Context(), tenant, time.Now()); err != nil || len(list) != 2 || list[0].ModelSpending != list[1].ModelSpending {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
	}
}

func TestACallLargerThanTheBudgetIsRefusedOnAnEmptyDay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	calls, tenant := Calls{w.caller.Store}, w.at.Tenant
	_, err := calls.Begin(t.Context(), callOf(tenant, uuid.Nil, "a"), session.ModelBudget{Tokens: 119})
	if !errors.Is(err, session.ErrModelBudget) {
		t.Errorf("got %v", err)
	}
	if _, err := calls.Begin(t.Context(), callOf(tenant, uuid.Nil, "a"), session.ModelBudget{Tokens: 120}); err != nil {
		t.Errorf("a refused call holds its lease: %v", err)
	}
}

func TestTheReservationOfADeadProcessStaysSpent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	calls, tenant := Calls{w.caller.Store}, w.at.Tenant
	call := callOf(tenant, uuid.Nil, "a")
	dead, err := calls.Begin(t.Context(), call, session.ModelBudget{})
	if err != nil {
		t.Fatal(err)
	}
	w.exec(`UPDATE model_answers SET leased_until = now() - interval '1 second'`)
	alive, err := calls.Begin(t.Context(), call, session.ModelBudget{})
	if err != nil {
		t.Fatal(err)
	}
	if err := calls.Keep(t.Context(), dead, answerOf("late")); !errors.Is(err, session.ErrStale) {
		t.Errorf("the dead one's answer: %v", err)
	}
	if err := calls.Keep(t.Context(), alive, answerOf("yes")); err != nil {
		t.Fatal(err)
	}
	want := call.Bound.Plus(answerOf("").Spent)
	if got := w.spent(); got != want {
		t.Errorf("spent %+v, want %+v", got, want)
	}
}

func TestAnErasedSessionLeavesNoAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	calls, tenant := Calls{w.caller.Store}, w.at.Tenant
	for _, asked := range []string{"kept", "under way"} {
		lease, err := calls.Begin(t.Context(), callOf(tenant, w.session, asked), session.ModelBudget{})
		if err != nil {
			t.Fatal(err)
		}
		if asked == "kept" {
			if err := calls.Keep(t.Context(), lease, answerOf("the secret")); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if _, err := calls.Delete(t.Context(), w.at, nil); err != nil {
			t.Fatal(err)
		}
		if err := calls.Keep(t.Context(), lease, answerOf("late secret")); !errors.Is(err, session.ErrStale) {
			t.Errorf("the answer to an erased session: %v", err)
		}
	}
	for _, table := range []string{"model_answers"} {
		if n := w.count(table); n != 0 {
			t.Errorf("%d rows of %s are left", n, table)
		}
	}
	_, err := calls.Begin(t.Context(), callOf(tenant, w.session, "new"), session.ModelBudget{})
	if !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a call for an erased session: %v", err)
	}
}

func TestAnAnswerThatCannotBeUsedIsForgottenAfterItsTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	calls, tenant := Calls{w.caller.Store}, w.at.Tenant
	call := callOf(tenant, uuid.Nil, "a")
	lease, err := calls.Begin(t.Context(), call, session.ModelBudget{})
	if err != nil {
		t.Fatal(err)
	}
	if err := calls.Keep(t.Context(), lease, answerOf("no")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		older time.Duration
		left  int
	}{{time.Hour, 1}, {0, 0}} {
		if err := calls.Forget(t.Context(), tenant, call.Key, c.older); err != nil {
			t.Fatal(err)
		}
		if n := w.count("model_answers"); n != c.left {
			t.Errorf("older than %v: %d rows are left", c.older, n)
		}
	}
}

func TestAnswersOfNoSessionAndOldSpendingArePruned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	calls, tenant := Calls{w.caller.Store}, w.at.Tenant
	for asked, owner := range map[string]uuid.UUID{"old": uuid.Nil, "of a session": w.session, "new": uuid.Nil} {
		lease, err := calls.Begin(t.Context(), callOf(tenant, owner, asked), session.ModelBudget{})
		if err != nil {
			t.Fatal(err)
		}
		if err := calls.Keep(t.Context(), lease, answerOf(asked)); err != nil {
			t.Fatal(err)
		}
	}
	for _, sql := range []string{
		`UPDATE model_answers SET created_at = now() - interval '8 days' WHERE answer <> 'new'`,
		`INSERT INTO model_spending
		 SELECT tenant_id, day - 401, model, calls, input_tokens, output_tokens, cost_micros FROM model_spending`,
	} {
		w.exec(sql)
	}
	if err := calls.Prune(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]int{
		"model_answers": 2, "model_answers WHERE answer = 'old'": 0, "model_spending": 2,
	} {
		if n := w.count(table); n != want {
			t.Errorf("%s: %d rows are left, want %d", table, n, want)
		}
	}
}

func TestASpentBudgetIsToldOnceADay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	calls, tenant := Calls{w.caller.Store}, w.at.Tenant
	budget := session.ModelBudget{Calls: 1}
	if _, err := calls.Begin(t.Context(), callOf(tenant, uuid.Nil, "a"), budget); err != nil {
		t.Fatal(err)
	}
	for _, asked := range []string{"b", "c"} {
		if _, err := calls.Begin(t.Context(), callOf(tenant, uuid.Nil, asked), budget); !errors.Is(err, session.ErrModelBudget) {
			t.Fatalf("a call over the budget: %v", err)
		}
	}
	got, err := calls.Events(t.Context(), tenant, postgres.EventFilter{Limit: 10})
	if err != nil || len(got.Page) != 1 || got.Page[0].Type != session.EventBudgetSpent {
		t.Fatalf("events %+v, %v", got.Page, err)
	}
	var told struct{ Used session.ModelSpending }
	if err := json.Unmarshal(got.Page[0].Data, &told); err != nil || told.Used.Calls != 1 {
		t.Errorf("told %s, %v", got.Page[0].Data, err)
	}
	if n := w.count("model_answers"); n != 1 { // the lease of a call that was refused is not kept
		t.Errorf("%d rows of calls", n)
	}
}
