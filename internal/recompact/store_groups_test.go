package recompact_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/recompact"
	"github.com/varve-dev/varve/internal/session"
)

// aGroup begins a recompaction of tenants that was begun 40 days ago.
func aGroup(t *testing.T, operator recompact.Store, dsn string, tenants ...uuid.UUID) uuid.UUID {
	t.Helper()
	made, _, err := operator.CreateGroup(t.Context(), recompact.Group{
		ID: uuid.New(), Tenants: tenants, Pace: recompact.Pace{MaxRunning: 1},
		Filter: session.SessionFilter{Metadata: []byte(`{"user_id":"somebody"}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	owner, err := pgx.Connect(t.Context(), pgtest.Superuser(t, dsn))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = owner.Close(t.Context()) }()
	_, err = owner.Exec(t.Context(), `
		UPDATE recompactions
		   SET created_at = now() - interval '40 days'
		 WHERE group_id = $1`, made.ID)
	if err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// endPart lets the recompaction of a tenant of a group have begun 40 days ago, and ended some days ago.
func endPart(t *testing.T, operator recompact.Store, tenant, group uuid.UUID, days int) {
	t.Helper()
	err := execInTenant(t, operator, tenant, `
		UPDATE recompactions
		   SET state = 'done', created_at = now() - interval '40 days', finished_at = now() - make_interval(days => $3)
		 WHERE tenant_id = $1 AND group_id = $2`, tenant, group, days)
	if err != nil {
		t.Fatal(err)
	}
}

// A group goes with the recompaction of its last tenant, and with it the filter, which may name a person.
func TestAGroupIsForgottenWithItsRecompactions(t *testing.T) {
	t.Parallel()
	operator, dsn := newStoreAt(t)
	one, two := newTenant(t, operator, "one"), newTenant(t, operator, "two")
	worker := openStore(t, pgtest.Worker(dsn))
	old, recent := aGroup(t, operator, dsn, one, two), aGroup(t, operator, dsn, one)
	running, ofTwo := aGroup(t, operator, dsn, one), aGroup(t, operator, dsn, two)
	endPart(t, operator, one, old, 31)
	endPart(t, operator, two, old, 31)
	endPart(t, operator, one, recent, 29)
	endPart(t, operator, two, ofTwo, 31)
	if err := worker.Prune(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	left, parts, err := operator.Group(t.Context(), old)
	if err != nil || len(left.Tenants) != 1 || left.Tenants[0] != two || len(parts) != 1 {
		t.Errorf("one tenant's part was forgotten: %+v, %+v, %v", left, parts, err)
	}
	if err := worker.Prune(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	for id, kept := range map[uuid.UUID]bool{old: false, ofTwo: false, recent: true, running: true} {
		_, parts, err := operator.Group(t.Context(), id)
		if kept && (err != nil || len(parts) != 1) || !kept && !errors.Is(err, session.ErrNotFound) {
			t.Errorf("group %s, to be kept: %v: %+v, %v", id, kept, parts, err)
		}
	}
}

// The functions that run as the owner of the schema see what its policies let it see, unless it is a superuser.
func TestOperatorsRecompactWhereTheOwnerIsNoSuperuser(t *testing.T) {
	t.Parallel()
	operator, dsn := newStoreAt(t)
	one, two := newTenant(t, operator, "one"), newTenant(t, operator, "two")
	owner, err := pgx.Connect(t.Context(), pgtest.Superuser(t, dsn))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = owner.Close(t.Context()) }()
	name := "owner_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	_, err = owner.Exec(t.Context(), `
		CREATE ROLE `+name+` NOLOGIN;
		GRANT ALL ON SCHEMA public TO `+name+`;
		ALTER TABLE events OWNER TO `+name+`;
		ALTER TABLE event_heads OWNER TO `+name+`;
		ALTER FUNCTION event_number() OWNER TO `+name)
	if err != nil {
		t.Fatal(err)
	}
	made, parts, err := operator.CreateGroup(t.Context(), recompact.Group{
		ID: uuid.New(), Tenants: []uuid.UUID{one, two}, Pace: recompact.Pace{MaxRunning: 1},
	})
	if err != nil || len(parts) != 2 {
		t.Fatalf("%+v, %v", parts, err)
	}
	if err := operator.ControlGroup(t.Context(), made.ID, recompact.Cancel); err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []uuid.UUID{one, two} {
		told := ""
		err := postgres.InTenant(t.Context(), operator.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `
				SELECT string_agg(n || ' ' || type, ', ' ORDER BY n)
				  FROM events`).Scan(&told)
		})
		if err != nil || told != "1 recompaction.started, 2 recompaction.ended" {
			t.Errorf("tenant %s is told %q, %v", tenant, told, err)
		}
	}
	_, err = owner.Exec(t.Context(), `
		REASSIGN OWNED BY `+name+` TO CURRENT_USER;
		DROP OWNED BY `+name+`;
		DROP ROLE `+name)
	if err != nil {
		t.Error(err)
	}
}
