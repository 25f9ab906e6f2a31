package postgres_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// beginRun does what River does when it hands the session's job to a worker, which then starts its run.
func beginRun(t *testing.T, store *postgres.Store, at session.Address, worker string) postgres.Attempt {
	t.Helper()
	found, err := store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	a := postgres.Attempt{Key: session.Key{Tenant: at.Tenant, Key: found.Key}}
	err = store.Pool().QueryRow(t.Context(), `
		UPDATE river_job
		   SET state = 'running', attempt = attempt + 1, attempted_at = now(), attempted_by = array_append(attempted_by, $2)
		 WHERE args ->> 'session' = $1 AND finalized_at IS NULL AND state <> 'running'
		RETURNING id, attempt, args ->> 'run'`, found.Key.String(), worker).Scan(&a.Job, &a.Number, &a.Run)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.StartRun(t.Context(), a.Key, a.Run); err != nil {
		t.Fatal(err)
	}
	return a
}

// job returns the state of the session's live job, its tag, and in how many seconds it starts.
func job(t *testing.T, store *postgres.Store, key session.Key) (state, tag string, starts float64) {
	t.Helper()
	err := store.Pool().QueryRow(t.Context(), `
		SELECT state::text, coalesce(tags[1], ''), extract(epoch FROM scheduled_at - now())::float
		  FROM river_job
		 WHERE args ->> 'session' = $1 AND finalized_at IS NULL`, key.Key.String()).Scan(&state, &tag, &starts)
	if err != nil {
		t.Fatal(err)
	}
	return state, tag, starts
}

func fail(t *testing.T, store *postgres.Store, a postgres.Attempt, f postgres.Failure) postgres.Retry {
	t.Helper()
	retry, err := store.FailRun(t.Context(), a, f)
	if err != nil {
		t.Fatal(err)
	}
	return retry
}

func dueSession(t *testing.T, store *postgres.Store, at session.Address) {
	t.Helper()
	mustAppend(t, store, batch(at, message("x", 850)))
}

func TestInfrastructureIsRetriedForEverAndNeverCounted(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	dueSession(t, store, at)
	for range 3 * session.MaxFailures {
		a := beginRun(t, store, at, "w")
		fail(t, store, a, postgres.Failure{Class: session.FailureInfrastructure, Reason: "away", Wait: 4 * time.Second})
		if state, _, starts := job(t, store, a.Key); state != "retryable" || starts > 4 || starts < 1 {
			t.Fatalf("after attempt %d its job is %s and starts in %.0f s", a.Number, state, starts)
		}
	}
	if found, err := store.Failing(t.Context(), at); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("it was counted: %+v, %v", found, err)
	}
}

