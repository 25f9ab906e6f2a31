package postgres_test

import (
	"context"
	"errors"
	"regexp"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

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
	{14, regexp.MustCompile(`cannot create foreign key constraint \(`)},
	{15, regexp.MustCompile(`function public\.\w+\(\w+_\d+\) does not exist`)},
	{16, regexp.MustCompile(`relation with OID 0 does not exist`)},
	{17, regexp.MustCompile(`complex joins are only supported`)},
	{18, regexp.MustCompile(`a column definition list is required for functions returning "record"`)},
	{19, regexp.MustCompile(`STABLE functions used in UPDATE queries cannot be called with column references`)},
	{20, regexp.MustCompile(`permission denied for table \w+_\d+`)},
	{21, regexp.MustCompile(`subqueries are not supported within INSERT queries`)},
	{22, regexp.MustCompile(`cannot execute a distributed query from a query on a shard`)},
	{23, regexp.MustCompile(`cannot perform distributed planning for the given modification`)},
	{24, regexp.MustCompile(`subquery in LIMIT is not supported`)},
	{25, regexp.MustCompile(`cannot push down this subquery`)},
	{26, regexp.MustCompile(`functions used in the .*clause of INSERTs on distributed tables`)},
	{27, regexp.MustCompile(`could not run distributed query with FOR UPDATE/SHARE`)},
}

// sawNothing reports whether a statement found nothing of what is there: the shard has not been told the tenant, which
// is wall 5.
func sawNothing(err error) bool {
	return errors.Is(err, session.ErrNotFound) || errors.Is(err, pgx.ErrNoRows)
}

// wallOf returns the number of the wall that an error is, 0 for an error that is not among them.
func wallOf(err error) int {
	for _, w := range citusWalls {
		if w.error.MatchString(err.Error()) {
			return w.n
		}
	}
	return 0
}

// citusCures take a wall out of the way without a change of the product: not as an installation could do it, but a run
// gets to the next one.
var citusCures = map[int]func(c *onCitus){
	5: func(c *onCitus) {
		c.execEach(`SELECT format('CREATE POLICY citus ON %s USING (true) WITH CHECK (true)', oid::regclass), ''` +
			tablesWithPolicies)
	},
	6: func(c *onCitus) { c.set(`plan_cache_mode = auto`) },
	8: func(c *onCitus) {
		c.execEach(`SELECT format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', oid::regclass), ''` +
			tablesWithPolicies)
	},
	13: func(c *onCitus) { execOn(c.T, c.conn, `SET citus.enable_unsafe_triggers = on`) },
	15: func(c *onCitus) {
		execOn(c.T, c.conn, `
			CREATE FUNCTION public.audit_hash(anyelement) RETURNS bytea LANGUAGE sql IMMUTABLE
			    AS 'SELECT sha256(convert_to($1::text, ''UTF8''))'`)
	},
	16: distributeWorkers,
	18: distributeWorkers,
	20: func(c *onCitus) { execOn(c.T, c.conn, `GRANT INSERT ON events, audit_trail TO varve_app`) },
	22: func(c *onCitus) { c.set(`citus.allow_nested_distributed_execution = on`) },
}

const tablesWithPolicies = `
	  FROM pg_class
	 WHERE relrowsecurity AND relnamespace = 'public'::regnamespace AND relkind = 'r'`

// distributeWorkers distributes the tables that workers read for all tenants, too.
func distributeWorkers(c *onCitus) {
	c.execEach(`
		SELECT format('SELECT create_distributed_table(%L, ''tenant_id'')', w.name), ''
		  FROM unnest(ARRAY['due_sessions', 'chores', 'event_heads', 'webhook_turns', 'retention']) w (name)
		 WHERE NOT EXISTS (
		       SELECT
		         FROM pg_dist_partition p
		        WHERE p.logicalrelid = w.name::regclass AND p.partmethod = 'h')`)
}

// execEach runs the statements that a query finds, as the superuser.
func (c *onCitus) execEach(sql string) {
	c.Helper()
	for _, found := range pairsOf(c.T, c.conn, sql) {
		execOn(c.T, c.conn, found[0])
	}
}

