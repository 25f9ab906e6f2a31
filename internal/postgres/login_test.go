package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
)

// inheritsNothing keeps the rights of its roles from a login. Since 16 that is a matter of each grant.
const inheritsNothing = `
	DO $$ BEGIN
		IF current_setting('server_version_num')::int < 160000 THEN
			ALTER ROLE %[1]s NOINHERIT;
		ELSE
			EXECUTE 'GRANT varve_app TO %[1]s WITH INHERIT FALSE';
		END IF;
	END $$`

// TestALoginThatCouldBecomeMoreIsRefused makes logins that row-level security does not bind, or would not after one
// statement. Each is refused with the reason and, where there is one, the statement that mends it.
func TestALoginThatCouldBecomeMoreIsRefused(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	for name, c := range map[string]struct{ attributes, sql, reason, remedy string }{
		"a superuser":               {"SUPERUSER", "", "it is a superuser", "CREATE ROLE varve_api"},
		"BYPASSRLS":                 {"BYPASSRLS", "", "it has BYPASSRLS", "NOBYPASSRLS"},
		"a maker of roles":          {"CREATEROLE", "", "it may create roles", "NOCREATEROLE"},
		"replication":               {"REPLICATION", "", "by replication", "NOREPLICATION"},
		"an owner":                  {"", `CREATE SCHEMA AUTHORIZATION %[1]s`, "it owns parts of this database", "CREATE ROLE varve_api"},
		"a member of an owner":      {"", `CREATE ROLE %[1]s_o; CREATE SCHEMA %[1]s AUTHORIZATION %[1]s_o; CREATE ROLE %[1]s_m ROLE %[1]s NOINHERIT; GRANT %[1]s_o TO %[1]s_m`, "_o, of which it is a member, owns parts", "REVOKE"},
		"a member of a superuser":   {"", `CREATE ROLE %[1]s_o SUPERUSER ROLE %[1]s`, "_o, of which it is a member, is a superuser", "REVOKE"},
		"a reader of everything":    {"", `GRANT varve_backup TO %[1]s`, "varve_backup, of which it is a member, sees all tenants", "REVOKE varve_backup FROM"},
		"a reader of files":         {"", `GRANT pg_read_server_files TO %[1]s`, "reaches the server's files", "REVOKE pg_read_server_files FROM"},
		"an administrator of roles": {"", `CREATE ROLE %[1]s_o ADMIN %[1]s`, "it may make others members of role", "REVOKE ADMIN OPTION FOR"},
		"one that changes its role": {"", `ALTER ROLE %[1]s SET role = varve_app`, "it becomes role varve_app", "RESET role"},
		"one that inherits nothing": {"", inheritsNothing, "it does not have the rights of role varve_app", "INHERIT"},
		"a plan for each value":     {"", `ALTER ROLE %[1]s SET plan_cache_mode = auto`, "plan_cache_mode", "SET plan_cache_mode = force_generic_plan"},
		"no timeout":                {"", `ALTER ROLE %[1]s SET statement_timeout = 0`, "statement_timeout", "SET statement_timeout = 300000"},
		"another schema":            {"", `ALTER ROLE %[1]s SET search_path = pg_catalog`, "search_path", "SET search_path = 'public'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			login := newLogin(t, dsn, "")
			grant := postgres.Grant{Login: login, Role: postgres.AppRole}
			if err := postgres.GrantTo(t.Context(), dsn, grant); err != nil {
				t.Fatal(err)
			}
			pool, err := postgres.Open(t.Context(), as(t, dsn, login), 1)
			if err != nil {
				t.Fatalf("before: %v", err)
			}
			pool.Close()
			if c.attributes != "" {
				mustExec(t, dsn, `ALTER ROLE `+login+` `+c.attributes)
			}
			if c.sql != "" {
				mustExec(t, dsn, fmt.Sprintf(c.sql, login))
			}
			_, err = postgres.Open(t.Context(), as(t, dsn, login), 1)
			if !errors.Is(err, postgres.ErrLogin) || !strings.Contains(err.Error(), c.reason) || !strings.Contains(err.Error(), c.remedy) {
				t.Errorf("got %v\nwant %q and %q", err, c.reason, c.remedy)
			}
		})
	}
}

// TestTheRightsOfALoginAreLookedAtOnceByAPool has a pool open more connections at once. What each asked last was its own
// settings: the login's rights are known from the first.
func TestTheRightsOfALoginAreLookedAtOnceByAPool(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	pool, err := postgres.Open(t.Context(), pgtest.API(dsn), 4)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var pids []uint32
	for range 4 {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
		pids = append(pids, conn.Conn().PgConn().PID())
	}
	var rights, settings int
	err = pgtest.Row(t, dsn, `
		SELECT count(*) FILTER (WHERE query LIKE '%Why a login must not serve%'),
		       count(*) FILTER (WHERE query LIKE '%The settings of this session%')
		  FROM pg_stat_activity
		 WHERE pid = ANY ($1)`, pids).Scan(&rights, &settings)
	// The spare connection of a pool is opened beside its first one, and may look, too.
	if err != nil || rights > 1 || rights+settings != 3 {
		t.Errorf("of 4 connections, %d asked for the login's rights last and %d for their settings (%v), want 0 and 3",
			rights, settings, err)
	}
}

