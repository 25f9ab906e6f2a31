package jobs_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/jobs/jobstest"
	"github.com/varve-dev/varve/internal/modelcall"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// filled returns the messages that fill appends.
func filled() [][]byte {
	bodies := [][]byte{[]byte(`{"role":"user","content":"read all files"}`)}
	for n := range 24 {
		bodies = append(bodies, turn(n, 500)...)
	}
	return bodies
}

func TestTheAppendThatCrossesTheTriggerLeadsToACheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	w.work(jobs.Config{})
	w.fill(at)
	w.settle()
	found := w.check(at, filled())
	if found.Checkpoint == 0 || found.ContextTokens >= 8000 {
		t.Errorf("checkpoint %d, %d tokens of %d", found.Checkpoint, found.ContextTokens, found.TotalTokens)
	}
	runs, err := w.store.Runs(t.Context(), at, session.Page{Limit: 10})
	if err != nil || len(runs) == 0 || runs[0].State != session.RunDone || *runs[0].TokensAfter >= *runs[0].TokensBefore || runs[0].FinishedAt == nil {
		t.Errorf("runs %+v, %v", runs, err)
	}
}

func TestWhatIsAppendedDuringACompactionIsInTheTail(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"snapshot", "planned", "persisted", "rendered"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			at := w.session("s")
			w.fill(at)
			p := jobstest.NewPause(w, step)
			w.work(jobs.Config{Trace: p.Trace})
			jobstest.Await(w, p.Reached)
			late := turn(99, 100)
			w.append(at, late...)
			close(p.GoOn)
			w.settle()
			if found := w.check(at, append(filled(), late...)); found.Checkpoint == 0 {
				t.Error("no checkpoint was made")
			}
			if bodies := w.view(at); string(bodies[len(bodies)-1]) != string(late[1]) {
				t.Error("the last message of the view is not the last one appended")
			}
		})
	}
}

func TestTheSameJobTwiceAtOnceHasOneEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	w.fill(at)
	p := jobstest.NewPause(w, "rendered")
	slow, _ := w.work(jobs.Config{Trace: p.Trace})
	jobstest.Await(w, p.Reached)
	// What River does with the job of a worker that it takes for dead.
	if _, err := w.store.Pool().Exec(t.Context(), `UPDATE river_job SET state = 'available' WHERE state = 'running' AND kind = 'compact'`); err != nil {
		t.Fatal(err)
	}
	w.work(jobs.Config{})
	w.settle()
	first := w.check(at, filled())
	close(p.GoOn)
	if err := slow.Stop(t.Context()); err != nil { // which waits for the twin that was paused
		t.Fatal(err)
	}
	found := w.check(at, filled())
	if first.Checkpoint != 1 || found.Checkpoint != 1 {
		t.Errorf("checkpoint %d, then %d", first.Checkpoint, found.Checkpoint)
	}
	runs, err := w.store.Runs(t.Context(), at, session.Page{Limit: 10})
	if err != nil || len(runs) != 1 || runs[0].State != session.RunDone {
		t.Errorf("runs %+v, %v", runs, err)
	}
}

func TestCompactingAnUnchangedSessionWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	w.work(jobs.Config{})
	w.fill(at)
	w.settle()
	before := w.check(at, filled())
	for range 2 {
		if _, _, err := w.store.Compact(t.Context(), at, nil); err != nil {
			t.Fatal(err)
		}
		w.settle()
	}
	after := w.check(at, filled())
	if before.Checkpoint+1 < after.Checkpoint {
		t.Errorf("checkpoint %d became %d", before.Checkpoint, after.Checkpoint)
	}
	runs, err := w.store.Runs(t.Context(), at, session.Page{Limit: 1})
	if err != nil || runs[0].State != session.RunUnchanged || runs[0].Cause != "manual" {
		t.Errorf("runs %+v, %v", runs, err)
	}
}

func TestAnErasedSessionNeedsNoCompaction(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"snapshot", "planned", "persisted", "rendered"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			at := w.session("s")
			w.fill(at)
			p := jobstest.NewPause(w, step)
			w.work(jobs.Config{Trace: p.Trace})
			jobstest.Await(w, p.Reached)
			if _, err := w.store.Delete(t.Context(), at, nil); err != nil {
				t.Fatal(err)
			}
			close(p.GoOn)
			w.settle()
			var left int
			err := w.store.Pool().QueryRow(t.Context(), `SELECT count(*) FROM river_job WHERE kind = 'compact' AND state <> 'completed'`).Scan(&left)
			if err != nil || left != 0 {
				t.Errorf("%d jobs are left, %v", left, err)
			}
		})
	}
}

// TestALogThatIsEmptyWhenItIsReadIsNotCompacted removes all messages between the snapshot of a compaction and its look at
// the log. It made an empty checkpoint without a body, which readers took for damage.
func TestALogThatIsEmptyWhenItIsReadIsNotCompacted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	w.fill(at)
	first, _ := w.work(jobs.Config{})
	w.settle()
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	remove := func(seq int64) {
		if _, _, err := w.store.Remove(t.Context(), at, seq, nil); err != nil {
			t.Fatal(err)
		}
	}
	remove(1) // which no checkpoint is without: the next compaction begins with the log
	run, _, err := w.store.Compact(t.Context(), at, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := jobstest.NewPause(w, "snapshot")
	w.work(jobs.Config{Trace: p.Trace})
	jobstest.Await(w, p.Reached)
	for seq := range int64(len(filled()) - 1) {
		remove(seq + 2)
	}
	close(p.GoOn)
	w.settle()
	if run, err = w.store.Run(t.Context(), at, run.ID); err != nil || run.State != session.RunSuperseded {
		t.Errorf("the run is %+v, %v", run, err)
	}
}

