package postgres_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(migrates); dsn != "" { // a process that a test starts
		if err := postgres.Migrate(context.Background(), dsn); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(pgtest.Main(m))
}

// newStore returns a Store on an empty database, with a tenant whose trigger is at 800 and hard limit at 950 tokens of a
// window of 1,000.
func newStore(t testing.TB) (*postgres.Store, uuid.UUID) {
	t.Helper()
	store, _ := newStoreAt(t)
	return store, newTenant(t, store, "acme")
}

func newStoreAt(t testing.TB) (*postgres.Store, string) {
	t.Helper()
	dsn := pgtest.NewWarm(t)
	return openStore(t, pgtest.Admin(dsn)), dsn
}

func openStore(t testing.TB, dsn string) *postgres.Store {
	t.Helper()
	pool := pgtest.Pool(t, dsn, 20)
	inserts, err := queue.New(pool)
	if err != nil {
		t.Fatal(err)
	}
	return postgres.New(pool, inserts, nil)
}

func newTenant(t testing.TB, store *postgres.Store, name string) uuid.UUID {
	t.Helper()
	tenant, err := store.CreateTenant(t.Context(), name, session.Policy{Trigger: 0.8, Hard: 0.95, Document: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	return tenant.ID
}

func newSession(t testing.TB, store *postgres.Store, tenant uuid.UUID, id string) session.Address {
	t.Helper()
	at := session.Address{Tenant: tenant, ID: id}
	window := 1000
	made, _, err := store.Create(t.Context(), at, session.Change{WindowTokens: &window}, nil)
	if err != nil || !made.Created {
		t.Fatalf("session %s: %+v, %v", id, made, err)
	}
	return at
}

func message(text string, tokens int) session.NewMessage {
	return session.NewMessage{Body: fmt.Appendf(nil, `{"role":"user","content":%q}`, text), Role: "user", Tokens: tokens, StartsUnit: true}
}

func batch(at session.Address, messages ...session.NewMessage) session.Append {
	return session.Append{Session: at, Format: session.OpenAIChat, Messages: messages}
}

func mustAppend(t testing.TB, store *postgres.Store, a session.Append) session.Appended {
	t.Helper()
	done, _, err := store.Append(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// execInTenant runs a statement as varve_app with this tenant set, as the store does.
func execInTenant(t testing.TB, store *postgres.Store, tenant uuid.UUID, sql string, args ...any) error {
	t.Helper()
	return postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), sql, args...)
		return err
	})
}

func liveJobs(t testing.TB, store *postgres.Store) (n int) {
	t.Helper()
	err := store.Pool().QueryRow(t.Context(), `
		SELECT count(*)
		  FROM river_job
		 WHERE kind = 'compact' AND state IN ('available', 'scheduled', 'running', 'retryable', 'pending')`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTimesAreReadInUTC(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "chat")
	mustAppend(t, store, batch(at, message("hello", 1)))
	found, err := store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	for name, when := range map[string]*time.Time{"created_at": &found.CreatedAt, "last_append_at": found.LastAppendAt} {
		if when.Location() != time.UTC {
			t.Errorf("%s is in %s", name, when.Location())
		}
	}
}

// TestATransactionThatIsUndoneForOthersRunsAgain has transactions fail as a deadlock does, or once they have read a
// request, which cannot be read twice.
func TestATransactionThatIsUndoneForOthersRunsAgain(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	for _, c := range []struct {
		code  string
		fails int // times
		runs  int
	}{{"40P01", 1, 2}, {"40001", 3, 4}, {"40001", 9, 4}, {"55P03", 1, 1}} {
		runs := 0
		fail := func(tx pgx.Tx) error {
			if runs++; runs <= c.fails {
				_, err := tx.Exec(t.Context(), `DO $$ BEGIN RAISE EXCEPTION 'undone' USING ERRCODE = '`+c.code+`'; END $$`)
				return err
			}
			return nil
		}
		err := store.InTenant(t.Context(), tenant, fail)
		if runs != c.runs || (err == nil) != (c.fails < c.runs) {
			t.Errorf("%s %d times: it ran %d times, %v", c.code, c.fails, runs, err)
		}
		runs = 0
		_, _, err = postgres.Keyed(t.Context(), store, session.Address{Tenant: tenant}, nil, func(inside *postgres.Store) (int, error) {
			return 0, inside.InTenant(t.Context(), tenant, fail)
		})
		if err == nil || runs != 1 {
			t.Errorf("%s %d times, with a key: it ran %d times, %v", c.code, c.fails, runs, err)
		}
	}
}
