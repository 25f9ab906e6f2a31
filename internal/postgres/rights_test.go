package postgres_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
)

// TestTheCatalogGivesNobodyMoreThanGrantsSays looks at every function, table and sequence of the schema.
func TestTheCatalogGivesNobodyMoreThanGrantsSays(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	mustMigrate(t, dsn) // a copied database does not have the rights on its template
	pool := openPool(t, dsn)
	for what, sql := range map[string]string{
		"SECURITY DEFINER, and its search_path does not end with pg_temp": `
			SELECT proname
			  FROM pg_proc
			 WHERE pronamespace = 'public'::regnamespace
			   AND prosecdef
			   AND NOT coalesce(proconfig, '{}') @> ARRAY['search_path=pg_catalog, public, pg_temp']`,
		"a function with a search_path that does not end with pg_temp": `
			SELECT proname
			  FROM pg_proc, unnest(proconfig) c
			 WHERE pronamespace = 'public'::regnamespace AND c LIKE 'search_path=%' AND c NOT LIKE '%, pg_temp'`,
		"a function that everybody may call": `
			SELECT proname
			  FROM pg_proc, aclexplode(coalesce(proacl, acldefault('f', proowner))) a
			 WHERE pronamespace = 'public'::regnamespace AND a.grantee = 0`,
		"a trigger's function that a role may call": `
			SELECT proname || ' by ' || a.grantee::regrole
			  FROM pg_proc, aclexplode(proacl) a
			 WHERE pronamespace = 'public'::regnamespace AND prorettype = 'trigger'::regtype AND a.grantee <> proowner`,
		"a table that everybody reaches, or a role wholly": `
			SELECT relname || ': ' || a.privilege_type || ' by ' || a.grantee::regrole
			  FROM pg_class, aclexplode(relacl) a
			 WHERE relnamespace = 'public'::regnamespace
			   AND a.grantee <> relowner
			   AND (a.grantee = 0 OR a.is_grantable OR a.privilege_type IN ('TRUNCATE', 'REFERENCES', 'TRIGGER'))`,
		"a table that varve backup cannot read": `
			SELECT relname
			  FROM pg_class
			 WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S')
			   AND NOT has_table_privilege('varve_backup', oid, 'SELECT')`,
		"a right on the database or the schema that everybody has": `
			SELECT a.privilege_type
			  FROM pg_database, aclexplode(datacl) a
			 WHERE datname = current_database() AND a.grantee = 0 AND a.privilege_type <> 'CONNECT'
			 UNION ALL
			SELECT a.privilege_type
			  FROM pg_namespace, aclexplode(nspacl) a
			 WHERE nspname = 'public' AND a.grantee = 0 AND a.privilege_type <> 'USAGE'`,
	} {
		rows, err := pool.Query(t.Context(), sql)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(found) > 0 {
			t.Errorf("%s: %s, %v", what, strings.Join(found, ", "), err)
		}
	}
	grants, err := os.ReadFile("../../migrations/grants.sql")
	if err != nil || regexp.MustCompile(`(?i)\bALL\s+(TABLES|SEQUENCES|FUNCTIONS|ROUTINES)\b|GRANT\s+ALL`).Match(grants) {
		t.Errorf("grants.sql does not name what it grants, %v", err)
	}
}

// shadowTypes makes types of the session's own that have the names of PostgreSQL's. Their check counts, by a sequence
// that no rollback sets back, how often it runs as another than the session's login.
const shadowTypes = `
	CREATE TEMPORARY SEQUENCE loot;
	GRANT ALL ON loot TO PUBLIC;
	DO $do$
	DECLARE
		name text;
	BEGIN
		FOREACH name IN ARRAY ARRAY['uuid', 'text', 'bytea', 'json', 'jsonb', 'timestamptz', 'tsquery', 'regconfig'] LOOP
			EXECUTE format($f$
				CREATE FUNCTION pg_temp.evil(v pg_catalog.%1$I) RETURNS boolean LANGUAGE plpgsql AS $$
				BEGIN
					IF current_user <> session_user THEN
						PERFORM nextval('pg_temp.loot');
					END IF;
					RETURN true;
				END $$$f$, name);
			EXECUTE format('CREATE DOMAIN pg_temp.%1$I AS pg_catalog.%1$I CHECK (pg_temp.evil(VALUE))', name);
		END LOOP;
	END $do$;
	SELECT set_config('app.tenant_id', '00000000-0000-0000-0000-000000000001', false)`

// TestNoLoginRunsCodeAsTheOwner attacks every function that a login may call with types of the login's own. An older
// search_path, which the function control has, lets it in.
func TestNoLoginRunsCodeAsTheOwner(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	mustMigrate(t, dsn)
	logins := map[string]string{
		"api": pgtest.API(dsn), "worker": pgtest.Worker(dsn), "operators": pgtest.Admin(dsn), "backup": pgtest.Backup(dsn),
	}
	for name, login := range logins {
		if _, err := openPool(t, login).Exec(t.Context(), shadowTypes); err == nil {
			t.Errorf("%s makes types of its own", name)
		}
	}
	var database string
	if err := openPool(t, dsn).QueryRow(t.Context(), `SELECT quote_ident(current_database())`).Scan(&database); err != nil {
		t.Fatal(err)
	}
	mustExec(t, dsn, `
		INSERT INTO tenants (id, name) VALUES ('00000000-0000-0000-0000-000000000001', 'a');
		INSERT INTO policies (tenant_id, id, trigger_ratio, hard_ratio, document)
		SELECT id, '00000000-0000-0000-0000-000000000000', 0.8, 0.95, '{}' FROM tenants;
		INSERT INTO sessions (tenant_id, key, id, window_tokens, policy_id)
		SELECT id, gen_random_uuid(), 's', 1000, '00000000-0000-0000-0000-000000000000' FROM tenants;
		CREATE FUNCTION control() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
		DECLARE
			tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
		BEGIN
		END
		$$;
		GRANT TEMPORARY ON DATABASE `+database+` TO PUBLIC`)
	for name, login := range logins {
		called, ran := attacked(t, login)
		if wantsCalls := name != "backup"; !ran["control"] || wantsCalls && called < 5 {
			t.Errorf("%s: %d functions were called, the control's code ran as the owner: %t", name, called, ran["control"])
		}
		for function := range ran {
			if function != "control" {
				t.Errorf("%s: %s runs code of the login's as the owner", name, function)
			}
		}
	}
}

