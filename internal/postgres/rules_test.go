package postgres_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/postgres/pgtest"
)

// undone executes a statement, and takes back what it did.
func undone(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (err error) {
	t.Helper()
	back := errors.New("taken back")
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), sql, args...); err != nil {
			return err
		}
		return back
	})
	if errors.Is(err, back) {
		return nil
	}
	return err
}

// TestNoRowBreaksTheRulesOfItsTable sets each column that has a rule to the outermost values that keep it and to the
// nearest ones that break it, as the owner of the tables.
func TestNoRowBreaksTheRulesOfItsTable(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	mustAppend(t, store, batch(newSession(t, store, tenant, "s"), message("a", 1)))
	owner := openPool(t, pgtest.Superuser(t, store.Pool().Config().ConnString()))
	const packed = `body = NULL, shape = E'\x1a', bytes = 1`
	for _, rule := range []struct {
		table, name string
		good, bad   []string
	}{
		{"sessions", "sessions_id_check", []string{`id = 'x'`, `id = repeat('x', 255)`}, []string{`id = ''`, `id = repeat('é', 128)`}},
		{"sessions", "sessions_window_tokens_check", []string{`window_tokens = 1`}, []string{`window_tokens = 0`}},
		{"sessions", "sessions_overhead_tokens_check", []string{`overhead_tokens = 0`}, []string{`overhead_tokens = -1`}},
		{"sessions", "sessions_window_source_check", []string{`window_source = 'model'`, `window_source = 'default'`, `window_source = 'request'`},
			[]string{`window_source = ''`}},
		{"sessions", "sessions_armed_threshold_check", []string{`armed_threshold = 1`, `armed_threshold = 3`},
			[]string{`armed_threshold = 0`, `armed_threshold = 4`}},
		{"sessions", "sessions_calibration_check", []string{`calibration = 0.5`, `calibration = 20`},
			[]string{`calibration = 0.49`, `calibration = 20.01`, `calibration = 'NaN'`}},
		{"messages", "messages_seq_check", []string{`seq = 1`}, []string{`seq = 0`}},
		{"messages", "messages_tokens_check", []string{`tokens = 0`}, []string{`tokens = -1`}},
		{"messages", "messages_removed_check", []string{`removed_at = now(), removed_seq = 2`},
			[]string{`removed_at = now(), removed_seq = 1`, `removed_at = now()`, `removed_seq = 2`}},
		{"messages", "messages_superseded_check", []string{`removed_at = now(), removed_seq = 2, superseded_by = 2`, `removed_at = now(), removed_seq = 2, superseded_by = 3`},
			[]string{`removed_at = now(), removed_seq = 3, superseded_by = 2`, `superseded_by = 2`}},
		{"messages", "messages_view_check", []string{`view_body = 'x', view_tokens = 0`, packed + `, view_tokens = 1`},
			[]string{`view_body = 'x', view_tokens = -1`, `view_body = 'x'`, `view_tokens = 1`}},
		{"messages", "messages_packed_check", []string{packed},
			[]string{`body = NULL`, `shape = E'\x1a'`, `bytes = 1`, `body = NULL, shape = E'\x1a'`, `body = NULL, bytes = 1`}},
	} {
		for _, set := range rule.good {
			if err := undone(t, owner, `UPDATE `+rule.table+` SET `+set); err != nil {
				t.Errorf("%s: %v", set, err)
			}
		}
		for _, set := range rule.bad {
			var refused *pgconn.PgError
			err := undone(t, owner, `UPDATE `+rule.table+` SET `+set)
			if !errors.As(err, &refused) || refused.Code != "23514" || refused.ConstraintName != rule.name || refused.TableName != rule.table {
				t.Errorf("%s: %v, not %s", set, err, rule.name)
			}
		}
	}
}

