package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/session"
)

// citusWalls are the errors of docs/citus.md, by their number there.
var citusWalls = []struct {
	n     int
	error *regexp.Regexp
}{
	{2, regexp.MustCompile(`foreign keys? from reference tables and local tables|colocate_with option is not supported`)},
	{4, regexp.MustCompile(`is not permitted to log in`)},
	{5, regexp.MustCompile(`violates row-level security policy`)},
	{6, regexp.MustCompile(`could not create distributed plan|use of parameters in SQL functions`)},
	{7, regexp.MustCompile(`operator does not exist: smallint = boolean`)},
	{8, regexp.MustCompile(`COPY FROM not supported with row-level security`)},
	{9, regexp.MustCompile(`not allowed in CASE or COALESCE`)},
	{10, regexp.MustCompile(`must not be VOLATILE`)},
	{11, regexp.MustCompile(`direct joins between distributed and local tables`)},
	{12, regexp.MustCompile(`duplicate key value violates unique constraint "\w+_\d+"`)},
	{13, regexp.MustCompile(`(?i)\btriggers?\b.*(not supported|cannot distribute)|cannot distribute.*\btriggers?\b`)},
}

// wallOf returns the number of the wall that an error is, 0 for an error that is not among them.
func wallOf(err error) int {
	for _, w := range citusWalls {
		if w.error.MatchString(err.Error()) {
			return w.n
		}
	}
	if errors.Is(err, session.ErrNotFound) { // the shard has not been told the tenant
		return 5
	}
	return 0
}

// TestCitus distributes the tables of an empty database on a Citus and runs the store on it. VARVE_TEST_CITUS is the URL
// of a superuser on the coordinator, in a database that has the extension and its nodes and nothing else. Walls of
// docs/citus.md are reported; any other error fails the test, and belongs into that page.
func TestCitus(t *testing.T) {
	dsn := os.Getenv("VARVE_TEST_CITUS")
	if dsn == "" {
		t.Skip("VARVE_TEST_CITUS names no database with Citus: nothing of docs/citus.md was tried")
	}
	var version string
	conn := connectTo(t, dsn)
	if err := conn.QueryRow(t.Context(), `SELECT extversion FROM pg_extension WHERE extname = 'citus'`).Scan(&version); err != nil {
		t.Fatalf("VARVE_TEST_CITUS: the database has no extension citus: %v", err)
	}
	met := runOnCitus(t, conn, dsn)
	t.Logf("Citus %s: %d of the walls of docs/citus.md were met: %v", version, len(met), met)
}

// TestTheSuiteForCitusRuns runs it on one PostgreSQL whose functions distribute nothing: there it meets no wall.
func TestTheSuiteForCitusRuns(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewEmpty(t)
	conn := connectTo(t, dsn)
	execOn(t, conn, `CREATE SCHEMA plain`)
	execOn(t, conn, `CREATE FUNCTION plain.create_reference_table(regclass) RETURNS void LANGUAGE sql AS ''`)
	execOn(t, conn, `CREATE FUNCTION plain.create_distributed_table(regclass, text) RETURNS void LANGUAGE sql AS ''`)
	execOn(t, conn, `SET search_path = public, plain`)
	if met := runOnCitus(t, conn, dsn); len(met) > 0 {
		t.Errorf("one PostgreSQL has the walls %v", met)
	}
}

func TestAnErrorOfCitusIsAWall(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		`ERROR: non-IMMUTABLE functions are not allowed in CASE or COALESCE statements (SQLSTATE 0A000)`:      9,
		`ERROR: new row violates row-level security policy for table "policies_102011" (SQLSTATE 42501)`:      5,
		`ERROR: duplicate key value violates unique constraint "idempotency_pkey_102080" (SQLSTATE 23505)`:    12,
		`ERROR: duplicate key value violates unique constraint "idempotency_pkey" (SQLSTATE 23505)`:           0,
		`ERROR: relation "sessions" does not exist`:                                                           0,
		`ERROR: direct joins between distributed and local tables are not supported`:                          11,
		`FATAL: role "varve_app" is not permitted to log in`:                                                  4,
		`ERROR: could not create distributed plan`:                                                            6,
		`ERROR: operator does not exist: smallint = boolean`:                                                  7,
		`ERROR: COPY FROM not supported with row-level security (SQLSTATE 0A000)`:                             8,
		`ERROR: functions used in UPDATE queries on distributed tables must not be VOLATILE`:                  10,
		`ERROR: cannot distribute relation "x" because it has triggers`:                                       13,
		`ERROR: cannot distribute relation: colocate_with option is not supported with tables that are local`: 2,
	} {
		if got := wallOf(errors.New(text)); got != want {
			t.Errorf("%s: wall %d instead of %d", text, got, want)
		}
	}
}

