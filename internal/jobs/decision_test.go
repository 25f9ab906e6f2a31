package jobs_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/jobs/jobstest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
)

// dear makes a compaction that breaks a warm cache cost more than it ever gains.
func dear(p *policy.Policy) {
	p.Economy = policy.Economy{Enabled: true, CacheRead: 0, CacheWrite: 10, TTLSeconds: 3600, Horizon: 1}
}

// due appends until the session is over its trigger of 8,000 tokens and below its hard limit of 9,500.
func (w *world) due(at session.Address) [][]byte {
	w.Helper()
	bodies := [][]byte{[]byte(`{"role":"user","content":"read all files"}`)}
	done := w.append(at, bodies...)
	for n := 0; done.ContextTokens < 8000; n++ {
		next := turn(n, 500)
		done = w.append(at, next...)
		bodies = append(bodies, next...)
	}
	return bodies
}

func TestACompactionThatDoesNotPayIsPostponedUntilTheSessionGrew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	w.set(at, dear)
	w.work(jobs.Config{})
	bodies := w.due(at)
	w.settle()
	run := w.newest(at)
	var why compactor.Decision
	if err := json.Unmarshal(run.Why, &why); err != nil {
		t.Fatal(err)
	}
	if run.State != session.RunPostponed || why.Verdict != compactor.Postponed || why.Economy == nil || why.Economy.Cost <= why.Economy.Gain || !why.Cache.Warm {
		t.Fatalf("run %s because %q: %s", run.State, run.Reason, run.Why)
	}
	if !strings.Contains(run.Reason, "waiting is cheaper") || *run.TokensBefore != *run.TokensAfter {
		t.Errorf("reason %q, %d → %d", run.Reason, *run.TokensBefore, *run.TokensAfter)
	}
	if found := w.check(at, bodies); found.Checkpoint != 0 {
		t.Errorf("checkpoint %d was made", found.Checkpoint)
	}
	few := turn(90, 100)
	if done := w.append(at, few...); done.Compaction != session.CompactionNone {
		t.Errorf("100 tokens later compaction is %s", done.Compaction)
	}
	more := turn(91, 400)
	if done := w.append(at, more...); done.Compaction != session.CompactionQueued {
		t.Errorf("500 tokens later compaction is %s", done.Compaction)
	}
	w.settle()
	hard := turn(92, 700)
	w.append(at, hard...)
	w.settle()
	if found := w.check(at, append(append(append(bodies, few...), more...), hard...)); found.Checkpoint != 1 {
		t.Errorf("at the hard limit checkpoint is %d: %s", found.Checkpoint, w.newest(at).Reason)
	}
}

func TestWhatAPersonAsksForIsNeverPostponed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	w.set(at, dear)
	w.work(jobs.Config{})
	bodies := w.due(at)
	w.settle()
	if run := w.compactNow(at); run.State != session.RunDone || !strings.HasPrefix(run.Reason, "asked for") {
		t.Errorf("run %s: %q", run.State, run.Reason)
	}
	w.check(at, bodies)
}

func TestWhatAPersonAsksForWhileItIsPlannedIsNotPostponedEither(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	w.set(at, dear)
	p := jobstest.NewPause(w, "planned")
	w.work(jobs.Config{Trace: p.Trace})
	bodies := w.due(at)
	jobstest.Await(w, p.Reached)
	asked, _, err := w.store.Compact(t.Context(), at, nil)
	close(p.GoOn)
	if err != nil {
		t.Fatal(err)
	}
	w.settle()
	if run := w.newest(at); run.ID != asked.ID || run.State != session.RunDone || !strings.HasPrefix(run.Reason, "asked for") {
		t.Errorf("run %s: %q", run.State, run.Reason)
	}
	if found := w.check(at, bodies); found.Checkpoint != 1 {
		t.Errorf("checkpoint is %d", found.Checkpoint)
	}
}

func TestTheHardLimitStartsAJobThatIsJustBeingSnoozed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	policy := jobstest.Settled()
	policy.Cache.TTLSeconds = 3600
	own := session.Policy{Trigger: policy.Trigger, Hard: policy.Hard, CacheTTL: time.Hour, Document: policy.Document()}
	if _, _, err := w.store.Update(t.Context(), at, session.Change{Policy: &own}, nil); err != nil {
		t.Fatal(err)
	}
	bodies := w.due(at)
	p := jobstest.NewPause(w, "snoozed")
	w.work(jobs.Config{Trace: p.Trace})
	w.rescheduleNow()
	jobstest.Await(w, p.Reached) // River takes the job for one that is running still
	hard := turn(92, 2000)
	done := w.append(at, hard...)
	w.settle()
	close(p.GoOn)
	if found := w.check(at, append(bodies, hard...)); found.Checkpoint != 1 {
		t.Errorf("compaction is %s, checkpoint %d: %s", done.Compaction, found.Checkpoint, w.newest(at).Reason)
	}
}

func TestACompactionOfAColdPrefixPays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	w.due(at)
	policy := jobstest.Settled()
	dear(&policy)
	policy.Economy.TTLSeconds = 60
	for age, want := range map[float64]compactor.Verdict{59: compactor.Postponed, 61: compactor.Now} {
		snap := w.snapshot(at)
		snap.LastAppendAge = age
		p, err := compactor.Propose(t.Context(), w.store, snap, compactor.Request{Cause: "threshold", Policy: &policy})
		if err != nil || p.Decision.Verdict != want {
			t.Errorf("after %v s it is %s, %v", age, p.Decision.Verdict, err)
		}
	}
}

func TestARunThatWaitsForAColdCacheSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	policy := jobstest.Settled()
	policy.Cache.TTLSeconds, policy.Hard = 3600, 1
	change := session.Policy{Trigger: policy.Trigger, Hard: 1, CacheTTL: time.Hour, Document: policy.Document()}
	if _, _, err := w.store.Update(t.Context(), at, session.Change{Policy: &change}, nil); err != nil {
		t.Fatal(err)
	}
	w.due(at)
	client, _ := w.work(jobs.Config{})
	snoozed, cancel := client.Subscribe(river.EventKindJobSnoozed)
	defer cancel()
	w.rescheduleNow()
	jobstest.Await(w, snoozed)
	run := w.newest(at)
	var why compactor.Decision
	if err := json.Unmarshal(run.Why, &why); err != nil {
		t.Fatal(err)
	}
	if run.State != session.RunQueued || why.Verdict != compactor.Postponed || !why.Cache.Warm || why.Cache.TTLSeconds != 3600 || !strings.Contains(run.Reason, "cold") {
		t.Errorf("run %s because %q: %s", run.State, run.Reason, run.Why)
	}
}

func TestTheTriggersGoByTheCallersOwnCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	w.due(at)
	snap := w.snapshot(at)
	for calibration, due := range map[float64]bool{0.5: false, 1: true, 2: true} {
		snap.Calibration = calibration
		p, err := compactor.Propose(t.Context(), w.store, snap, compactor.Request{Cause: compactor.CausePreview})
		if err != nil || p.Decision.Due() != due {
			t.Errorf("calibrated by %v: due %t, %v: %s", calibration, p.Decision.Due(), err, p.Decision.Reason())
		}
	}
}
