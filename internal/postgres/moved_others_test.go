package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/session"
)

// setMove says how far the move of a tenant is.
func setMove(t *testing.T, dsn string, tenant uuid.UUID, state string) {
	t.Helper()
	owner, err := pgx.Connect(t.Context(), pgtest.Owner(t, dsn))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = owner.Close(t.Context()) }()
	_, err = owner.Exec(t.Context(), `
		INSERT INTO tenant_moves (tenant, move, name, state, frozen_until)
		VALUES ($1, gen_random_uuid(), 'acme', $2, CASE $2 WHEN 'frozen' THEN now() + interval '1 hour' END)
		ON CONFLICT (tenant) DO UPDATE
		   SET state = excluded.state, frozen_until = excluded.frozen_until`, tenant, state)
	if err != nil {
		t.Fatal(err)
	}
}

// twoTenants returns a store with the tenant that moves and another, with due sessions of both.
func twoTenants(t *testing.T, sessions ...string) (store *postgres.Store, dsn string, moves, second uuid.UUID) {
	t.Helper()
	store, dsn = newStoreAt(t)
	moves = newTenant(t, store, "acme")
	second = newTenant(t, store, "other")
	for _, of := range []uuid.UUID{moves, second} {
		for _, id := range sessions {
			mustAppend(t, store, batch(newSession(t, store, of, id), message("x", 900)))
			mustCount(t, store, of, session.Reading{Session: id})
		}
	}
	return store, dsn, moves, second
}

// TestTheRoundPassesATenantThatMoves has the round through all sessions stand in a tenant when its move begins.
func TestTheRoundPassesATenantThatMoves(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"frozen", "moved"} {
		store, dsn, moves, _ := twoTenants(t, "a", "b", "c")
		if _, err := store.Pool().Exec(t.Context(), `WITH gone AS (DELETE FROM due_sessions) DELETE FROM river_job`); err != nil {
			t.Fatal(err)
		}
		if n, err := store.AuditNext(t.Context(), 2, 10); err != nil || n != 2 {
			t.Fatalf("the round began with %d, %v", n, err)
		}
		setMove(t, dsn, moves, state)
		for _, want := range []int{3, 0} {
			if n, err := store.AuditNext(t.Context(), 100, 100); err != nil || n != want {
				t.Errorf("%s: %d jobs, %v, want %d", state, n, err, want)
			}
		}
	}
}

// TestTheSweepLeavesATenantThatHasMoved loses the jobs of two tenants, one of which has moved.
func TestTheSweepLeavesATenantThatHasMoved(t *testing.T) {
	t.Parallel()
	store, dsn, moves, second := twoTenants(t, "a", "b")
	for _, tenant := range []uuid.UUID{moves, second} {
		err := execInTenant(t, store, tenant, `INSERT INTO chores (tenant_id, kind) VALUES ($1, 'replay')`, tenant)
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Pool().Exec(t.Context(), `DELETE FROM river_job`); err != nil {
		t.Fatal(err)
	}
	setMove(t, dsn, moves, "moved")
	if n, err := store.Sweep(t.Context()); err != nil || n != 2 {
		t.Errorf("the sweep inserted %d jobs, %v", n, err)
	}
	chores, err := store.Chores(t.Context(), postgres.ChoreReplay, 10)
	if err != nil || len(chores) != 1 || chores[0].Tenant != second {
		t.Errorf("the chores are %v, %v", chores, err)
	}
	next, err := store.NextTenants(t.Context(), 10)
	if err != nil || len(next) != 1 || next[0] != second {
		t.Errorf("the next tenants are %v, %v", next, err)
	}
	old, err := store.TenantsToLookAt(t.Context(), -time.Hour, 10)
	if err != nil {
		t.Error(err)
	}
	for _, tenant := range old {
		if tenant == moves {
			t.Error("expired sessions of a tenant that has moved are looked for")
		}
	}
}

// TestOperatorsListsPassATenantThatHasMoved reads what operators see of all tenants.
func TestOperatorsListsPassATenantThatHasMoved(t *testing.T) {
	t.Parallel()
	store, dsn, moves, second := twoTenants(t, "a")
	begun, _, err := store.CreateCampaign(t.Context(), session.Campaign{ID: uuid.New(), Pace: session.Pace{MaxRunning: 1}})
	if err != nil {
		t.Fatal(err)
	}
	setMove(t, dsn, moves, "moved")
	found, _, err := store.Fleet(t.Context(), session.FleetTokens, nil, nil, 10)
	if err != nil || len(found) != 1 || found[0].Tenant != second {
		t.Errorf("the list has %v, %v", found, err)
	}
	tenants, err := store.TenantPage(t.Context(), session.Page{Limit: 10, Time: time.Now().Add(time.Hour), ID: uuid.Max})
	if err != nil || len(tenants) != 2 || tenants[1].Usage.Sessions != 1 {
		t.Errorf("the tenants are %v, %v", tenants, err)
	}
	if _, parts, err := store.Campaign(t.Context(), begun.ID); err != nil || len(parts) != 1 || parts[0].Tenant != second {
		t.Errorf("the campaign has %v, %v", parts, err)
	}
	if _, err := store.CompareCampaign(t.Context(), begun.ID); err != nil {
		t.Error(err)
	}
	if sum, err := store.CountCampaign(t.Context(), session.Campaign{}, 10); err != nil || sum.Sessions != 1 {
		t.Errorf("counted are %+v, %v", sum, err)
	}
	if err := store.ControlCampaign(t.Context(), begun.ID, postgres.Pause); err != nil {
		t.Error(err)
	}
	if _, _, err := store.CreateCampaign(t.Context(), session.Campaign{ID: uuid.New(), Pace: session.Pace{MaxRunning: 1}}); err != nil {
		t.Error(err)
	}
}

// TestCountsOfATenantThatHasMovedAreDropped counts what can't be written here any more, and would be tried for ever.
func TestCountsOfATenantThatHasMovedAreDropped(t *testing.T) {
	t.Parallel()
	store, dsn, moves, _ := twoTenants(t, "a")
	setMove(t, dsn, moves, "moved")
	if err := store.CountUsage(t.Context(), moves, []session.Reading{{Session: "a", Views: 1}}); err != nil {
		t.Error(err)
	}
	read := []session.Recalled{{Session: "a", Ref: "m1", Via: session.ViaMCP, Reads: 1, Last: time.Now()}}
	if _, err := store.CountRecalls(t.Context(), moves, read); err != nil {
		t.Error(err)
	}
}

// TestAViewOfATenantThatHasMovedIsNotServed reads before the move, so that the process knows that no tenant moves.
func TestAViewOfATenantThatHasMovedIsNotServed(t *testing.T) {
	t.Parallel()
	store, dsn, moves, second := twoTenants(t, "a")
	view := func(tenant uuid.UUID) error {
		_, err := store.View(t.Context(), session.Address{Tenant: tenant, ID: "a"}, postgres.Version{})
		return err
	}
	if err := view(moves); err != nil {
		t.Fatal(err)
	}
	setMove(t, dsn, moves, "copying")
	time.Sleep(postgres.MovesNoticed)
	if err := view(moves); err != nil {
		t.Errorf("while it is copied: %v", err)
	}
	setMove(t, dsn, moves, "moved")
	var pg *pgconn.PgError
	if err := view(moves); !errors.As(err, &pg) || pg.Code != "VM001" {
		t.Errorf("the view of a tenant that has moved: %v", err)
	}
	if err := view(second); err != nil {
		t.Error(err)
	}
}
