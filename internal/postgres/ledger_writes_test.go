package postgres_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/usage"
)

// written is what PostgreSQL counts of the rows of sessions in the ledger: those that were updated, and those of them
// of which no index has a new entry.
type written struct{ Updated, Hot int64 }

// newCounting returns a store whose only connection reports what it has written when it is asked.
func newCounting(t *testing.T) (store *postgres.Store, ledger func() written) {
	t.Helper()
	pool, err := postgres.Open(t.Context(), pgtest.Admin(pgtest.New(t)), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	inserts, err := queue.New(pool)
	if err != nil {
		t.Fatal(err)
	}
	return postgres.New(pool, inserts, nil), func() written {
		if _, err := pool.Exec(t.Context(), `SELECT pg_stat_force_next_flush()`); err != nil {
			t.Fatal(err)
		}
		rows, err := pool.Query(t.Context(), `
			SELECT n_tup_upd, n_tup_hot_upd
			  FROM pg_stat_user_tables
			 WHERE relname = 'usage_sessions'`)
		if err != nil {
			t.Fatal(err)
		}
		now, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[written])
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
}

// TestReadsWriteToNoIndexOfTheLedger reads a session again and again: only the first read of a day moves it in the list
// of those that nobody reads.
func TestReadsWriteToNoIndexOfTheLedger(t *testing.T) {
	t.Parallel()
	store, ledger := newCounting(t)
	tenant := newTenant(t, store, "acme")
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, texts("a", "b")...))
	mustCount(t, store, tenant, session.Reading{Session: at.ID, Views: 1})
	before := ledger()
	const reads = 10
	for range reads {
		mustCount(t, store, tenant, session.Reading{Session: at.ID, Views: 1, TokensServed: 7})
	}
	now := ledger()
	updated, hot := now.Updated-before.Updated, now.Hot-before.Hot
	if updated != reads || hot < reads-1 { // at midnight, a day begins
		t.Errorf("%d reads updated the row %d times, %d times of which wrote to no index", reads, updated, hot)
	}
}

// TestTheLedgerWritesARowOnce counts messages and reads of a session at once.
func TestTheLedgerWritesARowOnce(t *testing.T) {
	t.Parallel()
	store, ledger := newCounting(t)
	tenant := newTenant(t, store, "acme")
	at := newSession(t, store, tenant, "s")
	mustCount(t, store, tenant, session.Reading{Session: at.ID})
	before := ledger()
	mustAppend(t, store, batch(at, texts("a", "b")...))
	mustCount(t, store, tenant, session.Reading{Session: at.ID, Views: 1, Changed: true})
	if now := ledger(); now.Updated != before.Updated+1 {
		t.Errorf("the row was written %d times", now.Updated-before.Updated)
	}
	mustCount(t, store, tenant, session.Reading{Session: at.ID, Changed: true})
	if now := ledger(); now.Updated != before.Updated+1 {
		t.Error("a session of which there is nothing to count is written")
	}
}

// TestAFollowerIsToldOfWhatIsReadIfItWasNotCounted loses what a process has counted of an append: whoever reads the
// session next has the followers told.
func TestAFollowerIsToldOfWhatIsReadIfItWasNotCounted(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	var told []string
	changed := func(_ context.Context, _ pgx.Tx, _ *postgres.Store, _ uuid.UUID, ids []string) error {
		told = append(told, ids...)
		return nil
	}
	store.Follow([]postgres.Follower{{Behind: `false`, Changed: changed}})
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, texts("a", "b")...))
	for range 2 { // the second time, it is counted
		mustCount(t, store, tenant, session.Reading{Session: at.ID, Views: 1})
		if !slices.Equal(told, []string{"s"}) {
			t.Errorf("told of %v", told)
		}
	}
}

// TestCountingCostsWhatItCounts counts few of many sessions.
func TestCountingCostsWhatItCounts(t *testing.T) {
	t.Parallel()
	p := newPlanned(t, *planRows)
	p.analyze(t, 100)
	page, err := usage.BySession(t.Context(), p.Store, largeTenant, session.Page{Limit: 50})
	if err != nil {
		t.Fatal(err)
	}
	var read []session.Reading
	for i := range page {
		read = append(read, session.Reading{Session: page[i].Session, Views: 1})
	}
	count := func(ctx context.Context) error { return p.CountUsage(ctx, largeTenant, read) }
	p.plansOf(t, count) // which has their messages to count
	for _, ran := range p.plansOf(t, count) {
		pages := ran.pages()
		for i := range ran.Plan.Plans {
			if n := &ran.Plan.Plans[i]; ran.Plan.Type == "CTE Scan" && n.Type == "ModifyTable" { // it ran after all others
				pages += n.Hit + n.Read
			}
		}
		t.Logf("%d pages of %d sessions", pages, len(read))
		ran.Plan.each(func(n *planNode) {
			if int(n.Rows*n.Loops) > len(read) || n.removed() > len(read) {
				t.Errorf("%s %s has %.0f rows:\n%s", n.Type, n.Relation, n.Rows*n.Loops, ran.short())
			}
		})
		if limit := 12 * len(read); pages > limit {
			t.Errorf("%d pages, at most %d:\n%s", pages, limit, ran.short())
		}
	}
}