// attacked calls every function that has its owner's rights, and does what fires the triggers that have. It returns
// how many calls were allowed, and in which code of the login's ran as another.
func attacked(t *testing.T, login string) (called int, ran map[string]bool) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), login)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), shadowTypes); err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(t.Context(), `
		SELECT proname,
		       format('SELECT public.%I(%s)', proname,
		              (SELECT string_agg(CASE a WHEN 'pg_catalog.regconfig'::regtype THEN '''simple''::pg_catalog.regconfig'
		                                        WHEN 'pg_catalog.uuid'::regtype THEN '''00000000-0000-0000-0000-000000000001''::pg_catalog.uuid'
		                                        WHEN 'interval'::regtype THEN 'interval ''40 days'''
		                                        WHEN 'integer'::regtype THEN '10'
		                                        WHEN 'pg_catalog.jsonb'::regtype THEN '''{}''::pg_catalog.jsonb'
		                                        ELSE '''a''::pg_catalog.text' END, ', ' ORDER BY n)
		                 FROM unnest(proargtypes) WITH ORDINALITY x (a, n)))
		  FROM pg_proc
		 WHERE pronamespace = 'public'::regnamespace AND prosecdef AND prorettype <> 'trigger'::regtype`)
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]string{
		"audit_chain":    `INSERT INTO audit_trail (tenant_id, actor, action, object) SELECT current_setting('app.tenant_id')::pg_catalog.uuid, 'a', 'b', 'c'`,
		"event_number":   `INSERT INTO events (tenant_id, id, type, topic, data) SELECT current_setting('app.tenant_id')::pg_catalog.uuid, gen_random_uuid(), 'a', 'b', '{}'; SET CONSTRAINTS ALL IMMEDIATE`,
		"job_place":      `INSERT INTO river_job (kind, queue, max_attempts, args) SELECT 'compact', 'compaction', 1, jsonb_build_object('tenant', current_setting('app.tenant_id'))`,
		"index_metadata": `UPDATE sessions SET metadata = '{"a":"b"}'`,
		"refuse_held":    `DELETE FROM sessions`,
	}
	var name, call string
	if _, err := pgx.ForEachRow(rows, []any{&name, &call}, func() error { calls[name] = call; return nil }); err != nil {
		t.Fatal(err)
	}
	ran = map[string]bool{}
	counted := 0
	for name, call := range calls {
		if _, err := conn.PgConn().Exec(t.Context(), `BEGIN; `+call).ReadAll(); err == nil {
			called++
		}
		if _, err := conn.Exec(t.Context(), `ROLLBACK`); err != nil {
			t.Fatal(err)
		}
		now := 0
		err := conn.QueryRow(t.Context(), `SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM pg_temp.loot`).Scan(&now)
		if err != nil {
			t.Fatal(err)
		}
		if now != counted {
			ran[name] = true
		}
		counted = now
	}
	return called, ran
}

// TestMigrateLeavesAloneWhatOthersHaveInTheSchema migrates as an owner who is no superuser beside what a superuser has
// made in the schema, as an extension does.
func TestMigrateLeavesAloneWhatOthersHaveInTheSchema(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewEmpty(t)
	owner := newOwner(t, dsn)
	mustExec(t, dsn, `
		CREATE FUNCTION statements_reset() RETURNS void LANGUAGE sql AS '';
		REVOKE ALL ON FUNCTION statements_reset FROM PUBLIC;
		CREATE TABLE statements_seen (id serial, query text);
		ALTER TABLE statements_seen ENABLE ROW LEVEL SECURITY;
		CREATE VIEW statements AS SELECT * FROM statements_seen;
		CREATE TYPE statement_kind AS ENUM ('a')`)
	for range 2 {
		mustMigrate(t, owner)
	}
	var theirs int
	err := openPool(t, dsn).QueryRow(t.Context(), `
		SELECT (SELECT count(*) FROM pg_policy WHERE polrelid = 'statements_seen'::regclass)
		     + (SELECT count(*) FROM pg_class c, aclexplode(relacl) a
		         WHERE relname LIKE 'statements%' AND a.grantee::regrole::text LIKE 'varve%')
		     + (SELECT count(*) FROM pg_proc, aclexplode(proacl) a
		         WHERE proname = 'statements_reset' AND a.grantee <> proowner)`).Scan(&theirs)
	if err != nil || theirs != 0 {
		t.Errorf("%d policies and rights on what others own, %v", theirs, err)
	}
	if err := postgres.New(openPool(t, owner), nil, nil).CheckSchema(t.Context()); err != nil {
		t.Error(err)
	}
}
