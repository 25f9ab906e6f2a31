package postgres_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// noJob completes nothing.
const noJob = 0

func scanOne(dest ...any) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		rows.Next()
		return rows.Scan(dest...)
	}
}

// loseJobs does what a careless operator does: it deletes River's rows.
func loseJobs(t testing.TB, store *postgres.Store) {
	t.Helper()
	if _, err := store.Pool().Exec(t.Context(), `DELETE FROM river_job`); err != nil {
		t.Fatal(err)
	}
}

func TestTheSweepBringsBackALostJobAndNoOther(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	for i, tokens := range []int{900, 900, 100} {
		mustAppend(t, store, batch(newSession(t, store, tenant, fmt.Sprint("s", i)), message("x", tokens)))
	}
	if n, err := sweep(t, store); err != nil || n != 0 {
		t.Errorf("with all jobs live the sweep inserted %d, %v", n, err)
	}
	loseJobs(t, store)
	if n, err := sweep(t, store); err != nil || n != 2 || liveJobs(t, store) != 2 {
		t.Errorf("after both jobs were lost it inserted %d, %v", n, err)
	}
}

func TestASessionThatCannotShrinkIsDueAgainOnceItHasGrown(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("x", 850)))
	found, err := store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	key := session.Key{Tenant: tenant, Key: found.Key}
	unchanged := postgres.Outcome{Run: session.Run{State: session.RunUnchanged}, LastSeq: 1, Under: under(found)}
	loseJobs(t, store)
	if err := store.CommitCheckpoint(t.Context(), key, unchanged, noJob); err != nil {
		t.Fatal(err)
	}
	if n := liveJobs(t, store); n != 0 {
		t.Errorf("%d jobs follow a compaction that found nothing to do", n)
	}
	if n, err := sweep(t, store); err != nil || n != 0 {
		t.Errorf("the sweep inserted %d, %v", n, err)
	}
	if done := mustAppend(t, store, batch(at, message("x", 49))); done.Compaction != session.CompactionNone {
		t.Errorf("49 tokens more: %s", done.Compaction)
	}
	if done := mustAppend(t, store, batch(at, message("x", 1))); done.Compaction != session.CompactionQueued {
		t.Errorf("50 tokens more: %s", done.Compaction)
	}
}

func TestAppendsDuringACompactionAskForTheNext(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("x", 850)))
	loseJobs(t, store)                                // as if it were running and completed by the commit below
	mustAppend(t, store, batch(at, message("y", 90))) // below the hard limit, so it asks for nothing itself
	if err := commitOf(t, store, at, 0, 1, 1, 750, "x"); err != nil {
		t.Fatal(err)
	}
	runs, err := store.Runs(t.Context(), at, session.Page{Limit: 10})
	if err != nil || len(runs) != 2 || runs[0].Cause != "follow_up" || liveJobs(t, store) != 1 {
		t.Errorf("%d live jobs, runs %+v, %v", liveJobs(t, store), runs, err)
	}
}

func TestALowerTriggerMakesASessionDueAtOnce(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("x", 500)))
	policy := session.Policy{Trigger: 0.4, Hard: 0.9, Document: []byte(`{}`)}
	found, _, err := store.Update(t.Context(), at, session.Change{Policy: &policy}, nil)
	if err != nil || found.Policy.Trigger != 0.4 || liveJobs(t, store) != 1 {
		t.Errorf("%d live jobs, %+v, %v", liveJobs(t, store), found, err)
	}
	found, _, err = store.Update(t.Context(), at, session.Change{DefaultPolicy: true}, nil)
	if err != nil || found.Policy.Trigger != 0.8 {
		t.Errorf("back to the default: %+v, %v", found, err)
	}
}

func TestAWarmCachePutsTheJobOffUntilTheHardLimit(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	policy := session.Policy{Trigger: 0.8, Hard: 0.9, CacheTTL: 5 * 60e9, Document: []byte(`{}`)}
	if _, _, err := store.Update(t.Context(), at, session.Change{Policy: &policy}, nil); err != nil {
		t.Fatal(err)
	}
	if done := mustAppend(t, store, batch(at, message("x", 850))); done.Compaction != session.CompactionQueued {
		t.Fatal(done)
	}
	state := func() (state string) {
		if err := store.Pool().QueryRow(t.Context(), `SELECT state FROM river_job`).Scan(&state); err != nil {
			t.Fatal(err)
		}
		return state
	}
	if got := state(); got != "scheduled" {
		t.Errorf("at the trigger the job is %s", got)
	}
	mustAppend(t, store, batch(at, message("x", 100)))
	if got := state(); got != "available" {
		t.Errorf("at the hard limit the job is %s", got)
	}
	runs, err := store.Runs(t.Context(), at, session.Page{Limit: 10})
	if err != nil || len(runs) != 1 || runs[0].Cause != "hard" {
		t.Errorf("runs %+v, %v", runs, err)
	}
}

