package postgres_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/session"
)

// pages runs a statement as varve_app and counts the pages that it read.
func pages(t *testing.T, store *postgres.Store, tenant uuid.UUID, sql string, args ...any) int {
	t.Helper()
	var plan []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	err := postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		var text []byte
		if err := tx.QueryRow(t.Context(), `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+sql, args...).Scan(&text); err != nil {
			return err
		}
		return json.Unmarshal(text, &plan)
	})
	if err != nil {
		t.Fatal(err)
	}
	return plan[0].Plan.Hit + plan[0].Plan.Read
}

// Whether the tables were analyzed or not, a read must cost what the view costs: not the session's history, and nothing
// of the tenant's other sessions.
func TestAViewReadsAsManyPagesOfALongHistoryAsOfAShortOne(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	policy := session.Policy{Trigger: 0.8, Hard: 0.95, Document: []byte(`{}`)}
	for i := range 100 {
		at := newSession(t, store, tenant, fmt.Sprint("other", i))
		if _, _, err := store.Update(t.Context(), at, session.Change{Policy: &policy}, nil); err != nil {
			t.Fatal(err)
		}
		if err := commit(t, store, at, 0, 0, "x"); err != nil {
			t.Fatal(err)
		}
	}
	short, long := newSession(t, store, tenant, "short"), newSession(t, store, tenant, "long")
	for at, n := range map[session.Address]int{short: 20, long: 10_000} {
		for range n / min(n, 1000) {
			var messages []session.NewMessage
			for i := range min(n, 1000) {
				messages = append(messages, message(fmt.Sprintf("%0500d", i), 0))
			}
			mustAppend(t, store, batch(at, messages...))
		}
		if err := commit(t, store, at, 0, int64(n-10), "x"); err != nil {
			t.Fatal(err)
		}
	}
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			analyze(t, store)
		}
		viewed := func(id string) int {
			at := session.Address{Tenant: tenant, ID: id}
			sql, args := postgres.ViewStatement(at, postgres.Version{})
			return pages(t, store, tenant, sql, args...)
		}
		few, many := viewed("short"), viewed("long")
		if many > few+10 || few > 50 {
			t.Errorf("analyzed %v: %d pages of 20 messages, %d of 10,000", analyzed, few, many)
		}
	}
}

func analyze(t *testing.T, store *postgres.Store) {
	t.Helper()
	// A login that serves owns nothing and may not.
	conn, err := pgx.Connect(t.Context(), pgtest.Superuser(t, store.Pool().Config().ConnString()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `ANALYZE`); err != nil {
		t.Fatal(err)
	}
}