func TestASessionsOwnFailuresLeadToAQuarantine(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	dueSession(t, store, at)
	var waited time.Duration
	for n := range session.MaxFailures {
		a := beginRun(t, store, at, "w")
		retry := fail(t, store, a, postgres.Failure{Class: session.FailureOwn, Reason: fmt.Sprint("bug ", n)})
		if last := n == session.MaxFailures-1; retry.Quarantined != last || !last && retry.Wait < waited {
			t.Fatalf("failure %d: %+v", n+1, retry)
		}
		waited = retry.Wait
	}
	found, err := store.Failing(t.Context(), at)
	if err != nil || found.Failures != session.MaxFailures || found.QuarantinedAt == nil || found.Error != "bug 7" {
		t.Fatalf("%+v, %v", found, err)
	}
	key := session.Key{Tenant: tenant, Key: found.Key}
	asleep := func(after string) {
		t.Helper()
		if state, tag, starts := job(t, store, key); state != "scheduled" || tag != "quarantined" || starts < 60 {
			t.Errorf("after %s its job is %s, tagged %q, and starts in %.0f s", after, state, tag, starts)
		}
	}
	asleep("the last failure")
	mustAppend(t, store, batch(at, message("y", 500)))
	asleep("an append")
	if n, err := store.Sweep(t.Context()); err != nil || n != 0 {
		t.Errorf("the sweep inserted %d, %v", n, err)
	}
	asleep("a sweep")
	loseJobs(t, store)
	if n, err := store.Sweep(t.Context()); err != nil || n != 1 {
		t.Errorf("after its job was lost the sweep inserted %d, %v", n, err)
	}
	runs, err := store.Runs(t.Context(), at, session.Page{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if rule, err := store.RetryRuleOf(t.Context(), key, runs[0].ID); err != nil || rule.Wait < time.Minute || !rule.Alone {
		t.Errorf("its run begins with %+v, %v", rule, err)
	}
}

// TestARunThatWasAskedForIsFoundAgain loses the jobs of two runs, of which one session gets another job meanwhile.
// TestNoRunStaysOpenWithoutItsJob has runs of every cause whose jobs are gone, of sessions that are not due.
func TestNoRunStaysOpenWithoutItsJob(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	causes := []string{"threshold", "hard", "idle", "manual", "sweep", "follow_up", "restore", "damage", "summary"}
	for _, cause := range causes {
		at := newSession(t, store, tenant, cause)
		mustAppend(t, store, batch(at, message("x", 10)))
		if err := execInTenant(t, store, tenant, `
			INSERT INTO runs (tenant_id, id, session_key, cause, state, job_id)
			SELECT tenant_id, gen_random_uuid(), key, $1, 'queued', 0
			  FROM sessions
			 WHERE id = $1`, cause); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := store.RequeueRuns(t.Context(), tenant); err != nil || n != len(causes) || liveJobs(t, store) != n {
		t.Errorf("%d of %d runs were found, %d have a job, %v", n, len(causes), liveJobs(t, store), err)
	}
}

func TestARunThatWasAskedForIsFoundAgain(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at, busy := newSession(t, store, tenant, "s"), newSession(t, store, tenant, "busy")
	states := map[string]session.RunState{}
	var runs []session.Run
	for _, of := range []session.Address{at, busy} {
		mustAppend(t, store, batch(of, message("x", 10)))
		run, _, err := store.Compact(t.Context(), of, nil)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	if n, err := store.RequeueRuns(t.Context(), tenant); err != nil || n != 0 {
		t.Errorf("%d runs that have their job, %v", n, err)
	}
	loseJobs(t, store)
	if err := execInTenant(t, store, tenant, `
		INSERT INTO runs (tenant_id, id, session_key, cause, state, job_id)
		SELECT tenant_id, gen_random_uuid(), session_key, 'damage', 'running', 0
		  FROM runs
		 WHERE id = $1`, runs[1].ID); err != nil {
		t.Fatal(err)
	}
	if n, err := store.RequeueRuns(t.Context(), tenant); err != nil || n != 3 || liveJobs(t, store) != 2 {
		t.Errorf("%d runs that have none, %d jobs, %v", n, liveJobs(t, store), err)
	}
	for i, of := range []session.Address{at, busy} {
		all, err := store.Runs(t.Context(), of, session.Page{Limit: 10})
		if err != nil || len(all) != i+1 {
			t.Fatalf("%d runs, %v", len(all), err)
		}
		for _, run := range all {
			states[of.ID+" "+run.Cause] = run.State
		}
	}
	if states["s manual"] != session.RunQueued || (states["busy manual"] == session.RunQueued) == (states["busy damage"] == session.RunQueued) {
		t.Errorf("the runs are %v: want one for each session", states)
	}
	if n, err := store.RequeueRuns(t.Context(), tenant); err != nil || n != 0 {
		t.Errorf("%d runs a second time, %v", n, err)
	}
	loseJobs(t, store)
	var sweeps sync.WaitGroup
	for range 8 { // of which some find the run before another one gives it its job
		sweeps.Go(func() {
			if _, err := store.RequeueRuns(t.Context(), tenant); err != nil {
				t.Error(err)
			}
		})
	}
	sweeps.Wait()
	run, err := store.Runs(t.Context(), at, session.Page{Limit: 1})
	if err != nil || run[0].State != session.RunQueued || liveJobs(t, store) != 2 {
		t.Errorf("after several sweeps at once: %+v, %d jobs, %v", run, liveJobs(t, store), err)
	}
}

func TestACompactionByHandDoesNotWaitForTheTrialAndEndsTheQuarantine(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	dueSession(t, store, at)
	a := beginRun(t, store, at, "w")
	fail(t, store, a, postgres.Failure{Class: session.FailureOwn, Reason: "damaged", Final: true})
	byHand := func() (state string, starts float64) {
		t.Helper()
		if _, _, err := store.Compact(t.Context(), at, nil); err != nil {
			t.Fatal(err)
		}
		state, _, starts = job(t, store, a.Key)
		return state, starts
	}
	for range 2 {
		if state, starts := byHand(); state != "retryable" || starts < 1 || starts > 5 {
			t.Errorf("at once after the failure its job is %s and starts in %.0f s: who asks in a loop would repeat it as often",
				state, starts)
		}
	}
	if err := execInTenant(t, store, tenant, `UPDATE session_failures SET failed_at = now() - interval '6 s' WHERE tenant_id = $1`, [16]byte(tenant)); err != nil {
		t.Fatal(err)
	}
	if state, _ := byHand(); state != "available" {
		t.Errorf("its job is %s", state)
	}
	a = beginRun(t, store, at, "w")
	if rule, err := store.RetryRuleOf(t.Context(), a.Key, a.Run); err != nil || rule.Wait != 0 || !rule.Alone {
		t.Errorf("its run begins with %+v, %v", rule, err)
	}
	unchanged := postgres.Outcome{Run: session.Run{ID: a.Run, State: session.RunUnchanged}, LastSeq: 1}
	if err := store.CommitCheckpoint(t.Context(), a.Key, unchanged, a.Job); err != nil {
		t.Fatal(err)
	}
	if found, err := store.Failing(t.Context(), at); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("after a compaction that succeeded: %+v, %v", found, err)
	}
}

func TestTheDeathsOfWorkersAreCountedOnceTheyHadBegun(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	dueSession(t, store, at)
	for n := range session.MaxDeaths {
		a := beginRun(t, store, at, "dead")
		taken := 0
		for range 2 { // workers that both find it
			if _, ok, err := store.RunDied(t.Context(), a, running(t, store), "it died"); err != nil {
				t.Fatal(err)
			} else if ok {
				taken++
			}
		}
		if taken != 1 {
			t.Fatalf("death %d was taken %d times", n+1, taken)
		}
		found, err := store.Failing(t.Context(), at)
		if last := n == session.MaxDeaths-1; err != nil || found.Deaths != n+1 || (found.QuarantinedAt != nil) != last {
			t.Fatalf("death %d: %+v, %v", n+1, found, err)
		}
	}
}

// running returns the newest job that a dead worker had.
func running(t *testing.T, store *postgres.Store) (found queue.Running) {
	t.Helper()
	for _, id := range []string{"dead", "alive"} {
		if err := store.RegisterWorker(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.UnregisterWorker(t.Context(), "dead"); err != nil {
		t.Fatal(err)
	}
	beat, err := store.WorkerBeat(t.Context(), "alive", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if len(beat.Running) > 0 {
		found = beat.Running[0]
	}
	return found
}

func TestAWorkerThatWasLateItselfTakesNobodyForDead(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	const lease = time.Minute
	for _, id := range []string{"a", "b"} {
		if err := store.RegisterWorker(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	dead := func() (ids string) {
		t.Helper()
		if _, err := store.WorkerBeat(t.Context(), "a", lease); err != nil {
			t.Fatal(err)
		}
		if err := store.Pool().QueryRow(t.Context(), `SELECT coalesce(string_agg(id, ' '), '') FROM workers WHERE dead_at IS NOT NULL`).Scan(&ids); err != nil {
			t.Fatal(err)
		}
		return ids
	}
	move := func(column, id, to string) {
		t.Helper()
		if _, err := store.Pool().Exec(t.Context(), `UPDATE workers SET `+column+` = now() + $2::interval WHERE id = $1`, id, to); err != nil {
			t.Fatal(err)
		}
	}
	move("renewed_at", "a", "-2 min")
	move("unbroken", "a", "-1 hour")
	move("renewed_at", "b", "-2 min")
	if ids := dead(); ids != "" {
		t.Errorf("after an outage %q count as dead", ids)
	}
	move("unbroken", "a", "-59 s")
	if ids := dead(); ids != "" {
		t.Errorf("punctual for less than the lease, it takes %q for dead", ids)
	}
	move("unbroken", "a", "-61 s")
	if ids := dead(); ids != "b" {
		t.Errorf("punctual for as long as the lease, it takes %q for dead, want b", ids)
	}
	if err := store.RegisterWorker(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	move("renewed_at", "b", "1 hour") // the database's clock was set back
	if ids := dead(); ids != "b" {
		t.Errorf("one that renewed its row in the future: %q count as dead, want b", ids)
	}
	if beat, err := store.WorkerBeat(t.Context(), "b", lease); err != nil || !beat.Lost {
		t.Errorf("who is taken for dead learns %+v, %v", beat, err)
	}
}

func TestWhatPassesIsInfrastructure(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{
		"08006": true, "40001": true, "40P01": true, "53100": true, "53300": true, "57P01": true, "57P03": true, "58030": true,
		"25006": true, "25P03": true, "55P03": true, "28P01": true,
		"P0001": false, "23503": false, "22P02": false, "42703": false, "XX000": false, "25P02": false,
	} {
		if got := postgres.IsAway(fmt.Errorf("commit: %w", &pgconn.PgError{Code: code})); got != want {
			t.Errorf("%s: %t", code, got)
		}
	}
}

// A place in the queue lies in the past: a job that took one while it waits would start at once, again and again.
func TestACompactionThatComesTooEarlyWaitsForItsTimeBeforeItHasAPlace(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	dueSession(t, store, at)
	a := beginRun(t, store, at, "w")
	// What River does with a snooze of at most five seconds, by a clock that is an hour ahead.
	_, err := store.Pool().Exec(t.Context(), `
		UPDATE river_job
		   SET state = 'available', scheduled_at = now() + interval '1 hour 4 s'
		 WHERE id = $1`, a.Job)
	if err != nil {
		t.Fatal(err)
	}
	if state, _, starts := job(t, store, a.Key); state != "retryable" || starts < 1 || starts > 5 {
		t.Errorf("its job is %s and starts in %.1f s", state, starts)
	}
	// What its scheduler does with what was put off for longer, up to five seconds ahead.
	for _, made := range []string{
		`state = 'scheduled', scheduled_at = now() + interval '3 s'`, `state = 'available'`,
	} {
		if _, err := store.Pool().Exec(t.Context(), `UPDATE river_job SET `+made+` WHERE id = $1`, a.Job); err != nil {
			t.Fatal(err)
		}
	}
	if state, _, starts := job(t, store, a.Key); state != "retryable" || starts < 2 || starts > 3 {
		t.Errorf("made available 3 s ahead its job is %s and starts in %.1f s", state, starts)
	}
	woken := func() string {
		t.Helper()
		if err := queue.WakeRetries(t.Context(), store.Pool()); err != nil {
			t.Fatal(err)
		}
		state, _, _ := job(t, store, a.Key)
		return state
	}
	if state := woken(); state != "retryable" {
		t.Errorf("before its time it is %s", state)
	}
	for name, at := range map[string]string{"at its time": "0 s", "after the clock was set back": "1 hour"} {
		_, err := store.Pool().Exec(t.Context(), `
			UPDATE river_job
			   SET state = 'retryable', scheduled_at = now() + $2::interval
			 WHERE id = $1`, a.Job, at)
		if err != nil {
			t.Fatal(err)
		}
		if state := woken(); state != "available" {
			t.Errorf("%s it is %s", name, state)
		}
	}
}

func TestAFailureSleepsNoLongerOnceTheHardLimitIsCrossed(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	dueSession(t, store, at)
	var a postgres.Attempt
	for n := range 5 {
		a = beginRun(t, store, at, "w")
		fail(t, store, a, postgres.Failure{Class: session.FailureOwn, Reason: fmt.Sprint("bug ", n)})
	}
	if _, _, starts := job(t, store, a.Key); starts < 30 {
		t.Fatalf("after five failures its job starts in %.0f s", starts)
	}
	mustAppend(t, store, batch(at, message("y", 100)))
	state, _, starts := job(t, store, a.Key)
	if state != "retryable" || starts < 1 || starts > 5 {
		t.Errorf("the hard limit was crossed just after the failure: its job is %s and starts in %.0f s", state, starts)
	}
}

func TestAFailureIsReportedWithItsSession(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	dueSession(t, store, at)
	for _, class := range []session.FailureClass{session.FailureInfrastructure, session.FailureOwn} {
		retry := fail(t, store, beginRun(t, store, at, "w"), postgres.Failure{Class: class, Reason: "x", Wait: time.Second})
		if retry.Session != "s" {
			t.Errorf("%s: %+v", class, retry)
		}
	}
}