// TestAnOperatorsOwnTimeoutsAreKeptWhereTheyDoNoHarm sets each before the login is granted its role a second time.
func TestAnOperatorsOwnTimeoutsAreKeptWhereTheyDoNoHarm(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	login := newLogin(t, dsn, "")
	mustGrant := func() {
		t.Helper()
		if err := postgres.GrantTo(t.Context(), dsn, postgres.Grant{Login: login, Role: postgres.AppRole}); err != nil {
			t.Fatal(err)
		}
	}
	mustGrant()
	database := openPool(t, dsn).Config().ConnConfig.Database
	for i, c := range []struct{ name, value, want, refused string }{
		{"lock_timeout", "'2s'", "2s", ""},
		{"lock_timeout", "1", "3s", "lock_timeout is 1 ms, which must be from 100 to 9000"},
		{"lock_timeout", "0", "3s", "lock_timeout is 0 ms"},
		{"lock_timeout", "'1min'", "3s", "lock_timeout is 60000 ms"},
		{"statement_timeout", "'60s'", "1min", ""},
		{"statement_timeout", "'1.5 min'", "90s", ""},
		{"statement_timeout", "30000", "30s", ""},
		{"statement_timeout", "'9s'", "5min", "statement_timeout is 9000 ms, which must be from 10000 to 3600000"},
		{"idle_in_transaction_session_timeout", "'10s'", "10s", ""},
		{"idle_in_transaction_session_timeout", "'1h'", "5s", "idle_in_transaction_session_timeout is 3600000 ms"},
		{"search_path", `"$user", public, extensions`, `"$user", public, extensions`, ""},
		{"search_path", `"$user", pg_catalog`, `public`, "search_path"},
		{"search_path", `pg_catalog`, `public`, "search_path"},
		{"plan_cache_mode", "auto", "force_generic_plan", "plan_cache_mode"},
		{"lock_timeout", "1", "3s", "lock_timeout is 1 ms"},
		{"client_encoding", "LATIN1", "UTF8", "client_encoding"},
		{"default_transaction_isolation", "serializable", "read committed", "default_transaction_isolation"},
	} {
		here := []string{"", " IN DATABASE " + database}[i%2]
		mustExec(t, dsn, `ALTER ROLE `+login+here+` SET `+c.name+` = `+c.value)
		pool, err := postgres.Open(t.Context(), as(t, dsn, login), 1)
		if refused := err != nil; refused != (c.refused != "") || refused && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s = %s: %v, want %q", c.name, c.value, err, c.refused)
		}
		if err == nil {
			pool.Close()
		}
		mustGrant()
		pool, err = postgres.Open(t.Context(), as(t, dsn, login), 1)
		if err != nil {
			t.Fatalf("%s = %s, granted again: %v", c.name, c.value, err)
		}
		var got string
		if err := pool.QueryRow(t.Context(), `SHOW `+c.name).Scan(&got); err != nil || got != c.want {
			t.Errorf("%s = %s is %s when it is granted again, want %s, %v", c.name, c.value, got, c.want, err)
		}
		pool.Close()
		mustExec(t, dsn, `ALTER ROLE `+login+` IN DATABASE `+database+` RESET ALL`)
	}
}

// TestTimeoutsOfALoginDoNotEndTheGrant holds the grant up, which then waits for longer than the login may.
func TestTimeoutsOfALoginDoNotEndTheGrant(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	login := newLogin(t, dsn, "")
	for _, timeout := range []string{"statement_timeout", "lock_timeout"} {
		mustExec(t, dsn, `ALTER ROLE `+login+` SET `+timeout+` = 1`)
		conn := openPool(t, dsn)
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `ALTER ROLE `+login+` SET work_mem = '8MB'`); err != nil {
			t.Fatal(err)
		}
		granted := make(chan error, 1)
		go func() {
			granted <- postgres.GrantTo(t.Context(), dsn, postgres.Grant{Login: login, Role: postgres.AppRole})
		}()
		for waits := false; !waits && len(granted) == 0; {
			if err := conn.QueryRow(t.Context(), `
				SELECT EXISTS (
				       SELECT
				         FROM pg_stat_activity
				        WHERE query LIKE 'ALTER ROLE "`+login+`" SET %' AND wait_event_type = 'Lock')`).Scan(&waits); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(50 * time.Millisecond) // longer than the timeout
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-granted; err != nil {
			t.Errorf("%s: %v", timeout, err)
		}
	}
}

