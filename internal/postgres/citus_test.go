package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// TestCitus distributes the tables of an empty database on a Citus and runs the store on it. VARVE_TEST_CITUS is the
// URL of a superuser on the coordinator, in a database that has the extension and its nodes and nothing else. Walls of
// docs/citus.md are reported; any other error fails the test, and belongs into that page.
func TestCitus(t *testing.T) {
	dsn := os.Getenv("VARVE_TEST_CITUS")
	if dsn == "" {
		t.Skip("VARVE_TEST_CITUS names no database with Citus: nothing of docs/citus.md was tried")
	}
	var version string
	conn := connectTo(t, dsn)
	err := conn.QueryRow(t.Context(), `SELECT split_part(citus_version(), ' on ', 1)`).Scan(&version)
	if err != nil {
		t.Fatalf("VARVE_TEST_CITUS: the database has no extension citus: %v", err)
	}
	met := runOnCitus(t, conn, dsn)
	t.Logf("%s: %d of the walls of docs/citus.md were met: %v", version, len(met), met)
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

// onCitus is a database on a Citus, or on one PostgreSQL, and what a run met there.
type onCitus struct {
	*testing.T
	conn  *pgx.Conn // the superuser's
	dsn   string
	store *postgres.Store

	met    []int
	cured  []int
	hidden hiddenWalls

	at     session.Address // the session that the steps work with
	key    session.Key     // of that session
	others []session.Address
}

// runOnCitus migrates and distributes a database, and asks the store for what it does. It returns the walls it met.
func runOnCitus(t *testing.T, conn *pgx.Conn, dsn string) (met []int) {
	t.Helper()
	if err := errors.Join(postgres.Migrate(t.Context(), dsn), pgtest.MakeLogins(t.Context(), dsn)); err != nil {
		t.Fatal(err)
	}
	c := &onCitus{T: t, conn: conn, dsn: dsn}
	for _, sql := range distribution(t, conn) {
		c.try(sql, func(ctx context.Context) error {
			_, err := conn.Exec(ctx, sql)
			return err
		})
	}
	checked := openStore(t, pgtest.Admin(dsn))
	c.open(checked.Pool().Config().AfterConnect)
	c.seed()
	for _, step := range citusSteps() {
		c.try(step.name, func(ctx context.Context) error { return step.do(ctx, c) })
	}
	slices.Sort(c.met)
	return slices.Compact(c.met)
}

// open opens the store, with what its connections do first: nil if they are not to be looked at as the product does.
func (c *onCitus) open(after func(context.Context, *pgx.Conn) error) {
	c.Helper()
	config, err := pgxpool.ParseConfig(pgtest.Admin(c.dsn))
	if err != nil {
		c.Fatal(err)
	}
	config.AfterConnect = after
	config.ConnConfig.Tracer = &c.hidden
	pool, err := pgxpool.NewWithConfig(c.Context(), config)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(pool.Close)
	inserts, err := queue.New(pool)
	if err != nil {
		c.Fatal(err)
	}
	c.store = postgres.New(pool, inserts, nil)
}

// try does a step, and does it again after each cure of a wall that it meets.
func (c *onCitus) try(name string, do func(ctx context.Context) error) {
	c.Helper()
	for again := true; again; {
		err := do(c.Context())
		hidden := c.hidden.take()
		c.met = append(c.met, hidden...)
		switch {
		case err == nil && len(hidden) > 0:
			c.Logf("%s: works, by another way than the one at the walls %v", name, hidden)
			return
		case err == nil:
			c.Logf("%s: works", name)
			return
		}
		again = c.report(name, err)
	}
}

// report reports the failure of a step, and whether the wall that it met was taken out of the way.
func (c *onCitus) report(name string, err error) bool {
	c.Helper()
	n := wallOf(err)
	if sawNothing(err) && !slices.Contains(c.cured, 5) {
		n = 5
	}
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Detail+pg.Where != "" {
		err = fmt.Errorf("%w\n%s\n%s", err, pg.Detail, pg.Where)
	}
	if n == 0 {
		c.Errorf("%s: an error that docs/citus.md does not have: %v", name, err)
		return false
	}
	c.Logf("%s: wall %d: %v", name, n, err)
	c.met = append(c.met, n)
	cure := citusCures[n]
	if cure == nil || slices.Contains(c.cured, n) {
		return false
	}
	cure(c)
	c.cured = append(c.cured, n)
	return true
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

// seed inserts a tenant with sessions as the superuser, whom row-level security does not bind: the store may not get so
// far.
func (c *onCitus) seed() {
	c.Helper()
	tenant := uuid.New()
	execOn(c.T, c.conn, `INSERT INTO tenants (id, name) VALUES ($1, $2)`, tenant, fmt.Sprint("tenant ", tenant))
	execOn(c.T, c.conn, `
		INSERT INTO policies (tenant_id, id, trigger_ratio, hard_ratio, document)
		VALUES ($1, $2, 0.8, 0.95, '{}')`, tenant, uuid.Nil)
	for i := range 10 {
		at := session.Address{Tenant: tenant, ID: fmt.Sprint("s", i)}
		key := session.Key{Tenant: tenant, Key: uuid.New()}
		execOn(c.T, c.conn, `
			INSERT INTO sessions (tenant_id, key, id, window_tokens, policy_id)
			VALUES ($1, $2, $3, 100000, $4)`, tenant, key.Key, at.ID, uuid.Nil)
		if c.at.ID == "" {
			c.at, c.key = at, key
		} else {
			c.others = append(c.others, at)
		}
	}
}