func TestNoSessionIsLeftOverItsTrigger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work(jobs.Config{Compactions: 4})
	const sessions, turns, window = 6, 60, 20_000
	appended := make([][][]byte, sessions)
	var group sync.WaitGroup
	for s := range sessions {
		at := w.sessionOf(fmt.Sprint("s", s), window)
		group.Go(func() {
			for n := range turns {
				bodies := turn(n, 100+(n*37+s*101)%700)
				w.append(at, bodies...)
				appended[s] = append(appended[s], bodies...)
			}
		})
	}
	group.Wait()
	w.settle()
	for s := range sessions {
		found := w.check(session.Address{Tenant: w.tenant, ID: fmt.Sprint("s", s)}, appended[s])
		if found.ContextTokens >= 0.8*window || found.Checkpoint == 0 {
			t.Errorf("session %d: %d tokens after %d checkpoints", s, found.ContextTokens, found.Checkpoint)
		}
	}
}

func TestTheSweepRunsByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	w.fill(at)
	if _, err := w.store.Pool().Exec(t.Context(), `DELETE FROM river_job`); err != nil {
		t.Fatal(err)
	}
	w.work(jobs.Config{SweepEvery: time.Second})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for found := (session.Session{}); found.Checkpoint == 0; <-time.After(50 * time.Millisecond) {
		var err error
		if found, err = w.store.Session(ctx, at); err != nil {
			t.Fatal(err)
		}
	}
	w.settle()
	w.check(at, filled())
}

func TestAPanicIsRecordedWhereTheSessionsOwnerSeesIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	w.fill(at)
	w.work(jobs.Config{Trace: func(step string) {
		if step == "planned" {
			panic("a bug")
		}
	}})
	w.untilSQL("it failed", `SELECT EXISTS (SELECT FROM river_job WHERE kind = 'compact' AND tags = '{failing}')`)
	found, err := w.store.Failing(t.Context(), at)
	if err != nil || found.Failures == 0 || !strings.Contains(found.Error, "a bug") {
		t.Errorf("%+v, %v", found, err)
	}
	w.check(at, filled())
}

func TestACompactionOnRequestDoesNotWaitForAColdCache(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	policy := jobstest.Settled()
	policy.Cache.TTLSeconds = 3600
	policy.Hard = 1
	change := session.Policy{Trigger: policy.Trigger, Hard: 1, CacheTTL: time.Hour, Document: policy.Document()}
	if _, _, err := w.store.Update(t.Context(), at, session.Change{Policy: &change}, nil); err != nil {
		t.Fatal(err)
	}
	bodies := w.due(at)
	client, _ := w.work(jobs.Config{})
	snoozed, cancel := client.Subscribe(river.EventKindJobSnoozed)
	defer cancel()
	w.rescheduleNow()
	jobstest.Await(w, snoozed)
	if found := w.check(at, bodies); found.Checkpoint != 0 {
		t.Errorf("the cache is warm, but checkpoint %d was made", found.Checkpoint)
	}
	if _, _, err := w.store.Compact(t.Context(), at, nil); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if found := w.check(at, bodies); found.Checkpoint != 1 {
		t.Errorf("asked for, but checkpoint is %d", found.Checkpoint)
	}
}

// rescheduleNow wakes the jobs that wait for a time.
func (w *world) rescheduleNow() {
	w.Helper()
	_, err := w.store.Pool().Exec(w.Context(), `UPDATE river_job SET state = 'available', scheduled_at = now() WHERE state = 'scheduled'`)
	if err != nil {
		w.Fatal(err)
	}
}

func TestARunCountsTheSystemMessagesThatStandApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	system := session.NewMessage{Body: []byte(`{"role":"system","content":"be brief"}`), Role: "system", Tokens: 7000, Pinned: true, StartsUnit: true}
	user := session.NewMessage{Body: []byte(`{"role":"user","content":"hi"}`), Role: "user", Tokens: 2000, StartsUnit: true}
	a := session.Append{Session: at, Format: session.Anthropic, Messages: []session.NewMessage{system, user}}
	if _, _, err := w.store.Append(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	w.work(jobs.Config{})
	w.settle()
	runs, err := w.store.Runs(t.Context(), at, session.Page{Limit: 1})
	if err != nil || *runs[0].TokensBefore != 9000 || *runs[0].TokensAfter != 9000 {
		t.Errorf("runs %+v, %v", runs, err)
	}
}

// recompact compacts a session from its log, as a part of other work, with models asked or not.
func (w *world) recompact(at session.Address, caller *modelcall.Caller, ask bool) {
	w.Helper()
	found, err := w.store.Session(w.Context(), at)
	if err != nil {
		w.Fatal(err)
	}
	run := uuid.New()
	w.inTenant(`
		INSERT INTO runs (tenant_id, id, session_key, cause, state, job_id, started_at)
		VALUES ('` + at.Tenant.String() + `', '` + run.String() + `', '` + found.Key.String() + `', 'recompaction', 'running', 0, now())`)
	c := &compactor.Compactor{
		Store: w.store, Log: slog.New(slog.DiscardHandler), Caller: caller, Trace: func(string) {},
	}
	part := &postgres.Part{Ended: func(context.Context, pgx.Tx, postgres.Outcome) error { return nil }}
	err = c.Recompact(w.Context(), compactor.Recompaction{
		Key: session.Key{Tenant: at.Tenant, Key: found.Key}, Run: run, Ask: ask, Part: part,
	}, 0)
	if err != nil {
		w.Fatal(err)
	}
}