func TestCreateOrGetMakesOneSession(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	made := make(chan bool, 100)
	for range cap(made) {
		go func() {
			got, _, err := store.Create(context.Background(), session.Address{Tenant: tenant, ID: "s"}, session.Change{}, nil)
			if err != nil {
				t.Error(err)
			}
			made <- got.Created
		}()
	}
	created := 0
	for range cap(made) {
		if <-made {
			created++
		}
	}
	if created != 1 {
		t.Errorf("%d of %d calls created it", created, cap(made))
	}
}

func TestDeleteErasesEverythingOfASession(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	kept := newSession(t, store, tenant, "kept")
	for _, session := range []session.Address{at, kept} {
		mustAppend(t, store, batch(session, message("x", 900)))
		if err := commit(t, store, session, 0, 1, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Delete(t.Context(), at, nil); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"sessions", "messages", "checkpoints", "runs"} {
		var n int
		err := postgres.Query(t.Context(), store, tenant, `SELECT count(*) FROM `+table, nil, scanOne(&n))
		if err != nil || n != 1 {
			t.Errorf("%d rows in %s, want 1; %v", n, table, err)
		}
	}
	if _, err := store.Delete(t.Context(), at, nil); err != session.ErrNotFound {
		t.Errorf("a second time: %v", err)
	}
}

func TestAPolicyThatIsReplacedWhileOthersWaitHidesNoSession(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	policy := session.Policy{Trigger: 0.7, Hard: 0.9, Document: []byte(`{}`)}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 25 {
				if _, _, err := store.Update(t.Context(), at, session.Change{Policy: &policy}, nil); err != nil {
					t.Errorf("update: %v", err)
				}
			}
		})
		group.Go(func() {
			for range 25 {
				mustAppend(t, store, batch(at, message("x", 40)))
				if _, _, err := store.Compact(t.Context(), at, nil); err != nil {
					t.Errorf("compact: %v", err)
				}
			}
		})
	}
	group.Wait()
}

func TestARunThatHasEndedStaysEnded(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("x", 850)))
	runs, err := store.Runs(t.Context(), at, session.Page{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	found, err := store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	key := session.Key{Tenant: tenant, Key: found.Key}
	done := postgres.Outcome{Run: session.Run{ID: runs[0].ID, State: session.RunUnchanged}, LastSeq: 1}
	if err := store.CommitCheckpoint(t.Context(), key, done, noJob); err != nil {
		t.Fatal(err)
	}
	lost := postgres.Failure{Class: session.FailureOwn, Reason: "the answer of the commit was lost"}
	if _, err := store.FailRun(t.Context(), postgres.Attempt{Key: key, Run: runs[0].ID}, lost); !errors.Is(err, postgres.ErrTaken) {
		t.Errorf("the failure of a run that has ended: %v", err)
	}
	if found, err := store.Failing(t.Context(), at); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("it was counted: %+v, %v", found, err)
	}
	if run, err := store.Run(t.Context(), at, runs[0].ID); err != nil || run.State != session.RunUnchanged || run.Error != nil {
		t.Errorf("run %+v, %v", run, err)
	}
	if _, err := store.StartRun(t.Context(), key, runs[0].ID); !errors.Is(err, session.ErrEnded) {
		t.Errorf("started again: %v", err)
	}
}

func TestARunWhoseJobIsLostEnds(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("x", 850)))
	loseJobs(t, store)
	if _, _, err := store.Compact(t.Context(), at, nil); err != nil {
		t.Fatal(err)
	}
	runs, err := store.Runs(t.Context(), at, session.Page{Limit: 10})
	if err != nil || len(runs) != 2 || runs[0].State != session.RunQueued || runs[1].State != session.RunFailed {
		t.Errorf("runs %+v, %v", runs, err)
	}
}

