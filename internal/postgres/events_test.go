package postgres_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/session"
)

func eventsOf(t testing.TB, store *postgres.Store, tenant uuid.UUID, f postgres.EventFilter) postgres.Events {
	t.Helper()
	if f.Limit == 0 {
		f.Limit = 100
	}
	found, err := store.Events(t.Context(), tenant, f)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func typesOf(events []session.Event) (types []session.EventType) {
	for _, e := range events {
		types = append(types, e.Type)
	}
	return types
}

// A transaction that writes its event first and commits last comes last: who has read up to the event before it misses
// nothing. It keeps nobody waiting until it commits.
func TestAnEventThatIsCommittedLateComesLate(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	const write = `
		INSERT INTO events (tenant_id, id, type, topic, data)
		VALUES ($1, gen_random_uuid(), $2, $2, '{}')`
	late, err := store.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = late.Rollback(t.Context()) }()
	if _, err := late.Exec(t.Context(), `SELECT set_config('app.tenant_id', $1, true)`, tenant.String()); err != nil {
		t.Fatal(err)
	}
	if _, err := late.Exec(t.Context(), write, tenant, "late"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		err := postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `SET LOCAL lock_timeout = '2s'`)
			if err == nil {
				_, err = tx.Exec(t.Context(), write, tenant, "early")
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	read := eventsOf(t, store, tenant, postgres.EventFilter{})
	if got := typesOf(read.Page); !slices.Equal(got, []session.EventType{"early", "early", "early"}) {
		t.Fatalf("before the late commit: %v", got)
	}
	if err := late.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := read.Next(postgres.EventFilter{Limit: 100})
	after := eventsOf(t, store, tenant, postgres.EventFilter{After: next})
	if got := typesOf(after.Page); !slices.Equal(got, []session.EventType{"late"}) {
		t.Errorf("after %d came %v, want the late one", next, got)
	}
	if after.Head != 4 || after.Page[0].N != 4 {
		t.Errorf("the head is %d, and the late event has the number %d", after.Head, after.Page[0].N)
	}
}

// One append tells that the session is due, those before and behind it tell nothing, and the compaction tells what left.
func TestASessionTellsThatItIsDueAndThatItWasCompacted(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at, other := newSession(t, store, tenant, "chat/ä"), newSession(t, store, tenant, "other")
	mustAppend(t, store, batch(other, message("hello", 10)))
	mustAppend(t, store, batch(at, message("hello", 10)))
	if got := eventsOf(t, store, tenant, postgres.EventFilter{}); got.Head != 0 || len(got.Page) != 0 {
		t.Fatalf("appends below the trigger told %v", typesOf(got.Page))
	}
	mustAppend(t, store, batch(at, message("long", 850)))
	mustAppend(t, store, batch(at, message("more", 10)))
	if err := commitOf(t, store, at, 0, 3, 3, 100, "x"); err != nil {
		t.Fatal(err)
	}
	got := eventsOf(t, store, tenant, postgres.EventFilter{Session: at.ID})
	if types := typesOf(got.Page); !slices.Equal(types, []session.EventType{session.EventDue, session.EventCompacted}) {
		t.Fatalf("events %v", types)
	}
	if id := got.Page[1].Session; id == nil || *id != at.ID {
		t.Errorf("it is about session %v", id)
	}
	var told struct {
		Checkpoint int   `json:"checkpoint"`
		Through    int64 `json:"through_seq"`
		Loss       struct {
			Entries  *int   `json:"entries"`
			Manifest string `json:"manifest"`
		} `json:"loss"`
	}
	if err := json.Unmarshal(got.Page[1].Data, &told); err != nil || told.Checkpoint != 1 || told.Through != 3 ||
		told.Loss.Entries == nil || told.Loss.Manifest != "/v1/sessions/chat%2F%C3%A4/checkpoints/1" {
		t.Errorf("compacted: %s, %v", got.Page[1].Data, err)
	}
	one := eventsOf(t, store, tenant, postgres.EventFilter{Types: []session.EventType{session.EventCompacted}})
	if len(one.Page) != 1 || one.Page[0].N != 2 {
		t.Errorf("by type: %v", typesOf(one.Page))
	}
	if _, err := store.Delete(t.Context(), at, nil); err != nil {
		t.Fatal(err)
	}
	if left := eventsOf(t, store, tenant, postgres.EventFilter{}); len(left.Page) != 0 || left.Head != 2 {
		t.Errorf("of an erased session are left: %v", typesOf(left.Page))
	}
}

func TestEventsAreForgottenAfterTheirTime(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "chat")
	for range 3 {
		mustAppend(t, store, batch(at, message("long", 850)))
		loseJobs(t, store)
		if _, err := store.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	all := eventsOf(t, store, tenant, postgres.EventFilter{})
	if len(all.Page) < 3 {
		t.Fatalf("%d events", len(all.Page))
	}
	if err := makeOlder(t, store, tenant, 2, session.EventRetention+time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := store.Prune(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	left := eventsOf(t, store, tenant, postgres.EventFilter{})
	if left.Head != all.Head || left.Oldest != 3 || len(left.Page) != len(all.Page)-2 {
		t.Errorf("left are %d, of which the first is %d; the head is %d", len(left.Page), left.Oldest, left.Head)
	}
}

// The numbers are given at the commit, when a transaction over several tenants is the last one's, or nobody's.
func TestATransactionOverSeveralTenantsNumbersTheEventsOfEach(t *testing.T) {
	t.Parallel()
	store, first := newStore(t)
	other := newTenant(t, store, "other")
	err := pgx.BeginFunc(t.Context(), store.Pool(), func(tx pgx.Tx) error {
		const enter = `SELECT set_config('app.tenant_id', $1, true)`
		for _, tenant := range []uuid.UUID{first, other, first} {
			if _, err := tx.Exec(t.Context(), enter, tenant.String()); err != nil {
				return err
			}
			_, err := tx.Exec(t.Context(), `
				INSERT INTO events (tenant_id, id, type, topic, data)
				VALUES ($1, gen_random_uuid(), 'x', 'x', '{}')`, tenant)
			if err != nil {
				return err
			}
		}
		_, err := tx.Exec(t.Context(), enter, "")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for tenant, want := range map[uuid.UUID]int64{first: 2, other: 1} {
		if found := eventsOf(t, store, tenant, postgres.EventFilter{}); found.Head != want || len(found.Page) != int(want) {
			t.Errorf("%d events, the newest is %d, want %d", len(found.Page), found.Head, want)
		}
	}
}

// makeOlder makes the events up to a number older. It takes the owner of the tables: who serves may change none.
func makeOlder(t testing.TB, store *postgres.Store, tenant uuid.UUID, n int64, age time.Duration) error {
	t.Helper()
	const sql = `UPDATE events SET at = at - $3::interval WHERE tenant_id = $1 AND n <= $2`
	if err := execInTenant(t, store, tenant, sql, tenant, n, age); err == nil {
		t.Error("a login that serves can change events")
	}
	owner, err := pgx.Connect(t.Context(), pgtest.Superuser(t, store.Pool().Config().ConnString()))
	if err != nil {
		return err
	}
	defer func() { _ = owner.Close(t.Context()) }()
	_, err = owner.Exec(t.Context(), `SELECT set_config('app.tenant_id', $1, false)`, tenant.String())
	if err == nil {
		_, err = owner.Exec(t.Context(), sql, tenant, n, age)
	}
	return err
}
