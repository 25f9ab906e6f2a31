package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
)

// TestEveryTableOfSessionsIsArchivedMadeAnewOrStays fails for a new table with a session_key until somebody has decided
// what becomes of its rows when their session is archived.
func TestEveryTableOfSessionsIsArchivedMadeAnewOrStays(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	rows, err := store.Pool().Query(t.Context(), `
		SELECT c.relname
		  FROM pg_class c
		  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'session_key'
		 WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	archived, anew := tier.Tables()
	known := slices.Concat(archived, anew, tier.StayWithSession)
	for _, table := range tables {
		if n := len(known) - len(slices.DeleteFunc(slices.Clone(known), func(k string) bool { return k == table })); n != 1 {
			t.Errorf("%s is in %d of archivedTables, madeAnew and StayWithSession (internal/tier/tables.go): put it into one", table, n)
		}
	}
	for _, table := range known {
		if !slices.Contains(tables, table) {
			t.Errorf("internal/tier/tables.go names %s, which is no table of sessions", table)
		}
	}
}

// TestNoTableKeepsASessionFromBeingDeleted finds the tables whose rows refer to a session.
func TestNoTableKeepsASessionFromBeingDeleted(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	rows, err := store.Pool().Query(t.Context(), `
		SELECT conrelid::regclass::text
		  FROM pg_constraint
		 WHERE contype = 'f' AND confrelid = 'sessions'::regclass AND confdeltype = 'a'`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 15 {
		t.Fatalf("%d tables: %v", len(tables), err)
	}
	// A hold keeps its session from being deleted; a trigger deletes the metadata.
	deleted := append(slices.Clone(postgres.SessionTables), "session_holds", "session_metadata")
	for _, table := range tables {
		if !slices.Contains(deleted, table) {
			t.Errorf("a session with a row of %s cannot be deleted: put it into sessionTables (erase.go)", table)
		}
	}
}

// TestAnArchivedSessionIsHiddenFromStatementsThatDoNotMeanIt asks as the logins that serve.
func TestAnArchivedSessionIsHiddenFromStatementsThatDoNotMeanIt(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("a", 1)))
	if _, _, err := tier.Archive(t.Context(), store, at, nil); err != nil {
		t.Fatal(err)
	}
	count := func(before string) (n int) {
		t.Helper()
		err := postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), before); err != nil {
				return err
			}
			if err := tx.QueryRow(t.Context(), `SELECT count(*) FROM sessions`).Scan(&n); err != nil {
				return err
			}
			tag, err := tx.Exec(t.Context(), `UPDATE sessions SET model = 'changed'`)
			if int(tag.RowsAffected()) != n {
				t.Errorf("%d sessions are seen, and %d changed", n, tag.RowsAffected())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count(`SELECT`); n != 0 {
		t.Errorf("%d sessions are seen", n)
	}
	if n := count(`SELECT set_config('varve.frozen', 'all', true)`); n != 1 {
		t.Errorf("%d sessions are seen by a transaction that means archived ones", n)
	}
	if n := count(`SELECT`); n != 0 {
		t.Errorf("%d sessions are seen behind that transaction", n)
	}
	if stored, err := store.Stored(t.Context(), tenant); err != nil || stored.Sessions != 1 {
		t.Errorf("%+v, %v", stored, err)
	}
	if found, _, err := tier.Unarchive(t.Context(), store, at, nil); err != nil || found.State != session.Restored {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestAnArchiveEndsWhileAPartIsAdded takes a session back while a worker adds a part to its archive, as AddPart does.
func TestAnArchiveEndsWhileAPartIsAdded(t *testing.T) {
	t.Parallel()
	store, dsn := newStoreAt(t)
	at := newSession(t, store, newTenant(t, store, "a"), "s")
	mustAppend(t, store, batch(at, message("a", 1)))
	if _, _, err := tier.Archive(t.Context(), store, at, nil); err != nil {
		t.Fatal(err)
	}
	worker, onlooker := owner(t, dsn), owner(t, dsn)
	execOwner(t, worker, `
		BEGIN;
		UPDATE session_archives SET done = done + 1;
		INSERT INTO archive_parts (tenant_id, session_key, n, body)
		SELECT tenant_id, session_key, 0, 'part' FROM session_archives`)
	back := make(chan error, 1)
	go func() {
		_, _, err := tier.Unarchive(t.Context(), store, at, nil)
		back <- err
	}()
	for waits := false; !waits; time.Sleep(5 * time.Millisecond) {
		err := onlooker.QueryRow(t.Context(), `
			SELECT EXISTS (SELECT FROM pg_stat_activity
			                WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%session_archives%')`).Scan(&waits)
		if err != nil {
			t.Fatal(err)
		}
	}
	execOwner(t, worker, `COMMIT`)
	if err := <-back; err != nil {
		t.Error(err)
	}
	if _, err := store.Session(t.Context(), at); err != nil {
		t.Error(err)
	}
}