func TestANewPolicyForgetsWhatCouldNotBeRemoved(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("x", 850)))
	found, err := store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	loseJobs(t, store)
	unchanged := postgres.Outcome{Run: session.Run{State: session.RunUnchanged}, LastSeq: 1, Under: under(found)}
	if err := store.CommitCheckpoint(t.Context(), session.Key{Tenant: tenant, Key: found.Key}, unchanged, noJob); err != nil {
		t.Fatal(err)
	}
	model := "other"
	if _, _, err := store.Update(t.Context(), at, session.Change{Model: &model}, nil); err != nil || liveJobs(t, store) != 0 {
		t.Errorf("another model: %d live jobs, %v", liveJobs(t, store), err)
	}
	policy := session.Policy{Trigger: 0.7, Hard: 0.9, Document: []byte(`{}`)}
	if _, _, err := store.Update(t.Context(), at, session.Change{Policy: &policy}, nil); err != nil || liveJobs(t, store) != 1 {
		t.Errorf("another policy: %d live jobs, %v", liveJobs(t, store), err)
	}
}

func TestAnAppendDoesNotWaitForAResultThatIsPersisted(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	found, err := store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	err = postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `
			INSERT INTO runs (tenant_id, id, session_key, cause, state, job_id)
			VALUES ($1, gen_random_uuid(), $2, 'manual', 'done', 0)`, [16]byte(tenant), [16]byte(found.Key))
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		done, _, err := store.Append(ctx, batch(at, message("x", 850)))
		if err == nil && done.Compaction != session.CompactionQueued {
			t.Errorf("%+v did not take the slow path", done)
		}
		return err
	})
	if err != nil {
		t.Errorf("while a foreign key holds the session: %v", err)
	}
}

func TestAnErasedSessionLeavesNoAnswerBehind(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := session.Address{Tenant: tenant, ID: "s"}
	create := &session.Idempotency{Key: "create", Route: "PUT", Digest: sha256.Sum256([]byte("create"))}
	change := session.Change{Metadata: []byte(`{"secret":"canary"}`)}
	if _, _, err := store.Create(t.Context(), at, change, create); err != nil {
		t.Fatal(err)
	}
	a := batch(at, message("a", 1))
	a.Idempotency = &session.Idempotency{Key: "append", Route: "POST", Digest: sha256.Sum256([]byte("append"))}
	mustAppend(t, store, a)
	erase := &session.Idempotency{Key: "erase", Route: "DELETE", Digest: sha256.Sum256([]byte("erase"))}
	for range 2 {
		if _, err := store.Delete(t.Context(), at, erase); err != nil {
			t.Fatal(err)
		}
	}
	var left int
	err := postgres.Query(t.Context(), store, tenant, `SELECT count(*) FROM idempotency WHERE answer LIKE '%canary%'`, nil, scanOne(&left))
	if err != nil || left != 0 {
		t.Errorf("%d answers still hold the metadata, %v", left, err)
	}
	if made, replayed, err := store.Create(t.Context(), at, change, create); err != nil || replayed || !made.Created {
		t.Errorf("created again: %+v, replayed %v, %v", made, replayed, err)
	}
	if done, replayed, err := store.Append(t.Context(), a); err != nil || replayed || done.LastSeq != 1 {
		t.Errorf("appended again: %+v, replayed %v, %v", done, replayed, err)
	}
}

// TestAMessageFromTheFuturePutsOffNoCompaction has a session whose last message is of the year 2099, as an import may
// bring it: its cache is not warm until then.
func TestAMessageFromTheFuturePutsOffNoCompaction(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	policy := session.Policy{Trigger: 0.8, Hard: 0.9, CacheTTL: 5 * 60e9, Document: []byte(`{}`)}
	if _, _, err := store.Update(t.Context(), at, session.Change{Policy: &policy}, nil); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, store, batch(at, message("x", 100)))
	err := postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		tag, err := tx.Exec(t.Context(), `UPDATE sessions SET last_append_at = '2099-01-01' WHERE tenant_id = $1`, tenant)
		if err == nil && tag.RowsAffected() != 1 {
			err = errors.New("there is no session")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	window := 120 // at its trigger, below its hard limit
	if _, _, err := store.Update(t.Context(), at, session.Change{WindowTokens: &window}, nil); err != nil {
		t.Fatal(err)
	}
	var wait float64
	err = store.Pool().QueryRow(t.Context(), `SELECT extract(epoch FROM scheduled_at - now()) FROM river_job WHERE kind = 'compact'`).Scan(&wait)
	if err != nil || wait > 301 {
		t.Errorf("the compaction waits %.0f s, %v", wait, err)
	}
	found, err := store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	snap, err := store.Snapshot(t.Context(), session.Key{Tenant: tenant, Key: found.Key})
	if err != nil || snap.LastAppendAge != 0 {
		t.Errorf("it was used %v s ago, %v", snap.LastAppendAge, err)
	}
}
