package jobs_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/jobs/jobstest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// sleepy compacts a session of a window of 10,000 tokens from 4,000 on once it is idle for 300 s.
func sleepy(p *policy.Policy) {
	p.Trigger, p.Target, p.Hard = 0.8, 0.2, 0.95
	p.Idle = policy.Idle{Enabled: true, From: 0.4}
	p.Economy = policy.Economy{CacheRead: 0.1, CacheWrite: 1.25, TTLSeconds: 300, Horizon: 20, ReadBackTokens: 100}
	p.Protect.LastUnits = 1
}

// asleep returns a session of about 5,000 tokens with what was appended to it.
func (w *world) asleep(id string, change func(*policy.Policy)) (at session.Address, bodies [][]byte) {
	w.Helper()
	at = w.session(id)
	w.set(at, change)
	bodies = [][]byte{[]byte(`{"role":"user","content":"read all files"}`)}
	for n := range 8 {
		bodies = append(bodies, turn(n, 500)...)
	}
	if done := w.append(at, bodies...); done.Compaction != session.CompactionNone || done.ContextTokens < 4500 || done.ContextTokens > 6000 {
		w.Fatalf("%+v", done)
	}
	return at, bodies
}

// lastUsed sets how many seconds ago a session was used last, and starts its job.
func (w *world) lastUsed(at session.Address, seconds int) {
	w.Helper()
	w.inTenant(`
		UPDATE sessions
		   SET last_append_at = now() - make_interval(secs => $2)
		 WHERE id = $1`, at.ID, seconds)
	w.rescheduleNow()
}

// inTenant runs a statement that sees the rows of the tenant.
func (w *world) inTenant(sql string, args ...any) {
	w.Helper()
	err := postgres.InTenant(w.Context(), w.store.Pool(), w.tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		_, err := tx.Exec(w.Context(), sql, args...)
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
}

// why returns a run's decision.
func (w *world) why(run session.Run) (d compactor.Decision) {
	w.Helper()
	if err := json.Unmarshal(run.Why, &d); err != nil {
		w.Fatal(err)
	}
	return d
}

// live returns in how many seconds each live job of the database starts.
func (w *world) live() (in []int) {
	w.Helper()
	rows, err := w.store.Pool().Query(w.Context(), `
		SELECT round(extract(epoch FROM scheduled_at - now()))::int
		  FROM river_job
		 WHERE kind = 'compact' AND finalized_at IS NULL`)
	if err != nil {
		w.Fatal(err)
	}
	if in, err = pgx.CollectRows(rows, pgx.RowTo[int]); err != nil {
		w.Fatal(err)
	}
	return in
}

func TestAnIdleSessionIsCompactedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at, bodies := w.asleep("s", sleepy)
	w.work(jobs.Config{})
	w.lastUsed(at, 301)
	w.settle()
	run := w.newest(at)
	why := w.why(run)
	if run.Cause != "idle" || run.State != session.RunDone || why.Cache == nil || why.Cache.Warm || why.Cache.AgeSeconds < 301 {
		t.Fatalf("run %s %s because %q: %s", run.Cause, run.State, run.Reason, run.Why)
	}
	if e := why.Economy; e == nil || e.Gain <= e.Cost || e.ReadBack != e.Cost || e.Saved < 1000 {
		t.Errorf("economy %+v", why.Economy)
	}
	for _, part := range []string{"the trigger is 8000; nobody has used the session for 30", "its cache is cold after 300 s", "tokens away, which gains "} {
		if !strings.Contains(run.Reason, part) {
			t.Errorf("the reason %q does not say %q", run.Reason, part)
		}
	}
	found := w.check(at, bodies)
	if found.Checkpoint != 1 || found.ContextTokens > 2600 {
		t.Errorf("checkpoint %d, %d tokens", found.Checkpoint, found.ContextTokens)
	}
	next := turn(90, 500)
	w.append(at, next...)
	if n, err := w.sweep(); err != nil || n != 0 || len(w.live()) != 0 {
		t.Errorf("the sweep inserted %d, jobs start in %v s, %v", n, w.live(), err)
	}
	more := turn(91, 2000)
	w.append(at, more...)
	if in := w.live(); len(in) != 1 || in[0] < 290 || in[0] > 300 {
		t.Errorf("grown past the threshold again, jobs start in %v s", in)
	}
	w.check(at, append(append(bodies, next...), more...))
}

