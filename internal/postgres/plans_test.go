package postgres_test

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/queue"
)

var (
	planRows = flag.Int("plan-rows", 20_000, "how many rows the lists have whose plans are tested; make soak has 1000000")
	planLogs = flag.Int("plan-messages", 0, "how many messages each session of the large tenant has; test/scale has 20")
	atScale  = flag.Bool("scale", false, "measure: fail what takes longer than its target; test/scale does")
)

// The tenant of testdata/plans.sql and its session with long lists.
var (
	largeTenant = uuid.MustParse("10000000-0000-0000-0000-000000000000")
	longSession = uuid.MustParse("20000000-0000-0000-0000-000000000000")
)

//go:embed testdata/plans.sql
var largeTenantSQL string

// explained is a statement that ran, with its plan.
type explained struct {
	SQL  string `json:"Query Text"`
	Plan planNode
	Took float64 `json:"-"` // in ms
}

// planNode is a node of a plan and what it did.
type planNode struct {
	Type      string  `json:"Node Type"`
	Relation  string  `json:"Relation Name"`
	Index     string  `json:"Index Name"`
	Cond      string  `json:"Index Cond"`
	Rows      float64 `json:"Actual Rows"` // of one loop
	Loops     float64 `json:"Actual Loops"`
	Filtered  float64 `json:"Rows Removed by Filter"`      // of one loop
	Unjoined  float64 `json:"Rows Removed by Join Filter"` // of one loop
	Unindexed float64 `json:"Rows Removed by Index Recheck"`
	Hit       int     `json:"Shared Hit Blocks"`
	Read      int     `json:"Shared Read Blocks"`
	Plans     []planNode
}

// pages returns how many pages the statement read.
func (e *explained) pages() int { return e.Plan.Hit + e.Plan.Read }

// removed returns how many rows a node read for nothing.
func (n *planNode) removed() int {
	return int(n.Loops * (n.Filtered + n.Unjoined + n.Unindexed))
}

// each calls do with a node and all below it, outer ones first.
func (n *planNode) each(do func(n *planNode)) {
	do(n)
	for i := range n.Plans {
		n.Plans[i].each(do)
	}
}

// short returns what makes a plan: nodes, indexes, and the conditions that the indexes are read with.
func (e *explained) short() string {
	var b strings.Builder
	e.Plan.write(&b, "  ")
	return b.String()
}

// write leaves out the nodes that do little more than pass rows on, and how an index is read: that is a matter of
// estimates, and of what vacuum has seen.
func (n *planNode) write(b *strings.Builder, indent string) {
	what := strings.NewReplacer("Bitmap Index", "Index", "Index Only", "Index").Replace(n.Type)
	if !slices.Contains([]string{"Result", "Subquery Scan", "Memoize", "Materialize", "Bitmap Heap Scan"}, n.Type) {
		b.WriteString(indent + strings.Join(strings.Fields(what+" "+cmp.Or(n.Index, n.Relation)+" "+n.Cond), " ") + "\n")
		indent += "  "
	}
	for i := range n.Plans {
		n.Plans[i].write(b, indent)
	}
}

// planned is a database with a large tenant whose statements are explained as they run: auto_explain shows the generic
// plan that the store's own connection uses, which EXPLAIN of a statement with arguments does not.
type planned struct {
	*postgres.Store
	dsn string

	mu  sync.Mutex // the pool may open its connection while statements run
	ran []explained
}

// newPlanned returns such a database. Its store has one connection, so its statements are explained one after another.
func newPlanned(t *testing.T, rows int) *planned {
	t.Helper()
	p := &planned{}
	p.dsn = pgtest.NewFrom(t, fmt.Sprint("planned_", rows), func(dsn string) {
		filled := &planned{dsn: dsn}
		filled.exec(t, strings.NewReplacer(":n", fmt.Sprint(rows), ":tenant", "'"+largeTenant.String()+"'::uuid",
			":long", "'"+longSession.String()+"'::uuid", ":messages", fmt.Sprint(*planLogs)).Replace(largeTenantSQL))
	})
	p.exec(t, `
		DO $$
		BEGIN
		    EXECUTE format('ALTER DATABASE %I SET session_preload_libraries = auto_explain', current_database());
		    EXECUTE format('ALTER DATABASE %I SET auto_explain.log_min_duration = 0', current_database());
		    EXECUTE format('ALTER DATABASE %I SET auto_explain.log_analyze = on', current_database());
		    EXECUTE format('ALTER DATABASE %I SET auto_explain.log_timing = off', current_database());
		    EXECUTE format('ALTER DATABASE %I SET auto_explain.log_buffers = on', current_database());
		    EXECUTE format('ALTER DATABASE %I SET auto_explain.log_format = json', current_database());
		    EXECUTE format('ALTER DATABASE %I SET auto_explain.log_level = notice', current_database());
		    EXECUTE format('ALTER DATABASE %I SET auto_explain.log_nested_statements = on', current_database());
		END
		$$`)
	opened, err := postgres.Open(t.Context(), pgtest.Admin(p.dsn), 1)
	if err != nil {
		t.Fatal(err)
	}
	config := opened.Config()
	opened.Close()
	config.ConnConfig.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { p.explain(t, n.Message) }
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	inserts, err := queue.New(pool)
	if err != nil {
		t.Fatal(err)
	}
	p.Store = postgres.New(pool, inserts, nil)
	return p
}

// explain remembers a plan from a notice of auto_explain.
func (p *planned) explain(t *testing.T, notice string) {
	head, text, found := strings.Cut(notice, "plan:\n")
	if !found {
		return
	}
	var e explained
	if _, err := fmt.Sscanf(head, "duration: %f ms", &e.Took); err != nil {
		t.Errorf("a duration: %v in %q", err, head)
	}
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Errorf("a plan: %v\n%s", err, text)
	}
	setsTenant := strings.HasPrefix(e.SQL, "SELECT set_config") || strings.HasPrefix(e.SQL, "BEGIN")
	if !setsTenant && !strings.Contains(e.SQL, "pg_roles") {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ran = append(p.ran, e)
	}
}

// take returns what was explained since it was called last.
func (p *planned) take() []explained {
	p.mu.Lock()
	defer p.mu.Unlock()
	ran := p.ran
	p.ran = nil
	return ran
}

// exec runs statements as the superuser, one after another.
func (p *planned) exec(t *testing.T, statements ...string) {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), p.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
}

// analyze makes statistics anew from a sample of about 300 rows for each unit of target.
func (p *planned) analyze(t *testing.T, target int) {
	t.Helper()
	p.exec(t, fmt.Sprint(`SET default_statistics_target = `, target), `VACUUM ANALYZE`)
}

// plansOf returns the plans of the statements that do runs.
func (p *planned) plansOf(t *testing.T, do func(ctx context.Context) error) []explained {
	t.Helper()
	p.take()
	if err := do(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p.take()
}
