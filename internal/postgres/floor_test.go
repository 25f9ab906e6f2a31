package postgres_test

import (
	"encoding/json"
	"errors"
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
		Run: session.Run{State: session.RunUnchanged}, LastSeq: 1, Under: under(found), FreedAfter: freedAfter,
	}
	if err := store.CommitCheckpoint(t.Context(), session.Key{Tenant: tenant, Key: found.Key}, unchanged, noJob); err != nil {
		t.Fatal(err)
	}
	if n := liveJobs(t, store); n != 0 {
		t.Fatalf("%d jobs follow a compaction that found nothing to do", n)
	}
	return store, at
}

func under(s session.Session) postgres.Conditions {
	return postgres.Conditions{Policy: s.Policy.Version, Window: s.WindowTokens, Overhead: s.OverheadTokens}
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
	if n, err := sweep(t, store); err != nil || n != 0 {
		t.Fatalf("the sweep inserted %d, %v", n, err)
	}
	for range 3 {
		mustAppend(t, store, batch(at, message("x", 1)))
	}
	loseJobs(t, store)
	if n, err := sweep(t, store); err != nil || n != 1 {
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

func TestNoFloorIsLeftByARunUnderAnotherPolicy(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]func(*postgres.Conditions){
		"an older one":             func(c *postgres.Conditions) { c.Policy.Session++ },
		"that of a recompaction":   func(c *postgres.Conditions) { c.Lent = true },
		"an older one of a tenant": func(c *postgres.Conditions) { c.Policy.Tenant-- },
	} {
		store, tenant := newStore(t)
		at := newSession(t, store, tenant, "s")
		mustAppend(t, store, batch(at, message("x", 850)))
		found, err := store.Session(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		loseJobs(t, store)
		planned := under(found)
		other(&planned)
		unchanged := postgres.Outcome{Run: session.Run{State: session.RunUnchanged}, LastSeq: 1, Under: planned}
		if err := store.CommitCheckpoint(t.Context(), session.Key{Tenant: tenant, Key: found.Key}, unchanged, noJob); err != nil {
			t.Fatal(err)
		}
		if n := liveJobs(t, store); n != 1 {
			t.Errorf("%s: %d jobs under the policy that nothing was planned by", name, n)
		}
	}
}

// TestWhatChangesMeanwhileEndsTheFloor changes a session between the plan of a run that finds nothing and its commit,
// and after the commit.
func TestWhatChangesMeanwhileEndsTheFloor(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*postgres.Store, session.Address) error{
		"window": func(store *postgres.Store, at session.Address) error {
			window := 990
			_, _, err := store.Update(t.Context(), at, session.Change{WindowTokens: &window}, nil)
			return err
		},
		"overhead": func(store *postgres.Store, at session.Address) error {
			overhead := 5
			_, _, err := store.Update(t.Context(), at, session.Change{OverheadTokens: &overhead}, nil)
			return err
		},
		"removal": func(store *postgres.Store, at session.Address) error {
			_, _, err := store.Remove(t.Context(), at, 2, nil)
			return err
		},
	} {
		for _, before := range []bool{true, false} {
			store, tenant := newStore(t)
			at := newSession(t, store, tenant, "s")
			mustAppend(t, store, batch(at, message("x", 850), message("y", 10)))
			found, err := store.Session(t.Context(), at)
			if err != nil {
				t.Fatal(err)
			}
			commit := func() error {
				loseJobs(t, store) // the commit completes its own, and what asked meanwhile was answered with that
				unchanged := postgres.Outcome{Run: session.Run{State: session.RunUnchanged}, LastSeq: 2, Under: under(found)}
				return store.CommitCheckpoint(t.Context(), session.Key{Tenant: tenant, Key: found.Key}, unchanged, noJob)
			}
			first, then := commit, func() error { return change(store, at) }
			if before {
				first, then = then, first
			}
			if err := errors.Join(first(), then()); err != nil {
				t.Fatal(err)
			}
			if n := liveJobs(t, store); n != 1 {
				t.Errorf("%s, before the commit: %t: %d jobs", name, before, n)
			}
		}
	}
}
