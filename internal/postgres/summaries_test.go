package postgres_test

import (
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

func keyOf(t *testing.T, store *postgres.Store, at session.Address) session.Key {
	t.Helper()
	return session.Key{Tenant: at.Tenant, Key: measured(t, store, at).Key}
}

func countIn(t *testing.T, store *postgres.Store, tenant uuid.UUID, table string) (n int) {
	t.Helper()
	err := postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func dueSummary(model, asked string) session.DueSummary {
	return session.DueSummary{Model: model, Digest: sha256.Sum256([]byte(asked)), First: 1, Last: 7, Request: []byte(`{"a":"` + asked + `"}`)}
}

// insertDue notes summaries of checkpoint 3, and returns those to ask for.
func insertDue(t *testing.T, store *postgres.Store, key session.Key, due ...session.DueSummary) (ask []session.SummaryID) {
	t.Helper()
	err := postgres.InTenant(t.Context(), store.Pool(), key.Tenant, pgx.TxOptions{}, func(tx pgx.Tx) (err error) {
		ask, err = postgres.InsertDue(t.Context(), tx, key, 3, due)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ask
}

func TestASummaryIsDueAskedAndAnswered(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	key := keyOf(t, store, newSession(t, store, tenant, "s"))
	due := dueSummary("m", "x")
	ask := insertDue(t, store, key, due, dueSummary("other", "x"))
	if len(ask) != 2 || len(insertDue(t, store, key, due)) != 0 {
		t.Fatalf("to ask: %+v, or twice", ask)
	}
	for range 2 { // the second time by a worker that takes over
		if got, err := store.BeginSummary(t.Context(), ask[0]); err != nil || cmp.Diff(due, got) != "" {
			t.Errorf("begun: %v\n%s", err, cmp.Diff(due, got))
		}
	}
	answer := session.SummaryAnswer{
		Retain: "- a\x00", Summary: "it is done", Flags: []string{"instruction_like"},
		Provenance: session.Provenance{Model: "m", Calls: 2, Claims: []byte(`{"cut": 1}`), Keys: [][]byte{{1, 2}}},
	}
	if err := store.AnswerSummary(t.Context(), ask[0], answer); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		store.AnswerSummary(t.Context(), ask[0], answer), store.FailSummary(t.Context(), ask[0], "late", time.Time{}),
	} {
		if !errors.Is(err, session.ErrNotFound) {
			t.Errorf("an answered summary ends again: %v", err)
		}
	}
	if len(insertDue(t, store, key, due)) != 0 {
		t.Error("what is answered is asked again")
	}
	found, err := store.SummariesOf(t.Context(), key, "m", []session.SummaryDigest{due.Digest, {}})
	if err != nil || len(found) != 1 {
		t.Fatalf("found %+v, %v", found, err)
	}
	got := found[due.Digest]
	if diff := cmp.Diff(answer, got.SummaryAnswer); diff != "" || got.State != session.SummaryAnswered || got.Attempts != 2 {
		t.Errorf("%+v\n%s", got, diff)
	}
	if list, err := store.Summaries(t.Context(), key); err != nil || len(list) != 2 || list[1].State != session.SummaryDue {
		t.Errorf("listed %+v, %v", list, err)
	}
	if n := requestsLeft(t, store, tenant); n != 1 {
		t.Errorf("%d requests are kept, want that of the summary which is due", n)
	}
}

func requestsLeft(t *testing.T, store *postgres.Store, tenant uuid.UUID) int {
	t.Helper()
	return countIn(t, store, tenant, "summaries WHERE request IS NOT NULL")
}

func TestAFailedSummaryIsAskedAgainAfterItsTime(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	key := keyOf(t, store, newSession(t, store, tenant, "s"))
	due := dueSummary("m", "x")
	for _, c := range []struct {
		again time.Time
		ask   int
	}{{time.Time{}, 1}, {time.Now().Add(-time.Second), 1}, {time.Now().Add(time.Hour), 0}} {
		ask := insertDue(t, store, key, due)
		if len(ask) != 1 {
			t.Fatalf("before %v: to ask %+v", c.again, ask)
		}
		if err := store.FailSummary(t.Context(), ask[0], "it was cut", c.again); err != nil {
			t.Fatal(err)
		}
		found, err := store.SummariesOf(t.Context(), key, "m", []session.SummaryDigest{due.Digest})
		if got := found[due.Digest]; err != nil || got.State != session.SummaryFailed || got.Reason != "it was cut" || requestsLeft(t, store, tenant) != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		if c.ask == 0 && len(insertDue(t, store, key, due)) != 0 {
			t.Error("it is asked again before its time")
		}
	}
}

func TestASummaryThatNothingWaitsForIsSuperseded(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	key := keyOf(t, store, newSession(t, store, tenant, "s"))
	kept, gone := dueSummary("m", "kept"), dueSummary("m", "gone")
	ask := insertDue(t, store, key, kept, gone)
	supersede := func(waited ...session.SummaryDigest) (n int64) {
		err := postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) (err error) {
			n, err = postgres.SupersedeSummaries(t.Context(), tx, key, waited)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := supersede(kept.Digest); n != 1 {
		t.Errorf("%d are superseded, want 1", n)
	}
	if _, err := store.BeginSummary(t.Context(), ask[1]); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a superseded summary is asked for: %v", err)
	}
	if n := supersede(); n != 1 {
		t.Errorf("%d are superseded when nothing waits, want 1", n)
	}
	if len(insertDue(t, store, key, gone)) != 1 {
		t.Error("a superseded summary is not due again")
	}
}

func TestForgottenAnswersAreGoneWithThoseOfOtherSessionsThatWereUsed(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	one, other := keyOf(t, store, newSession(t, store, tenant, "s")), keyOf(t, store, newSession(t, store, tenant, "fork"))
	for key, asked := range map[uuid.UUID]string{one.Key: "own", other.Key: "shared", uuid.Nil: "unrelated"} {
		err := execInTenant(t, store, tenant, `
			INSERT INTO model_answers (tenant_id, key, session_key, provider, model, prompt_version, digest, answer, answered_by,
			                           reserved_day, reserved_input, reserved_output, reserved_cost)
			VALUES ($1, sha256($3), nullif($2, $4::uuid), 'p', 'm', '1', sha256($3), $3, 'm-1', now(), 0, 0, 0)`, tenant, key, []byte(asked), uuid.Nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	shared := sha256.Sum256([]byte("shared"))
	answer := session.SummaryAnswer{Summary: "x", Provenance: session.Provenance{Keys: [][]byte{shared[:]}}}
	if err := store.AnswerSummary(t.Context(), insertDue(t, store, one, dueSummary("m", "x"))[0], answer); err != nil {
		t.Fatal(err)
	}
	err := postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		return postgres.ForgetAnswers(t.Context(), tx, one)
	})
	if err != nil {
		t.Fatal(err)
	}
	if answers, summaries := countIn(t, store, tenant, "model_answers"), countIn(t, store, tenant, "summaries"); answers != 1 || summaries != 0 {
		t.Errorf("%d answers and %d summaries are left, want the unrelated answer", answers, summaries)
	}
}
