package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// Runs go a while after their end, some at a time, and those that have not ended stay.
func TestRunsAreForgottenAfterTheirTime(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "chat")
	found, err := store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	insert := func(age time.Duration, n int, state string) {
		t.Helper()
		for range n {
			id := uuid.Must(uuid.NewV7())
			for i, ms := 5, time.Now().Add(-age).UnixMilli(); i >= 0; i-- {
				id[i] = byte(ms)
				ms >>= 8
			}
			err := execInTenant(t, store, tenant, `
				INSERT INTO runs (tenant_id, id, session_key, cause, state, job_id, triggered_at, finished_at)
				SELECT $1, $2, $3, 'manual', $4, 1, now() - $5::interval, CASE WHEN $4 = 'done' THEN now() - $5::interval END`,
				tenant, id, found.Key, state, age)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	const day = 24 * time.Hour
	insert(91*day, 3, "done")
	insert(91*day, 1, "running")
	insert(89*day, 2, "done")
	left := func() (n int) {
		t.Helper()
		page, err := store.Runs(t.Context(), at, session.Page{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		return len(page)
	}
	for _, kept := range []time.Duration{0, 90 * day} {
		store.KeepFor(postgres.Retention{Runs: kept})
		if err := store.Prune(t.Context(), tenant); err != nil {
			t.Fatal(err)
		}
		want := 6
		if kept > 0 {
			want = 3
		}
		if got := left(); got != want {
			t.Errorf("kept for %v: %d runs are left, want %d", kept, got, want)
		}
	}
}

// A checkpoint that cannot be read any more keeps nothing that is as long as its log, but the numbers of it.
func TestAPrunedCheckpointKeepsNumbersOnly(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "chat")
	for n := range postgres.KeptCheckpoints + 2 {
		mustAppend(t, store, batch(at, message(fmt.Sprint(n), 10)))
		commitUnits(t, store, at, n)
	}
	found, err := store.Lineages(t.Context(), at, 1, postgres.KeptCheckpoints+2)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range found {
		if l.Units != 3 || l.OpenCalls != 2 || l.HasBody == (l.N == 1) {
			t.Errorf("checkpoint %d: body %v, %d units, %d open calls", l.N, l.HasBody, l.Units, l.OpenCalls)
		}
	}
	err = execInTenant(t, store, tenant, `
		DO $$
		BEGIN
		    ASSERT (SELECT bool_and((body IS NULL) = (n <= 2)) FROM checkpoints);
		    ASSERT (SELECT bool_and(validator_state IS NULL AND open_calls = '{}' AND jsonb_typeof(units) = 'object')
		              FROM checkpoints WHERE n <= 2);
		END
		$$`)
	if err != nil {
		t.Error(err)
	}
}

// commitUnits commits the checkpoint after checkpoint base, with three units and two open calls.
func commitUnits(t *testing.T, store *postgres.Store, at session.Address, base int) {
	t.Helper()
	found, err := store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	n := base + 1
	err = store.CommitCheckpoint(t.Context(), session.Key{Tenant: at.Tenant, Key: found.Key}, postgres.Outcome{
		Run:  session.Run{ID: uuid.Must(uuid.NewV7()), State: session.RunDone, Checkpoint: &n},
		Base: base, LastSeq: found.LastSeq,
		Checkpoint: &postgres.Checkpoint{
			Through: found.LastSeq, Tokens: 5, Body: []byte("x"), Size: 1, State: []byte("state"),
			Units: []byte(`[{"a": 1}, {"b": 2}, {"c": 3}]`), Manifest: []byte(`[]`), OpenCalls: []string{"one", "two"},
			ValidatorState: []byte("walked"), Policy: []byte(`{}`), EngineVersion: 1,
		},
	}, noJob)
	if err != nil {
		t.Fatal(err)
	}
}
