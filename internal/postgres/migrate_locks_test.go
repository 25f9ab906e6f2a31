package postgres_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/migrations"
)

// lastWithoutLoad is the number of the newest file that is applied while no process serves: docs/operations.md says so
// of the release that it belongs to.
const lastWithoutLoad = "0030"

// TestNoMigrationHoldsALockWhileItReadsRows applies what varve migrate executes beside processes that serve, each in a
// transaction as it does, to tables of many rows. One that locks a table against reads or writes and reads more than a
// few pages holds that lock for a time that grows with the rows: the reading belongs into a file of its own.
func TestNoMigrationHoldsALockWhileItReadsRows(t *testing.T) {
	t.Parallel()
	p := newPlanned(t, *planRows)
	files, err := fs.Glob(migrations.FS, "*.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]string{"grants.sql": migrations.Grants}
	for _, name := range files {
		text, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		if name[:len(lastWithoutLoad)] > lastWithoutLoad {
			served[name] = string(text)
		}
	}
	for name, sql := range served {
		if locked := lockedAndRead(t, p.dsn, sql); locked != "" {
			t.Errorf("%s %s", name, locked)
		}
	}
	for sql, isWrong := range map[string]bool{
		`ALTER TABLE messages ADD COLUMN later integer`:                                                        false,
		`ALTER TABLE messages ADD COLUMN later integer NOT NULL DEFAULT 7`:                                     false,
		`ALTER TABLE messages ADD COLUMN later float NOT NULL DEFAULT random()`:                                true,
		`ALTER TABLE messages ADD CONSTRAINT later CHECK (tokens >= 0)`:                                        true,
		`ALTER TABLE messages ADD CONSTRAINT later CHECK (tokens >= 0) NOT VALID`:                              false,
		`CREATE INDEX later ON messages (tenant_id, tokens)`:                                                   true,
		`ALTER TABLE messages NO FORCE ROW LEVEL SECURITY; SELECT count(*) FROM messages`:                      true,
		`CREATE TABLE later (n integer); INSERT INTO later SELECT seq FROM messages`:                           false,
		`CREATE TABLE later (tenant uuid REFERENCES tenants (id))`:                                             false,
		`ALTER TABLE runs ADD FOREIGN KEY (tenant_id) REFERENCES tenants (id) NOT VALID; SELECT 1`:             false,
		`UPDATE sessions SET metadata = '{}' WHERE metadata IS NULL; LOCK TABLE sessions IN ACCESS SHARE MODE`: false,
	} {
		if locked := lockedAndRead(t, p.dsn, sql); (locked != "") != isWrong {
			t.Errorf("%s %s: want that this is seen: %t", sql, locked, isWrong)
		}
	}
}

// lockedAndRead executes SQL as the owner, and returns which tables it has locked and how much it has read; "" if that
// is little or nobody waits for it. It changes nothing.
func lockedAndRead(t *testing.T, dsn, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pgtest.Owner(dsn))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var before []uint32
	var locked string
	var pages int
	err = conn.QueryRow(t.Context(), `SELECT array_agg(oid) FROM pg_class`).Scan(&before)
	if err == nil {
		_, err = conn.Exec(t.Context(), `BEGIN; `+sql)
	}
	if err == nil {
		err = conn.QueryRow(t.Context(), `
			SELECT (SELECT coalesce(string_agg(DISTINCT relation::regclass::text || ' ' || mode, ', '), '')
			          FROM pg_locks l
			          JOIN pg_class c ON c.oid = l.relation
			         WHERE l.pid = pg_backend_pid()
			           AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
			           AND c.relkind = 'r'
			           AND c.relnamespace = 'public'::regnamespace
			           AND c.oid = ANY ($1)),
			       (SELECT coalesce(sum(pg_stat_get_xact_blocks_fetched(oid)), 0)
			          FROM pg_class
			         WHERE relnamespace = 'public'::regnamespace)`, before).Scan(&locked, &pages)
	}
	if err != nil {
		t.Fatalf("%.200s: %v", strings.TrimSpace(sql), err)
	}
	const few = 100
	if locked == "" || pages <= few {
		return ""
	}
	return fmt.Sprintf("locks %s and reads %d pages", locked, pages)
}
