package postgres_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// An import that waits for a session holds none that comes after it in the order of the keys: two imports with the same
// sessions in other orders never wait for each other.
func TestAnImportLocksItsSessionsInOrder(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	ids := []string{"one", "two"}
	keys := map[string]uuid.UUID{}
	for _, id := range ids {
		found, err := store.Session(t.Context(), newSession(t, store, tenant, id))
		if err != nil {
			t.Fatal(err)
		}
		keys[id] = found.Key
	}
	first, second := ids[0], ids[1]
	if keys[first].String() > keys[second].String() {
		first, second = second, first
	}
	begun, err := store.BeginImport(t.Context(), tenant, "", "", "")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	err = postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SELECT FROM sessions WHERE tenant_id = $1 AND key = $2 FOR UPDATE`, tenant, keys[first]); err != nil {
			return err
		}
		go func() {
			done <- store.StoreImportLines(t.Context(), tenant, &begun, []session.ImportLine{
				{Line: 1, End: &session.ImportedEnd{Session: second, LastSeq: 1}, Outcome: session.LineChecked},
				{Line: 2, End: &session.ImportedEnd{Session: first, LastSeq: 1}, Outcome: session.LineChecked},
			})
		}()
		for waits := false; !waits; {
			err := tx.QueryRow(t.Context(), `
				SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid)))`).Scan(&waits)
			if err != nil {
				return err
			}
		}
		_, err := tx.Exec(t.Context(), `SELECT FROM sessions WHERE tenant_id = $1 AND key = $2 FOR UPDATE NOWAIT`, tenant, keys[second])
		return err
	})
	if err != nil {
		t.Errorf("the import waits for one session and holds the other: %v", err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
