package postgres_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/session"
)

const tenantPolicy = `(tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)`

// notOfWorkers leaves out what workers read of all tenants, as they read jobs. It has ids and times only.
const notOfWorkers = ` AND c.relname NOT IN ('due_sessions', 'tenant_tasks', 'event_heads', 'webhook_turns', 'retention')`

func TestEveryTableOfATenantIsBehindForcedRowLevelSecurity(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	rows, err := store.Pool().Query(t.Context(), `
		SELECT c.relname, c.relrowsecurity, c.relforcerowsecurity,
		       coalesce((SELECT string_agg(p.qual || ' ' || p.with_check, ';') FROM pg_policies p WHERE p.tablename = c.relname), '')
		  FROM pg_class c
		  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
		 WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace`+notOfWorkers)
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	var table, policy string
	var enabled, forced bool
	if _, err := pgx.ForEachRow(rows, []any{&table, &enabled, &forced, &policy}, func() error {
		tables++
		// The owner of search_candidates is not bound on its table: the function asks for the tenant itself.
		if !enabled || forced == (table == "search_blocks") || policy != tenantPolicy+" "+tenantPolicy {
			t.Errorf("%s is not in the migration's list of row-level security: enabled %v, forced %v, policy %s", table,
				enabled, forced, policy)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if tables < 10 {
		t.Errorf("%d tables with a tenant_id, want at least 10", tables)
	}
}

// ofEveryTenant are the indexes for the lists of all tenants' sessions and recompactions.
var ofEveryTenant = []string{"usage_sessions_tokens", "usage_sessions_bytes", "usage_sessions_idle", "usage_sessions_unread",
	"usage_sessions_over", "session_failures_oldest", "session_failures_quarantined",
	"recompactions_group", "recompactions_groups", "usage_days_day", "model_spending_day"}

func TestEveryKeyOfATenantsTableBeginsWithTheTenant(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	rows, err := store.Pool().Query(t.Context(), `
		SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid)
		  FROM pg_index i
		  JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attname = 'tenant_id'
		  JOIN pg_class c ON c.oid = i.indrelid
		 WHERE c.relnamespace = 'public'::regnamespace`+notOfWorkers)
	if err != nil {
		t.Fatal(err)
	}
	var name, definition string
	if _, err := pgx.ForEachRow(rows, []any{&name, &definition}, func() error {
		// The tenant is one of the words; what is of every tenant is for operators, whom alone a policy lets read it so.
		every := slices.Contains(ofEveryTenant, name)
		if !strings.Contains(definition, "USING btree (tenant_id") && name != "search_blocks_words" && !every {
			t.Errorf("index %s does not begin with the tenant: %s", name, definition)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	rows, err = store.Pool().Query(t.Context(), `
		SELECT conrelid::regclass || ' ' || conname, pg_get_constraintdef(oid)
		  FROM pg_constraint
		 WHERE contype = 'f' AND connamespace = 'public'::regnamespace`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pgx.ForEachRow(rows, []any{&name, &definition}, func() error {
		if !strings.HasPrefix(definition, "FOREIGN KEY (tenant_id") {
			t.Errorf("%s crosses tenants: %s", name, definition)
		}
		if strings.Contains(definition, "CASCADE") {
			t.Errorf("%s cascades: %s", name, definition)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestWithoutATenantNothingIsSeenAndNothingCanBeWritten(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("a", 1)))
	for range 30 { // whatever connection of the pool it is, and whatever it did before
		var sessions, messages int
		if err := store.Pool().QueryRow(t.Context(), `SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM messages)`).Scan(&sessions, &messages); err != nil {
			t.Fatal(err)
		}
		if sessions != 0 || messages != 0 {
			t.Fatalf("without a tenant %d sessions and %d messages are seen", sessions, messages)
		}
	}
	_, err := store.Pool().Exec(t.Context(), `
		INSERT INTO idempotency (tenant_id, route, key, digest, answer)
		VALUES ($1, 'r', 'k', '', '')`, [16]byte(tenant))
	if err == nil || !strings.Contains(err.Error(), "row-level security") {
		t.Errorf("an insert without a tenant: %v", err)
	}
}

func TestOneTenantCannotReachAnothersSession(t *testing.T) {
	t.Parallel()
	store, a := newStore(t)
	b := newTenant(t, store, "b")
	newSession(t, store, a, "same")
	theirs := newSession(t, store, b, "same")
	mustAppend(t, store, batch(theirs, message("secret", 1)))
	view, err := store.View(t.Context(), session.Address{Tenant: a, ID: "same"}, postgres.Version{})
	if err != nil || view.LastSeq != 0 || view.Tail != nil {
		t.Errorf("tenant a reads %+v, %v", view, err)
	}
	found, err := store.Session(t.Context(), theirs)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`UPDATE sessions SET model = 'x' WHERE key = $1`, `DELETE FROM messages WHERE session_key = $1`, `DELETE FROM sessions WHERE key = $1`,
	} {
		if err := execInTenant(t, store, a, sql, [16]byte(found.Key)); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if view, err = store.View(t.Context(), theirs, postgres.Version{}); err != nil || view.LastSeq != 1 || view.Tail == nil {
		t.Errorf("after tenant a's statements tenant b reads %+v, %v", view, err)
	}
	err = execInTenant(t, store, a, `
		INSERT INTO runs (tenant_id, id, session_key, cause, state, job_id)
		VALUES ($1, gen_random_uuid(), $2, 'manual', 'queued', 1)`, [16]byte(a), [16]byte(found.Key))
	if err == nil {
		t.Error("tenant a inserted a run of tenant b's session")
	}
}

func TestMessagesCannotBeChanged(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("a", 1)))
	store = openStore(t, pgtest.Worker(store.Pool().Config().ConnString()))
	for sql, want := range map[string]string{
		`UPDATE messages SET role = 'x' WHERE tenant_id = $1`:                  "permission denied",
		`UPDATE messages SET body = 'x' WHERE tenant_id = $1`:                  "written once",
		`UPDATE messages SET body = NULL WHERE tenant_id = $1`:                 "messages_packed_check",
		`UPDATE messages SET bytes = 1, view_body = body WHERE tenant_id = $1`: "written once",
	} {
		if err := execInTenant(t, store, tenant, sql, [16]byte(tenant)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", sql, err)
		}
	}
}
