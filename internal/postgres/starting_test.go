package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/session"
)

func TestTheRunThatIsStarting(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	if _, err := store.StartingRun(t.Context(), session.Address{Tenant: tenant, ID: "none"}, time.Hour); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("of a session that is not there: %v", err)
	}
	mustAppend(t, store, batch(at, message("a", 10)))
	if _, err := store.StartingRun(t.Context(), at, time.Hour); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("of a session that is not due: %v", err)
	}
	mustAppend(t, store, batch(at, message("b", 2000)))
	asked, err := store.StartingRun(t.Context(), at, time.Hour)
	if err != nil || asked.State != session.RunQueued {
		t.Fatalf("after an append over the hard limit: %+v, %v", asked, err)
	}
	change := func(sql string) {
		t.Helper()
		if err := execInTenant(t, store, tenant, sql); err != nil {
			t.Fatal(err)
		}
	}
	missing := func(when string) {
		t.Helper()
		if found, err := store.StartingRun(t.Context(), at, time.Hour); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%s: run %s, %v", when, found.ID, err)
		}
	}
	change(`UPDATE river_job SET state = 'scheduled', scheduled_at = now() + interval '1 h'`)
	missing("a run that waits for a cold cache")
	change(`UPDATE river_job SET state = 'available', scheduled_at = now()`)
	change(`UPDATE sessions SET last_append_at = now() - interval '2 h'`)
	change(`UPDATE runs SET triggered_at = now() - interval '2 h'`)
	missing("a run that no worker takes")
	change(`UPDATE runs SET started_at = now() - interval '1 min', state = 'running'`)
	if found, err := store.StartingRun(t.Context(), at, time.Hour); err != nil || found.ID != asked.ID {
		t.Errorf("a run that runs: %s, %v, want %s", found.ID, err, asked.ID)
	}
	change(`UPDATE runs SET state = 'unchanged'`)
	change(`DELETE FROM river_job`)
	missing("a run that has ended, and nothing is armed")
	change(`UPDATE sessions SET armed_threshold = 1`)
	again, err := store.StartingRun(t.Context(), at, time.Hour)
	if err != nil || again.ID == asked.ID || again.Cause != "hard" {
		t.Errorf("a session that is due without a run: %+v, %v", again, err)
	}
}
