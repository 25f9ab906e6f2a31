package postgres_test

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
)

// rightsOfRoles lists, from the catalogue, all that somebody may do who does not own the object, the members of Varve's
// roles, and what these could do as roles.
const rightsOfRoles = `
	WITH objects AS (
	    SELECT CASE relkind WHEN 'S' THEN 'SEQUENCE ' ELSE 'TABLE ' END || relname AS object, relowner AS owner,
	           coalesce(relacl, acldefault(CASE relkind WHEN 'S' THEN 's'::"char" ELSE 'r' END, relowner)) AS acl, '' AS field, '' AS mark
	      FROM pg_class
	     WHERE relnamespace = 'public'::regnamespace AND relkind NOT IN ('i', 'c')
	     UNION ALL
	    SELECT 'TABLE ' || c.relname, c.relowner, a.attacl, a.attname, ''
	      FROM pg_class c
	      JOIN pg_attribute a ON a.attrelid = c.oid AND a.attacl IS NOT NULL
	     WHERE c.relnamespace = 'public'::regnamespace
	     UNION ALL
	    SELECT 'FUNCTION ' || oid::regprocedure, proowner, coalesce(proacl, acldefault('f', proowner)), '', CASE WHEN prosecdef THEN ' as the owner' ELSE '' END
	      FROM pg_proc
	     WHERE pronamespace = 'public'::regnamespace
	     UNION ALL
	    SELECT 'SCHEMA ' || nspname, nspowner, coalesce(nspacl, acldefault('n', nspowner)), '', ''
	      FROM pg_namespace
	     WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
	     UNION ALL
	    SELECT 'DATABASE of Varve', datdba, coalesce(datacl, acldefault('d', datdba)), '', ''
	      FROM pg_database
	     WHERE datname = current_database()
	     UNION ALL
	    SELECT 'DEFAULT PRIVILEGES ' || defaclobjtype::text, defaclrole, defaclacl, '', '' FROM pg_default_acl
	     UNION ALL
	    SELECT 'LARGE OBJECT ' || oid, lomowner, lomacl, '', '' FROM pg_largeobject_metadata
	     UNION ALL
	    SELECT 'PARAMETER ' || parname, 10, paracl, '', '' FROM pg_parameter_acl
	     UNION ALL
	    SELECT 'TABLESPACE ' || spcname, spcowner, spcacl, '', '' FROM pg_tablespace
	     UNION ALL
	    SELECT 'SERVER ' || srvname, srvowner, srvacl, '', '' FROM pg_foreign_server
	), rights AS (
	    SELECT o.object || ': ' || CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS who,
	           a.privilege_type || CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END || o.mark AS may, o.field
	      FROM objects o, aclexplode(o.acl) a
	     WHERE a.grantee <> o.owner
	)
	SELECT who || ' ' || string_agg(may, ', ' ORDER BY may)
	  FROM rights
	 WHERE field = ''
	 GROUP BY who
	 UNION ALL
	SELECT who || ' ' || may || ' (' || string_agg(field, ', ' ORDER BY field) || ')'
	  FROM rights
	 WHERE field <> ''
	 GROUP BY who, may
	 UNION ALL
	SELECT 'ROLE ' || g.rolname || ': ' || r.rolname || ' MEMBER' || CASE WHEN m.admin_option THEN ' WITH ADMIN OPTION' ELSE '' END
	  FROM pg_auth_members m
	  JOIN pg_roles g ON g.oid = m.roleid
	  JOIN pg_roles r ON r.oid = m.member
	 WHERE r.rolname ~ '^varve_(app|worker|admin|backup)$'
	 UNION ALL
	SELECT 'ROLE ' || rolname || ' is more than a role'
	  FROM pg_roles
	 WHERE rolname ~ '^varve_(app|worker|admin|backup)$'
	   AND (rolsuper OR rolcreaterole OR rolcreatedb OR rolcanlogin OR rolreplication OR rolbypassrls OR rolconfig IS NOT NULL)`

const (
	rightsFile = "../../migrations/rights.txt"
	rightsHead = `# All that somebody may do who does not own the object, from the catalogue of a migrated database. Written by make schema;
# grants.sql makes it so. Whoever changes it reviews what the new right can hurt. Of the rights of PostgreSQL's own objects
# nobody is deprived: any login may make large objects and default privileges, and change its own password and settings.
`
)

// TestTheRightsAreThoseOfTheTable makes the table of rights from the catalogue. A right more, or less, is an error.
func TestTheRightsAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	mustMigrate(t, pgtest.Owner(dsn)) // a copied database does not have the rights on its template
	rows, err := openPool(t, dsn).Query(t.Context(), rightsOfRoles)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	got := rightsHead + strings.Join(found, "\n") + "\n"
	if *update {
		if err := os.WriteFile(rightsFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(rightsFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("migrations/rights.txt (-), the catalogue (+): review it, and run make schema\n%s", diff)
	}
	t.Logf("%d rights, %d of them of PUBLIC", len(found), strings.Count(got, ": PUBLIC "))
}

// TestTheCatalogKeepsFunctionsFromStrangeTypes looks at where every function of the schema looks for names.
func TestTheCatalogKeepsFunctionsFromStrangeTypes(t *testing.T) {
	t.Parallel()
	pool := openPool(t, pgtest.New(t))
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

// TestNoSessionKeepsOthersOut has each login make all that PostgreSQL lets any login make, and then log in again.
func TestNoSessionKeepsOthersOut(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	mustMigrate(t, dsn)
	for name, login := range map[string]string{"api": pgtest.API(dsn), "worker": pgtest.Worker(dsn), "operators": pgtest.Admin(dsn)} {
		conn, err := pgx.Connect(t.Context(), login)
		if err != nil {
			t.Fatal(err)
		}
		for sql, may := range map[string]bool{
			`SELECT lo_from_bytea(0, 'x')`:                                        true,
			`ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC`:           true,
			`SELECT use_store(7::smallint)`:                                       true,
			`SELECT nextval('river_job_id_seq')`:                                  true,
			`CREATE TEMPORARY TABLE t ()`:                                         false,
			`CREATE SCHEMA mine`:                                                  false,
			`CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'`:          false,
			`DO $$ BEGIN LOCK TABLE pg_authid; END $$`:                            false,
			`DO $$ BEGIN LOCK TABLE pg_database IN ACCESS EXCLUSIVE MODE; END $$`: false,
			`DO $$ BEGIN LOCK TABLE installation IN SHARE MODE; END $$`:           false,
			`UPDATE installation SET stores = '{}'`:                               false,
			`UPDATE installation SET oldest_program = 9999`:                       false,
			`SELECT setval('river_job_id_seq', 9223372036854775807)`:              false,
			`SELECT setval('search_blocks_id_seq', 9223372036854775807)`:          false,
			`COMMENT ON DATABASE postgres IS ''`:                                  false,
		} {
			var pg *pgconn.PgError
			if _, err := conn.Exec(t.Context(), sql); may != (err == nil) || err != nil && (!errors.As(err, &pg) || pg.Code != "42501") {
				t.Errorf("%s, %s: %v", name, sql, err)
			}
		}
		_ = conn.Close(t.Context()) // it was of use
		if pool, err := postgres.Open(t.Context(), login, 1); err != nil {
			t.Errorf("%s cannot log in any more: %v", name, err)
		} else {
			pool.Close()
		}
	}
	var stores int
	err := openPool(t, dsn).QueryRow(t.Context(), `SELECT cardinality(stores) FROM installation`).Scan(&stores)
	if err != nil || stores != 0 {
		t.Errorf("%d stores that are none, %v", stores, err)
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