// set changes a setting of the store's login in this database, on all nodes, and opens the store again.
func (c *onCitus) set(setting string) {
	c.Helper()
	var failed int
	err := c.conn.QueryRow(c.Context(), `
		SELECT count(*)
		  FROM run_command_on_all_nodes(format($$
		       DO '
		       BEGIN
		           SET LOCAL citus.enable_ddl_propagation = off;
		           ALTER ROLE %I IN DATABASE %I SET %s;
		       END'$$, $1::text, current_database(), $2::text))
		 WHERE NOT success`, c.store.Pool().Config().ConnConfig.User, setting).Scan(&failed)
	if err != nil || failed > 0 {
		c.Fatalf("%s: %d nodes, %v", setting, failed, err)
	}
	c.open(nil)
}

// hiddenWalls remembers the walls that the store's statements meet: the store gets over the failure of some.
type hiddenWalls struct {
	mu  sync.Mutex
	met []int
}

func (h *hiddenWalls) note(err error) {
	if err == nil {
		return
	}
	if n := wallOf(err); n > 0 {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.met = append(h.met, n)
	}
}

// take returns the walls since it was called last.
func (h *hiddenWalls) take() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	met := h.met
	h.met = nil
	return met
}

// Those and the rest of pgx.BatchTracer.
func (h *hiddenWalls) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (h *hiddenWalls) TraceQueryEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	h.note(data.Err)
}

func (h *hiddenWalls) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (h *hiddenWalls) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	h.note(data.Err)
}

func (h *hiddenWalls) TraceBatchEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	h.note(data.Err)
}

func TestAnErrorOfCitusIsAWall(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		`ERROR: non-IMMUTABLE functions are not allowed in CASE or COALESCE statements (SQLSTATE 0A000)`:       9,
		`ERROR: new row violates row-level security policy for table "policies_102011" (SQLSTATE 42501)`:       5,
		`ERROR: duplicate key value violates unique constraint "idempotency_pkey_102080" (SQLSTATE 23505)`:     12,
		`ERROR: duplicate key value violates unique constraint "idempotency_pkey" (SQLSTATE 23505)`:            0,
		`ERROR: relation "sessions" does not exist`:                                                            0,
		`ERROR: direct joins between distributed and local tables are not supported`:                           11,
		`FATAL: role "varve_app" is not permitted to log in`:                                                   4,
		`ERROR: could not create distributed plan`:                                                             6,
		`ERROR: operator does not exist: smallint = boolean`:                                                   7,
		`ERROR: COPY FROM not supported with row-level security (SQLSTATE 0A000)`:                              8,
		`ERROR: functions used in UPDATE queries on distributed tables must not be VOLATILE`:                   10,
		`ERROR: cannot distribute relation "x" because it has triggers`:                                        13,
		`ERROR: cannot distribute relation: colocate_with option is not supported with tables that are local`:  2,
		`ERROR: cannot create foreign key constraint (SQLSTATE 0A000)`:                                         14,
		`ERROR: function public.audit_hash(audit_trail_102055) does not exist (SQLSTATE 42883)`:                15,
		`ERROR: function public.audit_hash(text) does not exist (SQLSTATE 42883)`:                              0,
		`ERROR: relation with OID 0 does not exist (SQLSTATE XX000)`:                                           16,
		`ERROR: complex joins are only supported when all distributed tables are co-located`:                   17,
		`ERROR: a column definition list is required for functions returning "record" (SQLSTATE 42601)`:        18,
		`ERROR: STABLE functions used in UPDATE queries cannot be called with column references`:               19,
		`ERROR: permission denied for table events_102093 (SQLSTATE 42501)`:                                    20,
		`ERROR: permission denied for table events (SQLSTATE 42501)`:                                           0,
		`ERROR: subqueries are not supported within INSERT queries (SQLSTATE 0A000)`:                           21,
		`ERROR: cannot execute a distributed query from a query on a shard (SQLSTATE XX000)`:                   22,
		`ERROR: cannot perform distributed planning for the given modification (SQLSTATE 0A000)`:               23,
		`ERROR: subquery in LIMIT is not supported in multi-shard queries (SQLSTATE 0A000)`:                    24,
		`ERROR: cannot push down this subquery (SQLSTATE 0A000)`:                                               25,
		`ERROR: functions used in the DO UPDATE SET clause of INSERTs on distributed tables`:                   26,
		`ERROR: functions used in the WHERE clause of the ON CONFLICT clause of INSERTs on distributed tables`: 26,
		`ERROR: could not run distributed query with FOR UPDATE/SHARE commands (SQLSTATE 0A000)`:               27,
	} {
		if got := wallOf(errors.New(text)); got != want {
			t.Errorf("%s: wall %d instead of %d", text, got, want)
		}
	}
}
