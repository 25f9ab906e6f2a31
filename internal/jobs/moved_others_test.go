package jobs_test

import (
	"testing"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// TestTheSweepFollowsOthersBehindATenantThatFails has chores of two tenants, the first of which takes no writes.
func TestTheSweepFollowsOthersBehindATenantThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other, err := w.store.CreateTenant(t.Context(), "other", session.Policy{Trigger: 0.8, Hard: 0.95, Document: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	kinds := []postgres.ChoreKind{postgres.ChorePolicy, postgres.ChoreMetadata}
	for _, kind := range kinds {
		w.asOwner(`INSERT INTO chores (tenant_id, kind, since) VALUES ($1, $3, now() - interval '1 hour'), ($2, $3, now())`,
			w.tenant, other.ID, kind)
	}
	w.asOwner(`INSERT INTO tenant_moves (tenant, move, name, state, frozen_until)
		VALUES ($1, gen_random_uuid(), 'acme', 'frozen', now() + interval '1 hour')`, w.tenant)
	if err := jobs.Sweep(t.Context(), w.store); err == nil {
		t.Error("the sweep does not say that it failed for a tenant")
	}
	for _, kind := range kinds {
		left, err := w.store.Chores(t.Context(), kind, 10)
		if err != nil || len(left) != 1 || left[0].Tenant != w.tenant {
			t.Errorf("of %s is left %v, %v", kind, left, err)
		}
	}
}
