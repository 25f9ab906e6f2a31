package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/migrations"
)

func mustMigrate(t *testing.T, dsn string) {
	t.Helper()
	if err := postgres.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
}

func openPool(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func mustExec(t *testing.T, dsn, sql string) {
	t.Helper()
	if _, err := openPool(t, dsn).Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// objects describes every table, column, constraint, index, type value and function of the schema whose name matches.
func objects(t *testing.T, dsn, pattern string) []string {
	t.Helper()
	rows, err := openPool(t, dsn).Query(t.Context(), `
		SELECT concat_ws(' ', 'column', c.relname, c.relpersistence, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
		                 pg_get_expr(d.adbin, d.adrelid))
		  FROM pg_class c
		  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		  LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
		 WHERE c.relnamespace = 'public'::regnamespace AND c.relname LIKE $1
		 UNION ALL
		SELECT concat_ws(' ', 'constraint', conrelid::regclass, conname, pg_get_constraintdef(oid))
		  FROM pg_constraint
		 WHERE connamespace = 'public'::regnamespace AND conrelid::regclass::text LIKE $1
		 UNION ALL
		SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename LIKE $1 AND indexname <> 'job_places' -- ours
		 UNION ALL
		SELECT concat_ws(' ', 'type', t.typname, e.enumlabel)
		  FROM pg_type t
		  LEFT JOIN pg_enum e ON e.enumtypid = t.oid
		 WHERE t.typnamespace = 'public'::regnamespace AND t.typname LIKE $1
		 UNION ALL
		SELECT regexp_replace(pg_get_functiondef(oid), '\s+', ' ', 'g')
		  FROM pg_proc
		 WHERE pronamespace = 'public'::regnamespace AND proname LIKE $1`, pattern)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

func riverMigrator(t *testing.T, dsn string) *rivermigrate.Migrator[pgx.Tx] {
	t.Helper()
	m, err := rivermigrate.New(riverpgxv5.New(openPool(t, dsn)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRiverAcceptsTheSchema(t *testing.T) {
	t.Parallel()
	result, err := riverMigrator(t, pgtest.New(t)).Validate(t.Context(), nil)
	if err != nil || !result.OK {
		t.Errorf("River answers %+v, %v", result, err)
	}
}

func TestRiversTablesAreThoseThatRiverMakes(t *testing.T) {
	t.Parallel()
	theirs := pgtest.NewEmpty(t)
	if _, err := riverMigrator(t, theirs).Migrate(t.Context(), rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(objects(t, theirs, `river%`), objects(t, pgtest.New(t), `river%`)); diff != "" {
		t.Errorf("River's own (-), ours (+):\n%s", diff)
	}
}

func TestUpDownUpEndsWhereUpEnds(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewEmpty(t)
	mustMigrate(t, dsn)
	once := objects(t, dsn, `%`)
	if err := postgres.MigrateDown(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	if left := objects(t, dsn, `%`); len(left) != 0 {
		t.Errorf("after down there is still\n%s", strings.Join(left, "\n"))
	}
	mustMigrate(t, dsn)
	if diff := cmp.Diff(once, objects(t, dsn, `%`)); diff != "" {
		t.Errorf("first up (-), second up (+):\n%s", diff)
	}
}

// newOwner makes a login that may migrate an empty database and is no superuser, and returns its URL.
func newOwner(t *testing.T, dsn string) string {
	t.Helper()
	owner := newLogin(t, dsn, "CREATEROLE")
	mustExec(t, dsn, `GRANT ALL ON SCHEMA public TO `+owner+`; GRANT `+postgres.AppRole+` TO `+owner)
	return as(t, dsn, owner)
}

// release is the schema that 0.1.0 had.
const release = 29

func TestTheReleaseFindsGapsAndVersions(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewEmpty(t)
	owner := newOwner(t, dsn)
	if err := postgres.MigrateTo(t.Context(), owner, release); err != nil {
		t.Fatal(err)
	}
	mustExec(t, dsn, `
		INSERT INTO tenants (id, name) VALUES ('00000000-0000-0000-0000-000000000001', 'a');
		INSERT INTO policies (tenant_id, id, trigger_ratio, hard_ratio, document)
		SELECT id, '00000000-0000-0000-0000-000000000000', 0.8, 0.95, '{}' FROM tenants;
		INSERT INTO policy_versions (tenant_id, session_key, version, tenant_version, created_at)
		SELECT id, '00000000-0000-0000-0000-000000000000', n, n, now() - interval '1 day' * (4 - n * 2) FROM tenants, generate_series(1, 3) n;
		INSERT INTO sessions (tenant_id, key, id, window_tokens, policy_id, last_seq, checkpoint_n)
		SELECT t.id, gen_random_uuid(), s.id, 1000, '00000000-0000-0000-0000-000000000000', s.last_seq, (s.id = 'dense')::int
		  FROM tenants t, (VALUES ('empty', 0), ('dense', 3), ('skipped', 5), ('removed', 4), ('all removed', 6)) s (id, last_seq);
		INSERT INTO checkpoints (tenant_id, session_key, n, base_n, through_seq, tokens, body_size, units, manifest, policy, engine_version, run_id, created_at)
		SELECT tenant_id, key, 1, 0, 3, 1, 1, '[]', '[]', '{}', 7, gen_random_uuid(), now() FROM sessions WHERE id = 'dense';
		INSERT INTO messages (tenant_id, session_key, seq, role, format, tokens, starts_unit, body, removed_at, removed_seq)
		SELECT s.tenant_id, s.key, n, 'user', 1, 1, true, '{}',
		       CASE WHEN s.id = 'all removed' OR s.id = 'removed' AND n = 2 THEN now() END,
		       CASE WHEN s.id = 'all removed' OR s.id = 'removed' AND n = 2 THEN n + 2 END
		  FROM sessions s, generate_series(1, least(s.last_seq, 3)) n;`)
	mustMigrate(t, owner)
	for sql, want := range map[string]string{
		`SELECT string_agg(id || ' ' || gap_seq, ', ' ORDER BY id) FROM sessions`: "all removed 6, dense 0, empty 0, removed 4, skipped 5",
		`SELECT string_agg(DISTINCT shape, ',') FROM messages`:                    "1",
		`SELECT string_agg(concat_ws(' ', id, engine_version, policy_version), ',')
		   FROM sessions WHERE engine_version IS NOT NULL`: "dense 7 2",
		`SELECT string_agg(kind, ',' ORDER BY kind) FROM tenant_tasks`: "metadata,policy,recompaction,replay",
		`SELECT (items_since > now())::text FROM installation`:         "true",
	} {
		var got string
		if err := openPool(t, dsn).QueryRow(t.Context(), sql).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %q, want %q, %v", sql, got, want, err)
		}
	}
}

func TestTheReleaseKeepsEveryResultAndGoesBack(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewEmpty(t)
	owner := newOwner(t, dsn)
	if err := postgres.MigrateTo(t.Context(), owner, release); err != nil {
		t.Fatal(err)
	}
	mustExec(t, dsn, `
		INSERT INTO tenants (id, name) VALUES ('00000000-0000-0000-0000-000000000001', 'a');
		INSERT INTO policies (tenant_id, id, trigger_ratio, hard_ratio, document)
		SELECT id, '00000000-0000-0000-0000-000000000000', 0.8, 0.95, '{}' FROM tenants;
		INSERT INTO sessions (tenant_id, key, id, window_tokens, policy_id)
		SELECT t.id, '00000000-0000-0000-0000-000000000002', 's', 1000, '00000000-0000-0000-0000-000000000000' FROM tenants t;
		INSERT INTO result_bodies (tenant_id, session_key, sha256, codec, body)
		SELECT tenant_id, key, sha256(text::bytea), 0, text::bytea FROM sessions, unnest(ARRAY['one', 'a b']) text;
		INSERT INTO results (tenant_id, session_key, ref, seq, part, tool_name, call_id, category, media_type, bytes, lines, tokens, sha256)
		SELECT b.tenant_id, b.session_key, encode(b.sha256, 'hex') || n, n, get_byte(b.body, 0), '', '', '', '', octet_length(b.body), 1, 1, b.sha256
		  FROM result_bodies b, generate_series(1, 2) n;`)
	before := resultsAndBodies(t, dsn, `SELECT r.ref || ' ' || encode(b.body, 'escape') || ' ' || b.codec FROM results r JOIN result_bodies b USING (sha256)`)
	mustMigrate(t, owner)
	after := resultsAndBodies(t, dsn, `
		SELECT r.ref || ' ' || encode(c.body, 'escape') || ' ' || c.codec
		  FROM results r
		  JOIN result_bodies b ON b.id = r.body_id AND b.sha256 = r.sha256 AND b.bytes = r.bytes
		  JOIN result_chunks c ON c.body_id = b.id AND c.size = b.bytes AND c.digest = b.sha256`)
	if len(before) != 4 || !slices.Equal(before, after) {
		t.Errorf("before %q, after %q", before, after)
	}
	if err := postgres.MigrateSteps(owner, -migrationsAfter(t, release)); err != nil {
		t.Fatal(err)
	}
	back := resultsAndBodies(t, dsn, `SELECT r.ref || ' ' || encode(b.body, 'escape') || ' ' || b.codec FROM results r JOIN result_bodies b USING (sha256)`)
	if !slices.Equal(before, back) {
		t.Errorf("before %q, back %q", before, back)
	}
	mustMigrate(t, owner) // nothing is left that is in the way
}

func resultsAndBodies(t *testing.T, dsn, sql string) []string {
	t.Helper()
	rows, err := openPool(t, dsn).Query(t.Context(), sql+` ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestMigratingAMigratedDatabaseChangesNothing(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	before := objects(t, dsn, `%`)
	for _, list := range []string{"", "&search_path=app,public", "&search_path=%22$user%22,public"} {
		mustMigrate(t, dsn+list)
		if diff := cmp.Diff(before, objects(t, dsn, `%`)); diff != "" {
			t.Errorf("%s: before (-), after (+):\n%s", list, diff)
		}
	}
	var schemas int
	err := pgtest.Row(t, dsn, `SELECT count(*) FROM pg_namespace WHERE nspname IN ('app', '$user')`).Scan(&schemas)
	if err != nil || schemas > 0 {
		t.Errorf("%d schemas were made, %v", schemas, err)
	}
}

func TestDatabasesOfOneServerMigrateAtOnce(t *testing.T) {
	t.Parallel()
	errs := make(chan error)
	const databases = 4
	for range databases {
		dsn := pgtest.NewEmpty(t)
		go func() { errs <- postgres.Migrate(t.Context(), dsn) }()
	}
	for range databases {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func TestAMigrationThatBrokeOffIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	want := objects(t, pgtest.New(t), `%`)
	for name, table := range map[string]string{"the first file": "river_migration", "the last table of a long file": "idempotency"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.NewEmpty(t)
			mustExec(t, dsn, `CREATE TABLE `+table+` ()`)
			if err := postgres.Migrate(t.Context(), dsn); err == nil || !strings.Contains(err.Error(), table) {
				t.Fatalf("with %s in the way: %v", table, err)
			}
			mustExec(t, dsn, `DROP TABLE `+table)
			mustMigrate(t, dsn)
			if diff := cmp.Diff(want, objects(t, dsn, `%`)); diff != "" {
				t.Errorf("at once (-), broken off (+):\n%s", diff)
			}
		})
	}
}

func TestAMigrationThatDoesNotGetItsLocksIsTriedAgain(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewEmpty(t)
	blocker, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer blocker.Close(context.WithoutCancel(t.Context()))
	// The server ends this transaction after the migration's first attempt has given up.
	_, err = blocker.Exec(t.Context(), `SET idle_in_transaction_session_timeout = '3500ms'; BEGIN; CREATE TABLE tenants ()`)
	if err != nil {
		t.Fatal(err)
	}
	mustMigrate(t, dsn)
	if err := blocker.Ping(t.Context()); err == nil {
		t.Error("the migration did not wait for the transaction in its way")
	}
}

func TestTheSchemaVersionIsThatOfTheNewestFile(t *testing.T) {
	t.Parallel()
	have, want, err := postgres.SchemaVersion(t.Context(), openPool(t, pgtest.New(t)))
	if err != nil || have != want || want < 20 {
		t.Errorf("a migrated database has %d, want %d, %v", have, want, err)
	}
	have, want, err = postgres.SchemaVersion(t.Context(), openPool(t, pgtest.NewEmpty(t)))
	if err != nil || have != 0 || want < 20 {
		t.Errorf("an empty database has %d, want %d, %v", have, want, err)
	}
}

func TestALoginThatIsNoSuperuserMayMigrateAndLetAnotherServe(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewEmpty(t)
	owner, server := newLogin(t, dsn, "CREATEROLE"), newLogin(t, dsn, "")
	mustExec(t, dsn, `GRANT ALL ON SCHEMA public TO `+owner)
	mustExec(t, dsn, `
		DO $$ BEGIN
			IF current_setting('server_version_num')::int >= 160000 THEN -- since 16 only an administrator of a role may grant it
				GRANT `+postgres.AppRole+` TO `+owner+` WITH ADMIN OPTION;
				GRANT `+server+` TO `+owner+` WITH ADMIN OPTION;
			END IF;
		END $$`)
	mustMigrate(t, as(t, dsn, owner))
	if _, err := postgres.Open(t.Context(), as(t, dsn, owner), 1); !errors.Is(err, postgres.ErrLogin) || !strings.Contains(err.Error(), "it owns parts of this database") {
		t.Errorf("the owner serves: %v", err)
	}
	if err := postgres.GrantTo(t.Context(), as(t, dsn, owner), postgres.Grant{Login: server, Role: postgres.AppRole}); err != nil {
		t.Fatal(err)
	}
	tenants, served := postgres.New(openPool(t, as(t, dsn, owner)), nil, nil), openStore(t, as(t, dsn, server))
	at := newSession(t, served, newTenant(t, tenants, "acme"), "s")
	mustAppend(t, served, batch(at, message("a", 10)))
	if v, err := served.View(t.Context(), at, postgres.Version{}); err != nil || v.LastSeq != 1 {
		t.Errorf("the view is at %d: %v", v.LastSeq, err)
	}
}

// newLogin makes a login of the test's own, whose password is its name. In the end it is dropped, and with it the schema
// of its name and the roles of its name with _m and _o.
func newLogin(t *testing.T, dsn, attributes string) string {
	t.Helper()
	name := "login_" + strings.ToLower(rand.Text())
	mustExec(t, dsn, `CREATE ROLE `+name+` LOGIN `+attributes+` PASSWORD '`+name+`'`)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, `DROP SCHEMA IF EXISTS `+name+`; DROP OWNED BY `+name+` CASCADE; DROP ROLE IF EXISTS `+name+`_m, `+name+`_o; DROP ROLE `+name); err != nil {
			t.Error(err)
		}
	})
	return name
}

// as returns the URL of a database for a login of newLogin.
func as(t *testing.T, dsn, name string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = nil
	query := u.Query()
	query.Set("user", name)
	query.Set("password", name)
	u.RawQuery = query.Encode()
	return u.String()
}

func TestTheRoleMayNotTruncateNorChangeTheVersion(t *testing.T) {
	t.Parallel()
	pool, err := postgres.Open(t.Context(), pgtest.Worker(pgtest.New(t)), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, sql := range []string{
		`TRUNCATE sessions`, `DELETE FROM schema_migrations`, `UPDATE schema_migrations SET dirty = true`, `CREATE TABLE mine ()`,
		`ALTER TABLE sessions NO FORCE ROW LEVEL SECURITY`,
	} {
		var pg *pgconn.PgError
		if _, err := pool.Exec(t.Context(), sql); !errors.As(err, &pg) || pg.Code != "42501" {
			t.Errorf("%s: %v, want insufficient_privilege", sql, err)
		}
	}
}

// migrationsAfter returns how many migrations there are after a version.
func migrationsAfter(t *testing.T, version int) (n int) {
	t.Helper()
	files, err := fs.Glob(migrations.FS, "*.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if found, err := strconv.Atoi(file[:4]); err != nil {
			t.Fatal(err)
		} else if found > version {
			n++
		}
	}
	return n
}

func TestADatabaseThatIsNewerOrNotOfAReleaseIsRefused(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	store := openStore(t, pgtest.API(dsn))
	var ready postgres.Readiness
	defer ready.Close(t.Context())
	check := func(what, says string) {
		t.Helper()
		for by, err := range map[string]error{
			"start": store.CheckSchema(t.Context()), "readyz": ready.Check(t.Context(), store), "migrate": postgres.Migrate(t.Context(), dsn),
		} {
			switch {
			case says == "" && err != nil:
				t.Errorf("%s, %s: %v", what, by, err)
			case says != "" && (!errors.Is(err, postgres.ErrForeignSchema) || !strings.Contains(err.Error(), says)):
				t.Errorf("%s, %s: %v, want it refused: %s", what, by, err, says)
			}
		}
	}
	check("the newest", "")
	mustExec(t, dsn, `UPDATE installation SET oldest_program = (SELECT version + 1 FROM schema_migrations)`)
	check("a schema for the next program", "or newer")
	mustExec(t, dsn, `UPDATE schema_migrations SET version = 9999; UPDATE installation SET oldest_program = 1`)
	check("a newer schema that this program may serve", "")
	mustExec(t, dsn, `UPDATE installation SET oldest_program = 9999`)
	check("a newer schema", "only programs for 9999 or newer")
	mustExec(t, dsn, `ALTER TABLE installation DROP COLUMN oldest_program`)
	check("a schema of no release", "varve export")
}