func TestASessionThatIsUsedAgainIsNotCompacted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at, bodies := w.asleep("s", sleepy)
	client, _ := w.work(jobs.Config{})
	snoozed, cancel := client.Subscribe(river.EventKindJobSnoozed)
	defer cancel()
	w.lastUsed(at, 100)
	jobstest.Await(w, snoozed)
	run := w.newest(at)
	if run.State != session.RunQueued || run.Cause != "idle" || !strings.Contains(run.Reason, "s ago and is idle after 300 s") {
		t.Errorf("run %s %s because %q", run.Cause, run.State, run.Reason)
	}
	if in := w.live(); len(in) != 1 || in[0] < 150 || in[0] > 200 {
		t.Errorf("jobs start in %v s, want 200", in)
	}
	if found := w.check(at, bodies); found.Checkpoint != 0 {
		t.Errorf("checkpoint %d", found.Checkpoint)
	}
	w.lastUsed(at, 301)
	w.settle()
	if run := w.newest(at); run.State != session.RunDone || run.Cause != "idle" {
		t.Errorf("idle at last: run %s %s because %q", run.Cause, run.State, run.Reason)
	}
}

func TestAnIdleSessionIsNotCompactedIfThatDoesNotPay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at, bodies := w.asleep("s", func(p *policy.Policy) {
		sleepy(p)
		p.Protect.LastUnits = 4
		p.Economy = policy.Economy{CacheRead: 1, CacheWrite: 1, TTLSeconds: 300, Horizon: 1, ReadBackTokens: 9000}
	})
	w.work(jobs.Config{})
	w.lastUsed(at, 301)
	w.settle()
	run := w.newest(at)
	if run.State != session.RunPostponed || !strings.Contains(run.Reason, "it does not pay") || w.why(run).Economy == nil {
		t.Fatalf("run %s %s because %q", run.Cause, run.State, run.Reason)
	}
	if found := w.check(at, bodies); found.Checkpoint != 0 {
		t.Errorf("checkpoint %d", found.Checkpoint)
	}
	w.append(at, turn(90, 300)...)
	if in := w.live(); len(in) != 0 {
		t.Errorf("grown by little, jobs start in %v s", in)
	}
	w.append(at, turn(91, 300)...)
	if in := w.live(); len(in) != 1 || in[0] < 290 {
		t.Errorf("grown by more than a twentieth of the window, jobs start in %v s", in)
	}
}

func TestAWorkerKilledInAnIdleSessionLosesNothing(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"snapshot", "planned", "persisted", "rendered", "committed", "snoozed"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			at, bodies := w.asleep("s", sleepy)
			age := 301
			if step == "snoozed" {
				age = 10
			}
			w.lastUsed(at, age)
			w.kill(step)
			after := w.check(at, bodies)
			if committed := step == "committed"; committed != (after.Checkpoint == 1) {
				t.Fatalf("killed after %s: checkpoint %d", step, after.Checkpoint)
			}
			w.lastUsed(at, 302)
			w.work(jobs.Config{Beat: beat})
			w.settle()
			runs, err := w.store.Runs(t.Context(), at, session.Page{Limit: 10})
			if err != nil || len(runs) != 1 || runs[0].State != session.RunDone || runs[0].Cause != "idle" {
				t.Errorf("runs %+v, %v", runs, err)
			}
			if found := w.check(at, bodies); found.Checkpoint != 1 {
				t.Errorf("checkpoint %d", found.Checkpoint)
			}
		})
	}
}

// TestAtTheTriggerAWarmSessionWaitsIfThatIsCheaper has a cache that is dear to break.
func TestAtTheTriggerAWarmSessionWaitsIfThatIsCheaper(t *testing.T) {
	t.Parallel()
	careful := func(p *policy.Policy) {
		sleepy(p)
		p.Economy.Enabled, p.Economy.CacheRead, p.Economy.CacheWrite = true, 0.01, 10
	}
	wait := func(t *testing.T) (w *world, at session.Address, bodies [][]byte) {
		w = newWorld(t)
		at, bodies = w.asleep("s", careful)
		client, _ := w.work(jobs.Config{})
		snoozed, cancel := client.Subscribe(river.EventKindJobSnoozed)
		defer cancel()
		big := turn(80, 2600)
		bodies = append(bodies, big...)
		if done := w.append(at, big...); done.Compaction != session.CompactionLive {
			t.Fatalf("at the trigger: compaction %s", done.Compaction)
		}
		jobstest.Await(w, snoozed)
		run := w.newest(at)
		if run.Cause != "threshold" || run.State != session.RunQueued || !strings.HasSuffix(run.Reason, "waiting is cheaper") {
			t.Fatalf("run %s %s because %q", run.Cause, run.State, run.Reason)
		}
		if e := w.why(run).Economy; e == nil || e.Horizon >= 20 {
			t.Errorf("economy %+v: the hard limit is near", e)
		}
		return w, at, bodies
	}
	t.Run("until it is idle", func(t *testing.T) {
		t.Parallel()
		w, at, bodies := wait(t)
		w.lastUsed(at, 301)
		w.settle()
		if run := w.newest(at); run.State != session.RunDone || w.why(run).Cache.Warm {
			t.Errorf("run %s %s because %q", run.Cause, run.State, run.Reason)
		}
		w.check(at, bodies)
	})
	t.Run("until the hard limit", func(t *testing.T) {
		t.Parallel()
		w, at, bodies := wait(t)
		last := turn(81, 1500)
		w.append(at, last...)
		w.settle()
		if run := w.newest(at); run.State != session.RunDone || run.Cause != "hard" {
			t.Errorf("run %s %s because %q", run.Cause, run.State, run.Reason)
		}
		w.check(at, append(bodies, last...))
	})
}

