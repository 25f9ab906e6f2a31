package persist_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/session"
)

// TestACollectionKeepsWhatHasMoved leaves the objects of a tenant that is not served here alone, of which no row may be
// read, and collects those of others.
func TestACollectionKeepsWhatHasMoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, persist.File)
	put(t, w.store, w.key, someResults()...)
	moved, _ := w.objects()
	other, err := w.store.CreateTenant(t.Context(), "other", session.Policy{Trigger: 0.8, Hard: 0.95, Document: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	made, _, err := w.store.Create(t.Context(), session.Address{Tenant: other.ID, ID: "s"}, session.Change{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	write(t, w.store, session.Key{Tenant: other.ID, Key: made.Session.Key}, persist.File, logLines(300_000)) // nothing names it
	if all, _ := w.objects(); len(all) <= len(moved) {
		t.Fatal("the other tenant has no object")
	}
	owner, err := pgx.Connect(t.Context(), pgtest.Owner(t, w.DSN))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = owner.Close(t.Context()) }()
	_, err = owner.Exec(t.Context(), `
		INSERT INTO tenant_moves (tenant, move, name, state)
		VALUES ($1, gen_random_uuid(), 'acme', 'moved')`, w.key.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	w.collect()
	var left []string
	for info, err := range w.store.ResultStores().Outside[persist.File].List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if _, _, ok := persist.ObjectOf(info.Name); ok {
			left = append(left, info.Name)
		}
	}
	if slices.Sort(left); !slices.Equal(left, moved) {
		t.Errorf("left are %q, want %q", left, moved)
	}
}
