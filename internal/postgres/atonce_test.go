package postgres_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// What the first of two requests with one Idempotency-Key changes is what the second one's precondition compares with.
func TestTheSameKeyTwiceAtOnceIsAnsweredTwice(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	for version := 1; version <= 5; version++ {
		document := fmt.Appendf(nil, `{"n":%d}`, version)
		policy := session.Policy{Trigger: 0.8, Hard: 0.95, Document: document, Patch: document}
		set := func(_, _ json.RawMessage) (session.Policy, error) {
			time.Sleep(5 * time.Millisecond) // the other one looks for the key meanwhile
			return policy, nil
		}
		var both sync.WaitGroup
		var errs [2]error
		var replayed [2]bool
		for i := range 2 {
			both.Go(func() {
				_, replayed[i], errs[i] = store.ChangeTenantPolicy(t.Context(), tenant, session.TenantPolicy{
					Edit: set, Rebase: set, Expected: &version,
					Idempotency: &session.Idempotency{Route: "PUT /v1/policy", Key: fmt.Sprint(version)},
				})
			})
		}
		both.Wait()
		if errs[0] != nil || errs[1] != nil || replayed[0] == replayed[1] {
			t.Errorf("version %d: %v, replayed %v", version, errs, replayed)
		}
	}
}

func TestAReadOfSeveralStatementsReadsOneMoment(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "chat")
	mustAppend(t, store, batch(at, message("hello", 1)))
	if err := made(t, store, at, 0, 1, 1); err != nil {
		t.Fatal(err)
	}
	l, err := postgres.InSession(t.Context(), store, at, func(tx pgx.Tx, key session.Key) (session.Lineage, error) {
		if _, err := store.Delete(t.Context(), at, nil); err != nil { // between two statements
			t.Fatal(err)
		}
		return postgres.ReadLineage(t.Context(), tx, key, 1)
	})
	if err != nil || len(l.Manifests) != 1 {
		t.Errorf("a checkpoint of a session that is deleted meanwhile: %d manifests, %v", len(l.Manifests), err)
	}
}

func TestALockIsNotWaitedForForLong(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	for setting, want := range map[string]string{"lock_timeout": "3s", "idle_in_transaction_session_timeout": "5s"} {
		var got string
		if err := store.Pool().QueryRow(t.Context(), `SELECT current_setting($1)`, setting).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %s, %v; want %s", setting, got, err, want)
		}
	}
}