func TestALoginWithoutTheRoleIsToldHowToGetIt(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	login := newLogin(t, dsn, "")
	_, err := postgres.Open(t.Context(), as(t, dsn, login), 1)
	if !errors.Is(err, postgres.ErrLogin) || !strings.Contains(err.Error(), "GRANT varve_app TO "+login) || !strings.Contains(err.Error(), "varve migrate --grant-to "+login) {
		t.Errorf("it may serve: %v", err)
	}
	if _, err := postgres.OpenAdmin(t.Context(), as(t, dsn, login), 1); !errors.Is(err, postgres.ErrLogin) || !strings.Contains(err.Error(), login+":admin") {
		t.Errorf("it may make tenants: %v", err)
	}
	if err := postgres.GrantTo(t.Context(), dsn, postgres.Grant{Login: "nobody", Role: postgres.AppRole}); !errors.Is(err, postgres.ErrNoLogin) || !strings.Contains(err.Error(), "CREATE ROLE") {
		t.Errorf("a login that is not there: %v", err)
	}
	if err := postgres.GrantTo(t.Context(), as(t, dsn, login), postgres.Grant{Login: login, Role: postgres.AppRole}); err == nil || !strings.Contains(err.Error(), "as an administrator of the server, run") {
		t.Errorf("it gives itself the role: %v", err)
	}
}

func TestAnAPIsLoginRunsNoWorker(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	for url, fits := range map[string]bool{pgtest.API(dsn): false, pgtest.Worker(dsn): true, pgtest.Admin(dsn): true} {
		err := postgres.RequireWorker(t.Context(), openStore(t, url).Pool())
		if fits != (err == nil) || err != nil && !errors.Is(err, postgres.ErrLogin) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestAnAPIsLoginReachesOnlyWhatItNeeds has two tenants with a job each.
func TestAnAPIsLoginReachesOnlyWhatItNeeds(t *testing.T) {
	t.Parallel()
	admin, dsn := newStoreAt(t)
	mine, theirs := newTenant(t, admin, "mine"), newTenant(t, admin, "theirs")
	api := openStore(t, pgtest.API(dsn))
	for _, tenant := range []uuid.UUID{mine, theirs} {
		mustAppend(t, api, batch(newSession(t, api, tenant, "s"), message("x", 900)))
	}
	if n := liveJobs(t, admin); n != 2 {
		t.Fatalf("%d jobs", n)
	}
	count := func(tenant uuid.UUID, table string) (n int) {
		t.Helper()
		err := postgres.InTenant(t.Context(), api.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&n)
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, table := range []string{"tenants", "river_job"} {
		if n, none := count(mine, table), count(uuid.New(), table); n != 1 || none != 0 {
			t.Errorf("a tenant sees %d rows of %s, one that does not exist %d", n, table, none)
		}
	}
	if tenants, err := api.Tenants(t.Context()); err != nil || len(tenants) != 0 {
		t.Errorf("without a tenant, tenants %v, %v", tenants, err)
	}
	for sql, want := range map[string]string{
		`UPDATE tenants SET name = 'x'`:                                  "permission denied",
		`INSERT INTO tenants (id, name) VALUES (gen_random_uuid(), 'x')`: "permission denied",
		`UPDATE api_keys SET scopes = '{admin}'`:                         "permission denied",
		`UPDATE api_keys SET digest = sha256('x')`:                       "permission denied",
		`DELETE FROM api_keys`:                                           "permission denied",
		`SELECT FROM operator_keys`:                                      "permission denied",
		`INSERT INTO operator_keys (id, digest, last4) VALUES (gen_random_uuid(), sha256('x'), '')`: "permission denied",
		`DELETE FROM river_job`:    "permission denied",
		`SELECT FROM river_leader`: "permission denied",
		`INSERT INTO river_job (kind, max_attempts, args) VALUES ('sweep', 1, '{}')`:                                             "row-level security",
		`INSERT INTO river_job (kind, max_attempts, args) SELECT kind, 1, '{"tenant":"` + theirs.String() + `"}' FROM river_job`: "row-level security",
		`UPDATE river_job SET args = '{"tenant":"` + theirs.String() + `"}'`:                                                     "row-level security",
	} {
		if err := execInTenant(t, api, mine, sql); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", sql, err, want)
		}
	}
	if err := execInTenant(t, api, mine, `UPDATE river_job SET state = 'completed', finalized_at = now()`); err != nil {
		t.Fatal(err)
	}
	if n := liveJobs(t, admin); n != 1 {
		t.Errorf("%d jobs are left, want that of the other tenant", n)
	}
	mustAppend(t, api, batch(newSession(t, api, mine, "t"), message("x", 900)))
	if n := liveJobs(t, admin); n != 2 {
		t.Errorf("%d jobs after another append", n)
	}
}

// TestBeforeTheMigrationALoginIsToldOfIt, not of all that it would have after it; and it is told who migrates.
func TestBeforeTheMigrationALoginIsToldOfIt(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewEmpty(t)
	login := as(t, dsn, newLogin(t, dsn, ""))
	_, err := postgres.Open(t.Context(), login, 1)
	if err == nil || !strings.Contains(err.Error(), "schema is version 0") || errors.Is(err, postgres.ErrLogin) {
		t.Errorf("it serves: %v", err)
	}
	err = postgres.Migrate(t.Context(), login)
	if !errors.Is(err, postgres.ErrLogin) || !strings.Contains(err.Error(), "may make no table in schema public") {
		t.Errorf("it migrates: %v", err)
	}
}
