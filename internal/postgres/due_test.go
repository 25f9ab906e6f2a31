package postgres_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/session"
)

// sweep looks for lost jobs in all ways there are, and returns how many it inserted.
func sweep(t *testing.T, store *postgres.Store) (int, error) {
	t.Helper()
	swept, err := store.Sweep(t.Context())
	if err != nil {
		return swept, err
	}
	audited, err := store.AuditNext(t.Context(), 1_000_000, 1000)
	return swept + audited, err
}

// rows counts the rows of a table that workers read of all tenants.
func rows(t *testing.T, store *postgres.Store, table string) (n int) {
	t.Helper()
	if err := store.Pool().QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestWhatIsDueIsWrittenDownUntilItIsNot(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*postgres.Store, session.Address) error{
		"a compaction": func(store *postgres.Store, at session.Address) error {
			return commitOf(t, store, at, 0, 1, 1, 750, "x")
		},
		"nothing to do": func(store *postgres.Store, at session.Address) error {
			found, err := store.Session(t.Context(), at)
			if err != nil {
				return err
			}
			unchanged := postgres.Outcome{Run: session.Run{State: session.RunUnchanged}, LastSeq: 1, Under: under(found)}
			return store.CommitCheckpoint(t.Context(), session.Key{Tenant: at.Tenant, Key: found.Key}, unchanged, noJob)
		},
		"a larger window": func(store *postgres.Store, at session.Address) error {
			window := 100_000
			_, _, err := store.Update(t.Context(), at, session.Change{WindowTokens: &window}, nil)
			loseJobs(t, store) // or its worker would find that the session is not due
			_, sweepErr := store.Sweep(t.Context())
			return cmpErr(err, sweepErr)
		},
		"its erasure": func(store *postgres.Store, at session.Address) error {
			_, err := store.Delete(t.Context(), at, nil)
			return err
		},
	} {
		store, tenant := newStore(t)
		at := newSession(t, store, tenant, "s")
		mustAppend(t, store, batch(newSession(t, store, tenant, "small"), message("x", 700)))
		if n := rows(t, store, "due_sessions"); n != 0 {
			t.Errorf("%s: below the trigger there are %d rows", name, n)
		}
		mustAppend(t, store, batch(at, message("x", 850)))
		if n := rows(t, store, "due_sessions"); n != 1 {
			t.Errorf("%s: above the trigger there are %d rows", name, n)
		}
		if err := end(store, at); err != nil {
			t.Fatal(err)
		}
		if n := rows(t, store, "due_sessions"); n != 0 {
			t.Errorf("%s leaves %d rows", name, n)
		}
	}
}

func cmpErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// TestEveryLostJobIsHealed loses the job or the row of sessions of several tenants in every way.
func TestEveryLostJobIsHealed(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]string{
		"deleted":         `DELETE FROM river_job`,
		"discarded":       `UPDATE river_job SET state = 'discarded', finalized_at = now()`,
		"cancelled":       `UPDATE river_job SET state = 'cancelled', finalized_at = now()`,
		"ended, no trace": `UPDATE river_job SET state = 'completed', finalized_at = now()`,
		"and its row":     `WITH gone AS (DELETE FROM due_sessions) DELETE FROM river_job`,
		"only its row":    `DELETE FROM due_sessions`,
	} {
		store, tenant := newStore(t)
		other := newTenant(t, store, "other")
		for _, of := range []uuid.UUID{tenant, other} {
			mustAppend(t, store, batch(newSession(t, store, of, "due"), message("x", 900)))
			mustAppend(t, store, batch(newSession(t, store, of, "small"), message("x", 100)))
		}
		if _, err := store.Pool().Exec(t.Context(), lose); err != nil {
			t.Fatal(err)
		}
		if _, err := sweep(t, store); err != nil {
			t.Fatal(err)
		}
		if live, known := liveJobs(t, store), rows(t, store, "due_sessions"); live != 2 || known != 2 {
			t.Errorf("%s: %d live jobs of 2, %d rows", name, live, known)
		}
		if n, err := sweep(t, store); err != nil || n != 0 {
			t.Errorf("%s: the next sweep inserted %d, %v", name, n, err)
		}
	}
}

// TestAuditsGoOnWhereTheyStopped looks at a few sessions at a time.
func TestAuditsGoOnWhereTheyStopped(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	other := newTenant(t, store, "other")
	for n := range 7 {
		for _, of := range []uuid.UUID{tenant, other} {
			mustAppend(t, store, batch(newSession(t, store, of, fmt.Sprint("s", n)), message("x", 900)))
		}
	}
	if _, err := store.Pool().Exec(t.Context(), `WITH gone AS (DELETE FROM due_sessions) DELETE FROM river_job`); err != nil {
		t.Fatal(err)
	}
	var found []int
	for range 9 {
		n, err := store.AuditNext(t.Context(), 3, 10)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, n)
	}
	if want := []int{3, 3, 3, 3, 2, 0, 0, 0, 0}; !slices.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
}

