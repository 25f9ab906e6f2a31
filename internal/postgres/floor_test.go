package postgres_test

import (
	"encoding/json"
	"testing"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// floored returns a session of 850 tokens that a compaction has left as it was, with what it committed.
func floored(t *testing.T, freedAfter int) (*postgres.Store, session.Address) {
	t.Helper()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("x", 850)))
	found, err := store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	loseJobs(t, store)
	unchanged := postgres.Outcome{
		Run: session.Run{State: session.RunUnchanged}, LastSeq: 1, Policy: found.Policy.Version, FreedAfter: freedAfter,
	}
	if err := store.CommitCheckpoint(t.Context(), session.Key{Tenant: tenant, Key: found.Key}, unchanged, noJob); err != nil {
		t.Fatal(err)
	}
	if n := liveJobs(t, store); n != 0 {
		t.Fatalf("%d jobs follow a compaction that found nothing to do", n)
	}
	return store, at
}

func TestAFloorEndsWithTheProtectionOfWhatIsLarge(t *testing.T) {
	t.Parallel()
	store, at := floored(t, 3)
	for n := range 3 {
		done := mustAppend(t, store, batch(at, message("x", 1)))
		if isDue := done.Compaction == session.CompactionQueued; isDue != (n == 2) {
			t.Fatalf("message %d: compaction %s", n+1, done.Compaction)
		}
	}
}

func TestTheSweepKnowsWhenAFloorEnds(t *testing.T) {
	t.Parallel()
	store, at := floored(t, 3)
	if n, err := store.Sweep(t.Context(), at.Tenant); err != nil || n != 0 {
		t.Fatalf("the sweep inserted %d, %v", n, err)
	}
	for range 3 {
		mustAppend(t, store, batch(at, message("x", 1)))
	}
	loseJobs(t, store)
	if n, err := store.Sweep(t.Context(), at.Tenant); err != nil || n != 1 {
		t.Errorf("the sweep inserted %d, %v", n, err)
	}
}

func TestAFloorEndsWithAnotherPolicyOfTheTenant(t *testing.T) {
	t.Parallel()
	store, at := floored(t, 0)
	if done := mustAppend(t, store, batch(at, message("x", 1))); done.Compaction != session.CompactionNone {
		t.Fatalf("under the same policy: compaction %s", done.Compaction)
	}
	other := session.Policy{Trigger: 0.8, Hard: 0.95, Document: []byte(`{"target":0.1}`), Patch: []byte(`{"target":0.1}`)}
	if _, _, err := store.ChangeTenantPolicy(t.Context(), at.Tenant, session.TenantPolicy{
		Edit:   func(_, _ json.RawMessage) (session.Policy, error) { return other, nil },
		Rebase: func(_, _ json.RawMessage) (session.Policy, error) { return other, nil },
	}); err != nil {
		t.Fatal(err)
	}
	if done := mustAppend(t, store, batch(at, message("x", 1))); done.Compaction != session.CompactionQueued {
		t.Errorf("under another policy: compaction %s", done.Compaction)
	}
}

func TestNoFloorIsLeftIfThePolicyChangesMeanwhile(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("x", 850)))
	found, err := store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	loseJobs(t, store)
	stale := found.Policy.Version
	stale.Session++
	unchanged := postgres.Outcome{Run: session.Run{State: session.RunUnchanged}, LastSeq: 1, Policy: stale}
	if err := store.CommitCheckpoint(t.Context(), session.Key{Tenant: tenant, Key: found.Key}, unchanged, noJob); err != nil {
		t.Fatal(err)
	}
	if n := liveJobs(t, store); n != 1 {
		t.Errorf("%d jobs under the policy that nothing was planned by", n)
	}
}
