package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/migrations"
)

// migrates is the variable whose database this program migrates if it is a process of its own.
const migrates = "VARVE_TEST_MIGRATES"

// TestFourProcessesMigrateAtOnceAndAreKilled kills four processes while they are in a file, or just after it, for each
// file, and lets four others finish.
func TestFourProcessesMigrateAtOnceAndAreKilled(t *testing.T) {
	t.Parallel()
	want, dsn := objects(t, pgtest.New(t), `%`), pgtest.NewEmpty(t)
	begin := func() (all []*exec.Cmd) {
		for range 4 {
			process := exec.Command(os.Args[0])
			process.Env = append(os.Environ(), migrates+"="+pgtest.Owner(dsn))
			process.Stderr = t.Output()
			if err := process.Start(); err != nil {
				t.Fatal(err)
			}
			all = append(all, process)
		}
		return all
	}
	files, err := migrations.Versions()
	if err != nil {
		t.Fatal(err)
	}
	looks, killed := openPool(t, dsn), map[int]bool{}
	for _, file := range files {
		all, at := begin(), 0
		for at < file {
			err := looks.QueryRow(t.Context(), `SELECT version FROM schema_migrations`).Scan(&at)
			if err != nil && !errors.Is(err, pgx.ErrNoRows) && !strings.Contains(err.Error(), "42P01") {
				t.Fatal(err)
			}
		}
		for _, process := range all {
			_ = process.Process.Kill() // it may have ended
		}
		for _, process := range all {
			_ = process.Wait() // it was killed
		}
		killed[at] = true
	}
	for _, process := range begin() {
		if err := process.Wait(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("killed in the files %v", slices.Sorted(maps.Keys(killed)))
	if diff := cmp.Diff(want, objects(t, dsn, `%`)); diff != "" || len(killed) < 4 {
		t.Errorf("killed in %d files; one that was not killed (-), four that were (+):\n%s", len(killed), diff)
	}
}

// TestAMigrationThatFailsSaysWhy has an owner without superuser, and things in the way.
func TestAMigrationThatFailsSaysWhy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sql, says, advice string }{
		"a table":    {`CREATE TABLE tenants ()`, `0020_varve: `, "rename or drop it"},
		"a type":     {`CREATE TYPE messages AS ENUM ()`, `0020_varve: `, "rename or drop it"},
		"a function": {`CREATE FUNCTION use_store(kind smallint) RETURNS void LANGUAGE sql AS ''`, `0030_release: `, "rename or drop it"},
		"no right":   {`REVOKE ALL ON SCHEMA public FROM {owner}; ALTER SCHEMA public OWNER TO CURRENT_USER`, "may make no table in schema public", "GRANT CREATE ON SCHEMA public TO varve_test_owner"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.NewEmpty(t)
			mustExec(t, dsn, strings.ReplaceAll(c.sql, "{owner}", "varve_test_owner"))
			err := postgres.Migrate(t.Context(), pgtest.Owner(dsn))
			text := fmt.Sprint(err)
			if !strings.Contains(text, c.says) || !strings.Contains(text, c.advice) || len(text) > 600 || strings.Contains(text, "\n") {
				t.Errorf("%s\nwant %q and %q in a line", text, c.says, c.advice)
			}
		})
	}
}

func TestWhoHoldsUpAMigrationIsNamed(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	holder, waiter, looks := openConn(t, dsn), openConn(t, dsn), openConn(t, dsn)
	for conn, sql := range map[*pgx.Conn]string{
		holder: `SET application_name = 'their report'; BEGIN; LOCK TABLE sessions`,
		waiter: `SET application_name = 'varve migrate 1'; SET lock_timeout = '1s'`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	holders, err := postgres.WhoIsInTheWay(t.Context(), looks, "varve migrate 1", func() error {
		_, err := waiter.Exec(t.Context(), `ALTER TABLE sessions ADD COLUMN x int`)
		return err
	})
	text := postgres.WhyItFailed("0031_next", err, holders).Error()
	for _, want := range []string{"0031_next: ", fmt.Sprintf("session %d of login ", holder.PgConn().PID()), "(their report)", "in a transaction for", "pg_terminate_backend"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\nlacks %q", text, want)
		}
	}
}

// TestAMigrationThatWaitsForAnotherSaysForWhom gives up while another session has the lock of migrations.
func TestAMigrationThatWaitsForAnotherSaysForWhom(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewEmpty(t)
	holder := openConn(t, dsn)
	if _, err := holder.Exec(t.Context(), `SELECT pg_advisory_lock(x'7661727665'::bigint)`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := postgres.Migrate(ctx, dsn)
	if want := fmt.Sprintf("session %d of login ", holder.PgConn().PID()); !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

func openConn(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) }) // the database is dropped
	return conn
}
