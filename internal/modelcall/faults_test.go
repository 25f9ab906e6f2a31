package modelcall

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/llm/fake"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// during returns options that call do when the first call has come, before it is answered.
func during(do func()) fake.Options {
	first := make(chan struct{}, 1)
	first <- struct{}{}
	return fake.Options{Choose: func(fake.Request) fake.Step {
		select {
		case <-first:
			do()
		default:
		}
		return fake.Step{}
	}}
}

func TestNoConnectionIsHeldWhileAModelIsAsked(t *testing.T) {
	t.Parallel()
	var w *world
	var held int32
	w = newWorld(t, during(func() { held = w.caller.Store.Pool().Stat().AcquiredConns() }))
	if w.mustAsk(request(4)); held != 0 {
		t.Errorf("%d connections are held", held)
	}
}

func TestASessionThatIsErasedWhileAModelIsAskedLeavesNothing(t *testing.T) {
	t.Parallel()
	var w *world
	w = newWorld(t, during(func() {
		if _, err := w.caller.Store.Delete(context.Background(), w.at, nil); err != nil {
			t.Error(err)
		}
	}))
	if _, err := w.ask(request(4)); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if n := w.exec(`SELECT FROM model_answers`); n != 0 || len(w.provider.Calls()) != 1 {
		t.Errorf("%d rows are left, %d calls were made", n, len(w.provider.Calls()))
	}
}

func TestAnAnswerOfWhoeverTookTheCallOverIsUsed(t *testing.T) {
	t.Parallel()
	var w *world
	w = newWorld(t, during(func() {
		w.exec(`UPDATE model_answers SET answer = '<summary>of the other</summary>', answered_by = 'm', lease = NULL, leased_until = NULL`)
	}))
	if answer := w.mustAsk(request(4)); answer.Summary != "of the other" || len(w.provider.Calls()) != 1 {
		t.Errorf("got %q after %d calls", answer.Summary, len(w.provider.Calls()))
	}
}

func TestADeadProcessIsTakenOverWhenItsLeaseEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	r := request(4)
	dead, err := w.caller.newRun(w.at.Tenant, w.session, "small", r)
	if err != nil {
		t.Fatal(err)
	}
	call := dead.newCall(dead.keyOf(r, nil), r, summary.DialogueOf(r, delimiter()))
	call.Time = 300 * time.Millisecond
	if _, err := dead.calls().Begin(t.Context(), call, session.ModelBudget{}); err != nil {
		t.Fatal(err)
	}
	from := w.mustAsk(r).Provenance
	if want := call.Bound.Plus(from.Spent); w.spent() != want {
		t.Errorf("spent %+v; want %+v, what the dead process had reserved included", w.spent(), want)
	}
}

// shortLease is renewed after a quarter of it, and given up if that takes as long again.
const shortLease = 8 * time.Second

func TestALeaseIsRenewedWhileTheModelIsSlow(t *testing.T) {
	t.Parallel()
	var w *world
	w = newWorld(t, during(func() {
		began := w.leasedUntil()
		w.until("the lease is renewed", func() bool { return w.leasedUntil().After(began) })
	}))
	w.caller.lease = shortLease
	w.mustAsk(request(4))
}

// leasedUntil returns when the lease of the only call ends.
func (w *world) leasedUntil() (at time.Time) {
	err := postgres.InTenant(w.Context(), w.caller.Store.Pool(), w.at.Tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		return tx.QueryRow(w.Context(), `SELECT leased_until FROM model_answers`).Scan(&at)
	})
	if err != nil {
		w.Error(err)
	}
	return at
}

func TestACallWhoseRowIsGoneIsGivenUp(t *testing.T) {
	t.Parallel()
	var w *world
	gone := false
	w = newWorld(t, fake.Options{Choose: func(fake.Request) fake.Step {
		if gone {
			return fake.Step{}
		}
		gone = true
		w.exec(`DELETE FROM model_answers`)
		return fake.Step{Fault: fake.Timeout}
	}})
	w.caller.lease = shortLease
	if answer := w.mustAsk(request(4)); answer.Summary == "" {
		t.Error("no answer")
	}
}

func TestAFailedCallIsCountedByWhatItCanHaveCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	for fault, want := range map[fake.Fault]string{
		fake.Error503: "a call", fake.Limited: "a call", fake.ResetWithin: "all", fake.InvalidJSON: "all", fake.Refusal: "usage",
	} {
		w.exec(`DELETE FROM model_spending`)
		w.provider.Script(fake.Step{Fault: fault})
		if _, err := w.ask(request(4)); !errors.Is(err, summary.ErrFailed) {
			t.Errorf("%s: %v", fault, err)
		}
		got := "usage"
		switch spent := w.spent(); {
		case spent == session.ModelSpending{Calls: 1}:
			got = "a call"
		case spent.Output == 300:
			got = "all"
		case spent.Input == 0:
			got = "nothing"
		}
		if got != want {
			t.Errorf("%s: %s is counted, want %s: %+v", fault, got, want, w.spent())
		}
		if n := w.exec(`SELECT FROM model_answers`); n != 0 {
			t.Errorf("%s: %d rows are left", fault, n)
		}
	}
}

func TestACancelledCallCountsWhatItReserved(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	w := newWorld(t, fake.Options{Choose: func(fake.Request) fake.Step {
		cancel()
		return fake.Step{Fault: fake.Timeout}
	}})
	if _, err := w.caller.Ask(ctx, w.at.Tenant, uuid.Nil, "small", request(4)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if spent := w.spent(); spent.Calls != 1 || spent.Output != 300 || w.exec(`SELECT FROM model_answers`) != 0 {
		t.Errorf("spent %+v", spent)
	}
}