// TestADefaultThatMakesSessionsDueIsFollowed lowers the trigger of a tenant: no session is looked at in the request.
func TestADefaultThatMakesSessionsDueIsFollowed(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	for n := range 5 {
		mustAppend(t, store, batch(newSession(t, store, tenant, fmt.Sprint("s", n)), message("x", 500)))
	}
	lower := session.Policy{Trigger: 0.4, Hard: 0.95, Document: []byte(`{"x":1}`), Patch: []byte(`{"x":1}`)}
	edit := func(_, _ json.RawMessage) (session.Policy, error) { return lower, nil }
	if _, _, err := store.ChangeTenantPolicy(t.Context(), tenant, session.TenantPolicy{Edit: edit, Rebase: edit}); err != nil {
		t.Fatal(err)
	}
	if n := liveJobs(t, store); n != 0 {
		t.Errorf("the request made %d jobs", n)
	}
	for _, want := range []int{2, 2, 1} {
		tasks, err := store.Tasks(t.Context(), postgres.TaskPolicy, 10)
		if err != nil || len(tasks) != 1 {
			t.Fatalf("tasks %v, %v", tasks, err)
		}
		if _, inserted, err := store.AuditTenant(t.Context(), tasks[0], 2); err != nil || inserted != want {
			t.Errorf("%d jobs, want %d, %v", inserted, want, err)
		}
	}
	if left, err := store.Tasks(t.Context(), postgres.TaskPolicy, 10); err != nil || len(left) != 0 {
		t.Errorf("the tasks %v are left, %v", left, err)
	}
}

// TestADefaultWakesWhatWaits has sessions whose compaction waits until the provider's cache is cold, and a default that
// lets it wait no longer.
func TestADefaultWakesWhatWaits(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	change := func(ttl time.Duration) {
		t.Helper()
		next := session.Policy{Trigger: 0.8, Hard: 0.95, CacheTTL: ttl, Document: []byte(`{}`), Patch: fmt.Appendf(nil, `{"x":%d}`, ttl)}
		edit := func(_, _ json.RawMessage) (session.Policy, error) { return next, nil }
		if _, _, err := store.ChangeTenantPolicy(t.Context(), tenant, session.TenantPolicy{Edit: edit, Rebase: edit}); err != nil {
			t.Fatal(err)
		}
	}
	change(time.Hour)
	for n := range 3 {
		mustAppend(t, store, batch(newSession(t, store, tenant, fmt.Sprint("s", n)), message("x", 850)))
	}
	states := func() (states []string) {
		for _, job := range jobs(t, store) {
			states = append(states, job.State)
		}
		return states
	}
	if got := states(); !slices.Equal(got, []string{"scheduled", "scheduled", "scheduled"}) {
		t.Fatalf("while the cache is warm, jobs are %v", got)
	}
	change(0)
	for _, want := range []string{"[available available scheduled]", "[available available available]"} {
		tasks, err := store.Tasks(t.Context(), postgres.TaskPolicy, 10)
		if err != nil || len(tasks) != 1 {
			t.Fatalf("tasks %v, %v", tasks, err)
		}
		if _, _, err := store.AuditTenant(t.Context(), tasks[0], 2); err != nil {
			t.Fatal(err)
		}
		got := states()
		if slices.Sort(got); fmt.Sprint(got) != want {
			t.Errorf("jobs are %v, want %s", got, want)
		}
	}
}

// TestACrossingAppendIsHot counts the updates of sessions by appends below and over the trigger.
func TestACrossingAppendIsHot(t *testing.T) {
	t.Parallel()
	store := openStore(t, pgtest.Admin(pgtest.New(t))) // whose statistics are of this test
	tenant := newTenant(t, store, "acme")
	for n := range 20 {
		at := newSession(t, store, tenant, fmt.Sprint("s", n))
		for range 3 {
			mustAppend(t, store, batch(at, message("x", 300)))
		}
	}
	conn, err := store.Pool().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	var updates, hot int
	for updates < 80 {
		err := conn.QueryRow(t.Context(), `
			SELECT n_tup_upd, n_tup_hot_upd
			  FROM pg_stat_user_tables
			 WHERE relname = 'sessions'`).Scan(&updates, &hot)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), `SELECT pg_stat_clear_snapshot(), pg_sleep(0.05)`); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("HOT updates of sessions: %d of %d", hot, updates)
	if hot != updates {
		t.Errorf("%d of %d updates are HOT", hot, updates)
	}
}
