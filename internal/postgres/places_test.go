package postgres_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// insertWaiting makes a tenant have this many compactions that wait for a worker.
func insertWaiting(t *testing.T, store *postgres.Store, tenant uuid.UUID, n, priority int) {
	t.Helper()
	_, err := store.Pool().Exec(t.Context(), `
		INSERT INTO river_job (kind, queue, max_attempts, priority, args)
		SELECT 'compact', 'compaction', 8, $3, jsonb_build_object('tenant', $1::text, 'session', gen_random_uuid())
		  FROM generate_series(1, $2)`, tenant.String(), n, priority)
	if err != nil {
		t.Fatal(err)
	}
}

// order returns the tenants of the waiting compactions in the order in which workers take them.
func order(t *testing.T, store *postgres.Store) []string {
	t.Helper()
	rows, err := store.Pool().Query(t.Context(), `
		SELECT args ->> 'tenant'
		  FROM river_job
		 WHERE state = 'available' AND queue = 'compaction'
		 ORDER BY priority, scheduled_at, id`)
	if err != nil {
		t.Fatal(err)
	}
	tenants, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return tenants
}

// take takes the first n waiting compactions, as workers do, and completes them.
func take(t *testing.T, store *postgres.Store, n int) {
	t.Helper()
	_, err := store.Pool().Exec(t.Context(), `
		UPDATE river_job
		   SET state = 'completed', finalized_at = now()
		 WHERE id IN (SELECT id FROM river_job WHERE state = 'available' ORDER BY priority, scheduled_at, id LIMIT $1)`, n)
	if err != nil {
		t.Fatal(err)
	}
}

func place(of uuid.UUID, in []string) int {
	for i, tenant := range in {
		if tenant == of.String() {
			return i
		}
	}
	return -1
}

func TestATenantWithManyWaitingCompactionsTakesTurns(t *testing.T) {
	t.Parallel()
	for _, waiting := range []int{300, 2500} {
		store, many := newStore(t)
		one := newTenant(t, store, "one")
		insertWaiting(t, store, many, waiting, 1)
		take(t, store, waiting/3)
		for range 3 { // one at a time: what was served counts too
			at := session.Address{Tenant: one, ID: uuid.NewString()}
			if _, _, err := store.Create(t.Context(), at, session.Change{}, nil); err != nil {
				t.Fatal(err)
			}
			mustCompact(t, store, at, 1)
			if at := place(one, order(t, store)); at > 1 {
				t.Errorf("with %d waiting, the other tenant's compaction starts after %d of them", waiting, at)
			}
			take(t, store, 2)
		}
		insertWaiting(t, store, one, 10, 1)
		in := order(t, store)
		for i, mine := 0, 0; i < 20; i++ {
			if in[i] == one.String() {
				mine++
			}
			if mine < i/2-1 || mine > i/2+2 {
				t.Fatalf("%d of the first %d are of the tenant with 10: they do not take turns", mine, i+1)
			}
		}
	}
}

// mustCompact asks for a compaction of a session, as a threshold does with priority 1.
func mustCompact(t *testing.T, store *postgres.Store, at session.Address, priority int) {
	t.Helper()
	if _, _, err := store.Compact(t.Context(), at, nil); err != nil {
		t.Fatal(err)
	}
	_, err := store.Pool().Exec(t.Context(), `
		UPDATE river_job
		   SET priority = $2
		 WHERE state = 'available' AND args ->> 'tenant' = $1`, at.Tenant.String(), priority)
	if err != nil {
		t.Fatal(err)
	}
}