func connectTo(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func execOn(t *testing.T, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// runOnCitus migrates and distributes a database, and runs the store's main methods. It returns the walls it met.
func runOnCitus(t *testing.T, conn *pgx.Conn, dsn string) (met []int) {
	t.Helper()
	if err := errors.Join(postgres.Migrate(t.Context(), dsn), pgtest.MakeLogins(t.Context(), dsn)); err != nil {
		t.Fatal(err)
	}
	try := func(name string, do func(ctx context.Context) error) {
		err := do(t.Context())
		if err == nil {
			t.Logf("%s: works", name)
		} else if n := wallOf(err); n > 0 {
			t.Logf("%s: wall %d: %v", name, n, err)
			met = append(met, n)
		} else {
			t.Errorf("%s: an error that docs/citus.md does not have: %v", name, err)
		}
	}
	for _, sql := range distribution(t, conn) {
		try(sql, func(ctx context.Context) error {
			_, err := conn.Exec(ctx, sql)
			return err
		})
	}
	store := openStore(t, pgtest.Admin(dsn))
	try("create a tenant", func(ctx context.Context) error {
		_, err := store.CreateTenant(ctx, "another", session.Policy{Trigger: 0.8, Hard: 0.95, Document: []byte(`{}`)})
		return err
	})
	at := seedOnCitus(t, conn)
	for _, step := range []struct {
		name string
		do   func(ctx context.Context) error
	}{
		{"append", func(ctx context.Context) error {
			_, _, err := store.Append(ctx, batch(at, message("hello", 10)))
			return err
		}},
		{"append that crosses the trigger", func(ctx context.Context) error {
			_, _, err := store.Append(ctx, batch(at, message("long", 100_000)))
			return err
		}},
		{"view", func(ctx context.Context) error {
			_, err := store.View(ctx, at, postgres.Version{})
			return err
		}},
		{"read a session", func(ctx context.Context) error {
			_, err := store.Session(ctx, at)
			return err
		}},
		{"list sessions", func(ctx context.Context) error {
			_, err := store.Sessions(ctx, at.Tenant, session.Page{Limit: 10})
			return err
		}},
		{"note the use of a key", func(ctx context.Context) error { return store.NoteUse(ctx, at.Tenant, uuid.New()) }},
		{"sweep", func(ctx context.Context) error {
			_, err := store.Sweep(ctx)
			return err
		}},
	} {
		try(step.name, step.do)
	}
	slices.Sort(met)
	return slices.Compact(met)
}

// distribution returns the statements that distribute the tables: without their foreign keys, which are added again.
func distribution(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	keys := pairsOf(t, conn, `
		SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname),
		       format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
		  FROM pg_constraint
		 WHERE contype = 'f' AND connamespace = 'public'::regnamespace`)
	tables := pairsOf(t, conn, `
		SELECT format('SELECT create_distributed_table(%L, ''tenant_id'')', c.relname), ''
		  FROM pg_class c
		  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
		 WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace`+notOfWorkers+`
		 ORDER BY c.relname`)
	var statements []string
	for _, key := range keys {
		statements = append(statements, key[0])
	}
	statements = append(statements, `SELECT create_reference_table('tenants')`)
	for _, table := range tables {
		statements = append(statements, table[0])
	}
	for _, key := range keys {
		statements = append(statements, key[1])
	}
	if len(keys) < 15 || len(tables) < 40 {
		t.Fatalf("%d foreign keys and %d tables", len(keys), len(tables))
	}
	return statements
}

// pairsOf returns the rows of a statement with two texts.
func pairsOf(t *testing.T, conn *pgx.Conn, sql string) [][2]string {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (two [2]string, err error) {
		return two, row.Scan(&two[0], &two[1])
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// seedOnCitus inserts a tenant with a session as the superuser, whom row-level security does not bind: the store may not
// get so far.
func seedOnCitus(t *testing.T, conn *pgx.Conn) session.Address {
	t.Helper()
	at := session.Address{Tenant: uuid.New(), ID: "chat"}
	execOn(t, conn, `INSERT INTO tenants (id, name) VALUES ($1, $2)`, at.Tenant, fmt.Sprint("tenant ", at.Tenant))
	execOn(t, conn, `
		INSERT INTO policies (tenant_id, id, trigger_ratio, hard_ratio, document)
		VALUES ($1, $2, 0.8, 0.95, '{}')`, at.Tenant, uuid.Nil)
	execOn(t, conn, `
		INSERT INTO sessions (tenant_id, key, id, window_tokens, policy_id)
		VALUES ($1, $2, $3, 100000, $4)`, at.Tenant, uuid.New(), at.ID, uuid.Nil)
	return at
}
