package jobs_test

import (
	"strings"
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
	w.inTenant(`INSERT INTO tenant_tasks (tenant_id, kind) VALUES ($1, $2)`, w.tenant, postgres.TaskMetadata)
	if err := jobs.Sweep(t.Context(), w.store); err != nil {
		t.Fatal(err)
	}
	if n := w.count("session_metadata"); n != 4 {
		t.Errorf("%d pairs, not 4", n)
	}
	if left, err := w.store.Tasks(t.Context(), postgres.TaskMetadata, 10); err != nil || len(left) != 0 {
		t.Errorf("%v is left: %v", left, err)
	}
}

// TestTheSweepGoesOnBehindATenantThatFails has tasks of two tenants, the first of which can end none.
func TestTheSweepGoesOnBehindATenantThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other, err := w.store.CreateTenant(t.Context(), "other", session.Policy{Trigger: 0.8, Hard: 0.95, Document: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	kinds := []postgres.TaskKind{postgres.TaskPolicy, postgres.TaskMetadata, postgres.TaskErasure, "archive"}
	for _, kind := range kinds {
		w.asOwner(`INSERT INTO tenant_tasks (tenant_id, kind, since) VALUES ($1, $3, now() - interval '1 hour'), ($2, $3, now())`, w.tenant, other.ID, kind)
	}
	w.asOwner(`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''it fails''; END'`)
	w.asOwner(`CREATE TRIGGER fail BEFORE UPDATE OR DELETE ON tenant_tasks FOR EACH ROW WHEN (OLD.tenant_id = '` + w.tenant.String() + `') EXECUTE FUNCTION fail()`)
	if err := jobs.Sweep(t.Context(), w.store); err == nil || !strings.Contains(err.Error(), w.tenant.String()) {
		t.Errorf("the sweep does not say for whom it failed: %v", err)
	}
	for _, kind := range kinds {
		left, err := w.store.Tasks(t.Context(), kind, 10)
		if err != nil || len(left) != 1 || left[0].Tenant != w.tenant {
			t.Errorf("of %s is left %v, %v", kind, left, err)
		}
	}
}