// TestNoRowThatBreaksARuleIsInserted inserts rows of which one value breaks a rule.
func TestNoRowThatBreaksARuleIsInserted(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	key, err := store.Session(t.Context(), newSession(t, store, tenant, "s"))
	if err != nil {
		t.Fatal(err)
	}
	serving := openStore(t, pgtest.API(store.Pool().Config().ConnString()))
	insert := func(table string, values map[string]string) error {
		var columns, list []string
		for column, value := range values {
			columns, list = append(columns, column), append(list, value)
		}
		return execInTenant(t, serving, tenant, `INSERT INTO `+table+` (`+strings.Join(columns, ", ")+`) VALUES (`+strings.Join(list, ", ")+`)`)
	}
	of := `'` + tenant.String() + `'`
	rows := map[string]map[string]string{
		"sessions": {"tenant_id": of, "key": `gen_random_uuid()`, "id": `gen_random_uuid()::text`, "window_tokens": `1`, "policy_id": `'00000000-0000-0000-0000-000000000000'`},
		"messages": {"tenant_id": of, "session_key": `'` + key.Key.String() + `'`, "seq": `(random() * 1e15)::bigint + 1`, "role": `'user'`, "format": `1`, "tokens": `0`,
			"starts_unit": `true`, "body": `'{}'`, "shape": `''`},
	}
	for _, bad := range []struct{ table, column, value, rule string }{
		{"sessions", "id", `''`, "sessions_id_check"},
		{"sessions", "window_tokens", `0`, "sessions_window_tokens_check"},
		{"sessions", "overhead_tokens", `-1`, "sessions_overhead_tokens_check"},
		{"sessions", "window_source", `''`, "sessions_window_source_check"},
		{"sessions", "armed_threshold", `0`, "sessions_armed_threshold_check"},
		{"sessions", "calibration", `0`, "sessions_calibration_check"},
		{"messages", "seq", `0`, "as_appended"},
		{"messages", "tokens", `-1`, "as_appended"},
		{"messages", "shape", `E'\x1a'`, "as_appended"},
		{"messages", "body", `NULL`, "as_appended"},
		{"messages", "bytes", `1`, "as_appended"},
		{"messages", "removed_at", `now()`, "as_appended"},
		{"messages", "removed_seq", `2e15::bigint`, "as_appended"},
		{"messages", "superseded_by", `2e15::bigint`, "as_appended"},
		{"messages", "view_body", `'x'`, "as_appended"},
		{"messages", "view_tokens", `1`, "as_appended"},
	} {
		good := rows[bad.table]
		if err := insert(bad.table, good); err != nil {
			t.Fatalf("%s: %v", bad.table, err)
		}
		values := maps.Clone(good)
		values[bad.column] = bad.value
		if err := insert(bad.table, values); err == nil || !strings.Contains(err.Error(), `"`+bad.rule+`"`) {
			t.Errorf("%s = %s: %v, not %s", bad.column, bad.value, err, bad.rule)
		}
	}
	for what, bad := range map[string]map[string]string{
		"negative tokens of a view":         {"view_body": `'x'`, "view_tokens": `-1`},
		"a removal before its message came": {"seq": `7`, "removed_at": `now()`, "removed_seq": `7`},
		"superseded before it was removed":  {"seq": `7`, "removed_at": `now()`, "removed_seq": `9`, "superseded_by": `8`},
	} {
		values := maps.Clone(rows["messages"])
		maps.Copy(values, bad)
		if err := insert("messages", values); err == nil || !strings.Contains(err.Error(), `"as_appended"`) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestNoTriggerLocksTheRowsOfHotTables looks for triggers that fire before a row is updated: with one of them, whichever
// columns it is for, PostgreSQL locks each row of every update of the table, and writes that to the WAL.
func TestNoTriggerLocksTheRowsOfHotTables(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	rows, err := store.Pool().Query(t.Context(), `
		SELECT tgname::text
		  FROM pg_trigger
		 WHERE tgrelid IN ('sessions'::regclass, 'messages'::regclass) AND NOT tgisinternal
		   AND tgtype & (1 | 2 | 16) = (1 | 2 | 16) -- for each row, before, update`)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(found) > 0 {
		t.Errorf("%q fire before updates, %v", found, err)
	}
}
