package jobs_test

import (
	"testing"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// TestTheSweepWritesThePairsOfOldSessions makes sessions as they are after the migration: without pairs of metadata.
func TestTheSweepWritesThePairsOfOldSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"a", "b"} {
		at := session.Address{Tenant: w.tenant, ID: id}
		change := session.Change{Metadata: []byte(`{"user":"u1","app":"x"}`)}
		if _, _, err := w.store.Create(t.Context(), at, change, nil); err != nil {
			t.Fatal(err)
		}
	}
	w.inTenant(`DELETE FROM session_metadata WHERE tenant_id = $1`, w.tenant)
	w.inTenant(`INSERT INTO chores (tenant_id, kind) VALUES ($1, $2)`, w.tenant, postgres.ChoreMetadata)
	if err := jobs.Sweep(t.Context(), w.store); err != nil {
		t.Fatal(err)
	}
	if n := w.count("session_metadata"); n != 4 {
		t.Errorf("%d pairs, not 4", n)
	}
	if left, err := w.store.Chores(t.Context(), postgres.ChoreMetadata, 10); err != nil || len(left) != 0 {
		t.Errorf("%v is left: %v", left, err)
	}
}