// TestAThresholdPrecedesWhatIsRequestedWhichIsNotStarved makes a session due whose tenant has requested many others.
func TestAThresholdPrecedesWhatIsRequestedWhichIsNotStarved(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	requested := newTenant(t, store, "requested")
	at := newSession(t, store, requested, "asked")
	if _, _, err := store.Compact(t.Context(), at, nil); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		mustAppend(t, store, batch(newSession(t, store, tenant, fmt.Sprint("s", n)), message("x", 900)))
	}
	if at := place(requested, order(t, store)); at != 5 {
		t.Errorf("the one that was requested is at %d, want 5", at)
	}
	mustAppend(t, store, batch(at, message("x", 900))) // now a threshold asks for it too
	if at := place(requested, order(t, store)); at > 1 {
		t.Errorf("the one that a threshold asks for is at %d", at)
	}
	take(t, store, 6)
	other := newSession(t, store, requested, "other")
	if _, _, err := store.Compact(t.Context(), other, nil); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		mustAppend(t, store, batch(newSession(t, store, tenant, fmt.Sprint("t", n)), message("x", 900)))
	}
	for _, old := range []bool{false, true} {
		if old {
			if _, err := store.Pool().Exec(t.Context(), `UPDATE river_job SET created_at = now() - interval '2 min'`); err != nil {
				t.Fatal(err)
			}
		}
		if err := queue.PromoteOld(t.Context(), store.Pool()); err != nil {
			t.Fatal(err)
		}
		if at := place(requested, order(t, store)); (at <= 1) != old {
			t.Errorf("waiting for long: %t, at %d", old, at)
		}
	}
}

// TestAJobThatHasWaitedTakesItsTurn makes scheduled and failed jobs available, as River does when their time comes.
func TestAJobThatHasWaitedTakesItsTurn(t *testing.T) {
	t.Parallel()
	store, many := newStore(t)
	one := newTenant(t, store, "one")
	for _, state := range []string{"scheduled", "retryable"} {
		loseJobs(t, store)
		insertWaiting(t, store, one, 1, 1)
		if _, err := store.Pool().Exec(t.Context(), `UPDATE river_job SET state = $1, scheduled_at = now() - interval '1 s'`, state); err != nil {
			t.Fatal(err)
		}
		insertWaiting(t, store, many, 50, 1)
		if _, err := store.Pool().Exec(t.Context(), `UPDATE river_job SET state = 'available' WHERE state::text = $1`, state); err != nil {
			t.Fatal(err)
		}
		if at := place(one, order(t, store)); at < 0 || at > 1 {
			t.Errorf("%s: at %d", state, at)
		}
	}
}

var bufferHits = regexp.MustCompile(`Buffers: shared hit=(\d+)`)

// TestAPlaceCostsAFewPages inserts a job behind few and behind many.
func TestAPlaceCostsAFewPages(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	pages := func() (lowest int) {
		for range 5 {
			rows, err := store.Pool().Query(t.Context(), `
				EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF)
				INSERT INTO river_job (kind, queue, max_attempts, priority, args)
				VALUES ('compact', 'compaction', 8, 1, jsonb_build_object('tenant', $1::text))`, tenant.String())
			if err != nil {
				t.Fatal(err)
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				t.Fatal(err)
			}
			found := bufferHits.FindStringSubmatch(fmt.Sprint(lines))
			if found == nil {
				t.Fatalf("no buffers in %s", lines)
			}
			n, _ := strconv.Atoi(found[1])
			if lowest == 0 || n < lowest {
				lowest = n
			}
		}
		return lowest
	}
	insertWaiting(t, store, tenant, 10, 1)
	few := pages()
	insertWaiting(t, store, tenant, 5000, 1)
	if many := pages(); many > few+20 {
		t.Errorf("%d pages behind few jobs, %d behind 5000", few, many)
	}
}

// TestJobsAreDueByTheDatabasesClock inserts a job from a process whose clock is an hour ahead.
func TestJobsAreDueByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	for _, of := range []string{"compaction", "offload"} {
		var isDue bool
		err := store.Pool().QueryRow(t.Context(), `
			INSERT INTO river_job (kind, queue, max_attempts, args, scheduled_at)
			VALUES ('x', $1, 1, jsonb_build_object('tenant', $2::text), now() + interval '1 h')
			RETURNING scheduled_at <= now()`, of, tenant.String()).Scan(&isDue)
		if err != nil || !isDue {
			t.Errorf("%s: due %t, %v", of, isDue, err)
		}
	}
}
