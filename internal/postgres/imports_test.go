package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// An import that waits for a session, or for its id, holds none that comes after it in the order of the ids: two
// imports with the same sessions in other orders never wait for each other.
func TestAnImportLocksItsSessionsInOrder(t *testing.T) {
	t.Parallel()
	const lock = `SELECT FROM sessions WHERE tenant_id = $1 AND id = $2 FOR UPDATE NOWAIT`
	const create = `
		INSERT INTO sessions (tenant_id, key, id, window_tokens, policy_id)
		VALUES ($1, gen_random_uuid(), $2, 1000, '00000000-0000-0000-0000-000000000000')`
	for name, c := range map[string]struct {
		there        []string // sessions that exist
		first, other string   // what another transaction does with the first session and, while the import waits, the other
	}{
		"all exist":         {[]string{"one", "two"}, lock, lock},
		"none exists":       {nil, create, create},
		"the first exists":  {[]string{"one"}, lock, create},
		"the second exists": {[]string{"two"}, create, lock},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, tenant := newStore(t)
			for _, id := range c.there {
				newSession(t, store, tenant, id)
			}
			begun, err := store.BeginImport(t.Context(), tenant, "", "", "")
			if err != nil {
				t.Fatal(err)
			}
			imported := func(id string) session.ImportLine {
				m := message("hello", 1)
				m.ItemID = "rs_" + id
				return session.ImportLine{
					Message: &session.ImportedMessage{Session: id, Format: session.OpenAIChat, NewMessage: m},
					Outcome: session.LineChecked,
				}
			}
			done := make(chan error, 1)
			err = postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), c.first, tenant, "one"); err != nil {
					return err
				}
				go func() {
					done <- store.StoreImportLines(t.Context(), tenant, &begun, []session.ImportLine{imported("two"), imported("one")})
				}()
				if err := untilOneWaitsFor(t, store, tx.Conn().PgConn().PID()); err != nil {
					return err
				}
				_, err := tx.Exec(t.Context(), c.other, tenant, "two")
				return err
			})
			if err != nil {
				t.Errorf("the import waits for one session and holds the other: %v", err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			if begun.Messages != 2 || begun.Sessions != 0 && len(c.there) == 2 {
				t.Errorf("imported %+v", begun)
			}
			found, err := store.WithItemID(t.Context(), session.Address{Tenant: tenant, ID: "two"}, "rs_two")
			if err != nil || len(found) != 1 {
				t.Errorf("the item of the second session: %+v, %v", found, err)
			}
		})
	}
}

// untilOneWaitsFor returns when a statement waits for a transaction of a connection, and an error if none does for long.
// The transaction itself cannot tell: it sees the activity of its first look.
func untilOneWaitsFor(t *testing.T, store *postgres.Store, pid uint32) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for waits := false; !waits; {
		err := store.Pool().QueryRow(ctx, `
			SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))`, pid).Scan(&waits)
		if err != nil {
			return fmt.Errorf("nobody waits for the transaction: %w", err)
		}
	}
	return nil
}