// reads returns calls in one message and their results of this many tokens each.
func reads(n, tokens int) (bodies [][]byte) {
	calls := make([]string, n)
	for i := range n {
		calls[i] = fmt.Sprintf(`{"id":"p%d","type":"function","function":{"name":"Read","arguments":"{\"path\":\"p%d\"}"}}`, i, i)
		result := turn(i, tokens)[1]
		bodies = append(bodies, []byte(strings.Replace(string(result), fmt.Sprintf(`"c%d"`, i), fmt.Sprintf(`"p%d"`, i), 1)))
	}
	call := fmt.Appendf(nil, `{"role":"assistant","content":null,"tool_calls":[%s]}`, strings.Join(calls, ","))
	return slices.Insert(bodies, 0, call)
}

// firm protects the newest four units, and all of them.
func firm(p *policy.Policy) {
	p.Idle.Enabled = false
	p.Cap.MaxRatio, p.Cap.UnitRatio = 0, 0
	p.Protect.LastUnits, p.Protect.Yields = 4, false
}

// TestAViewShrinksOnceWhatIsLargeIsNotProtectedAnyMore has reads in a unit that the policy protects until four other
// units have come. They fill more than the trigger and less than the hard limit of the window, and what comes then is
// less than the growth after which a session is due again.
func TestAViewShrinksOnceWhatIsLargeIsNotProtectedAnyMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.sessionOf("s", 32_000)
	w.set(at, func(p *policy.Policy) {
		p.Trigger, p.Target, p.Hard = 0.5, 0.3, 1
		firm(p)
	})
	w.work(jobs.Config{})
	bodies := append([][]byte{[]byte(`{"role":"user","content":"read all files"}`)}, reads(10, 2200)...)
	w.append(at, bodies...)
	w.settle()
	stuck, err := w.store.Session(t.Context(), at)
	if run := w.newest(at); err != nil || run.State != session.RunUnchanged || stuck.ContextTokens < 20_000 {
		t.Fatalf("run %s because %q, %d tokens, %v", run.State, run.Reason, stuck.ContextTokens, string(run.Stages))
	}
	for n := range 14 {
		small := turn(50+n, 20)
		bodies = append(bodies, small...)
		w.append(at, small...)
		w.settle()
	}
	found := w.check(at, bodies)
	if found.ContextTokens > 16_000 {
		t.Errorf("14 units later the view has %d tokens, as it had %d: %s", found.ContextTokens, stuck.ContextTokens, w.newest(at).Reason)
	}
	if runs, err := w.store.Runs(t.Context(), at, session.Page{Limit: 20}); err != nil || len(runs) > 6 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
}

// TestAViewAboveItsWindowComesBackIntoIt repeats what a replay has found: 53,000 tokens of 32,000 for all 14 turns,
// under a policy whose protection does not yield.
func TestAViewAboveItsWindowComesBackIntoIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.sessionOf("s", 32_000)
	w.set(at, firm)
	w.work(jobs.Config{})
	bodies := append([][]byte{[]byte(`{"role":"user","content":"read all files"}`)}, reads(10, 4000)...)
	w.append(at, bodies...)
	w.settle()
	for n := range 14 {
		small := turn(50+n, 20)
		bodies = append(bodies, small...)
		w.append(at, small...)
		w.settle()
	}
	if found := w.check(at, bodies); found.ContextTokens > 32_000 {
		t.Errorf("14 units later the view has %d tokens: %s", found.ContextTokens, w.newest(at).Reason)
	}
}
