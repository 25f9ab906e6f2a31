package recompact_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/jobs/jobstest"
	"github.com/varve-dev/varve/internal/recompact"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
)

func (w *world) control(id uuid.UUID, what recompact.Control) recompact.Stored {
	w.Helper()
	found, _, err := w.store.Control(w.Context(), w.tenant, id, what, nil)
	if err != nil {
		w.Fatal(err)
	}
	return found
}

func in(states ...recompact.RecompactionState) func(recompact.Stored) bool {
	return func(r recompact.Stored) bool { return slices.Contains(states, r.State) }
}

// serves requires that a session serves these messages.
func (w *world) serves(at session.Address, want [][]byte) {
	w.Helper()
	if got := w.view(at); !slices.EqualFunc(got, want, bytes.Equal) {
		w.Errorf("session %s serves %d messages that are not the %d of before", at.ID, len(got), len(want))
	}
}

func TestARolledBackRecompactionServesWhatWasServedBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, stop := w.work(jobs.Config{})
	appended := w.many(2, 20)
	fresh, grown := w.at("s0000"), w.at("s0001")
	compacted, wentOn, outgrown := w.lazy("compacted"), w.lazy("went on"), w.lazy("outgrown")
	for _, at := range []session.Address{compacted, wentOn, outgrown} {
		w.fill(at)
	}
	w.settle()
	w.grow(outgrown, 7000)
	before := map[session.Address][][]byte{}
	for _, at := range []session.Address{fresh, grown, compacted, wentOn, outgrown} {
		before[at] = w.view(at)
	}
	beforeTokens := w.tokens(outgrown)
	id := w.recompact(recompact.Stored{Policy: json.RawMessage(lean)})
	if found := w.until(id, ended); found.Changed != 5 {
		t.Fatalf("%+v", found)
	}
	later := turn(100, 300)
	w.append(grown, later...)
	for n := range 24 {
		w.append(wentOn, turn(200+n, 500)...)
	}
	w.grow(outgrown, 9600-(beforeTokens-w.tokens(outgrown))) // which has room for that now, and had not before
	w.settle()
	went := w.view(wentOn)
	outgrew := w.view(outgrown)
	stop() // what is rolled back waits for no compaction
	w.control(id, recompact.RollBack)
	w.work(jobs.Config{})
	found := w.until(id, in(recompact.RolledBack))
	w.settle()
	if found.RolledBack != 3 || found.Excepted != 2 || found.RolledBackAt == nil {
		t.Errorf("%+v", found)
	}
	w.serves(fresh, before[fresh])
	w.serves(compacted, before[compacted])
	w.serves(grown, append(slices.Clone(before[grown]), later...))
	w.serves(wentOn, went)
	w.serves(outgrown, outgrew)
	w.check(fresh, appended)
	outcomes := w.outcomes(id)
	for id, want := range map[string]string{"s0000": "", "s0001": "", "compacted": "", "went on": "was made since", "outgrown": "over the hard limit"} {
		o := outcomes[id]
		if want == "" && (o.State != "rolled_back" || o.Reason != nil) || want != "" && (o.State != "excepted" || o.Reason == nil || !strings.Contains(*o.Reason, want)) {
			t.Errorf("session %q: %+v, reason %s", id, o, *cmp.Or(o.Reason, new("none")))
		}
	}
}

// lazy makes a session that is compacted at its trigger and not before.
func (w *world) lazy(id string) session.Address {
	w.Helper()
	p, at, window := jobstest.Settled(), w.at(id), 10_000
	p.Trim.Eager, p.Budget.Eager = false, false
	own := &session.Policy{Trigger: p.Trigger, Hard: p.Hard, Document: p.Document()}
	if _, _, err := w.store.Store.Create(w.Context(), at, session.Change{WindowTokens: &window, Policy: own}, nil); err != nil {
		w.Fatal(err)
	}
	return at
}

// grow appends turns until the view of a session has this many tokens.
func (w *world) grow(at session.Address, tokens int64) {
	w.Helper()
	for n := 500; w.tokens(at) < tokens; n++ {
		w.append(at, turn(n, 200)...)
	}
}

func (w *world) tokens(at session.Address) int64 {
	w.Helper()
	found, err := w.store.Session(w.Context(), at)
	if err != nil {
		w.Fatal(err)
	}
	return found.ContextTokens
}

func TestASessionThatWasRolledBackIsDueAgainWhenItHasGrown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, stop := w.work(jobs.Config{})
	at := w.lazy("s")
	w.append(at, []byte(`{"role":"user","content":"read all files"}`))
	w.grow(at, 7000) // below the trigger of 8,000
	id := w.recompact(recompact.Stored{Policy: json.RawMessage(`{"trigger":0.3,"target":0.1,"protect":{"last_units":0}}`)})
	if found := w.until(id, ended); found.Changed != 1 {
		t.Fatalf("%+v", found)
	}
	w.grow(at, w.tokens(at)+1200)
	w.settle()
	w.control(id, recompact.RollBack)
	found := w.until(id, in(recompact.RolledBack))
	if found.RolledBack != 1 {
		t.Fatalf("%+v: %v", found, *w.outcomes(id)["s"].Reason)
	}
	if tokens := w.tokens(at); tokens < 8000 {
		t.Fatalf("it is below its trigger: %d tokens", tokens)
	}
	stop()
	if done := w.append(at, turn(30, 100)...); done.Compaction != session.CompactionNone {
		t.Errorf("it is compacted at the next append: %v", done.Compaction)
	}
	if n, err := w.store.Sweep(t.Context()); err != nil || n != 0 {
		t.Errorf("the sweep asks for %d compactions, %v", n, err)
	}
	if done := w.append(at, append(turn(31, 500), turn(32, 500)...)...); done.Compaction == session.CompactionNone { // more than a twentieth of the window
		t.Error("it is not compacted when it has grown")
	}
}

func TestAPausedRecompactionWaitsAndGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.many(6, 20)
	p := jobstest.NewPause(w, "planned")
	w.work(jobs.Config{Trace: p.Trace})
	id := w.recompact(recompact.Stored{Policy: json.RawMessage(lean), Pace: recompact.Pace{MaxRunning: 1}})
	jobstest.Await(w, p.Reached)
	for range 2 {
		if found := w.control(id, recompact.Pause); found.State != recompact.Paused || found.Running != 1 {
			t.Errorf("%+v", found)
		}
	}
	close(p.GoOn)
	w.idle()
	found := w.until(id, in(recompact.Paused))
	if found.Changed != 1 || found.Running != 0 {
		t.Errorf("%+v", found)
	}
	if _, err := w.store.Requeue(t.Context(), w.tenant); err != nil {
		t.Error(err)
	}
	w.idle()
	if found = w.until(id, in(recompact.Paused)); found.Changed != 1 {
		t.Errorf("the sweep does not know of the pause: %+v", found)
	}
	w.control(id, recompact.Resume)
	if found = w.until(id, ended); found.State != recompact.Done || found.Changed != 6 {
		t.Errorf("%+v", found)
	}
}

func TestARecompactionBeginsAtItsTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.many(2, 20)
	w.work(jobs.Config{})
	later := time.Now().Add(time.Hour)
	opens := time.Now().UTC().Add(2 * time.Hour)
	hours := &recompact.Hours{From: opens.Format("15:04"), To: opens.Add(time.Hour).Format("15:04"), TimeZone: "UTC"}
	for _, pace := range []recompact.Pace{{MaxRunning: 2, StartAt: &later}, {MaxRunning: 2, Hours: hours}} {
		id := w.recompact(recompact.Stored{Policy: json.RawMessage(lean), Pace: pace})
		state := recompact.Running
		if pace.StartAt != nil {
			state = recompact.Scheduled
		}
		found := w.until(id, func(r recompact.Stored) bool { return r.State == state && r.Total == 2 })
		if found.NextStartAt == nil || found.NextStartAt.Before(time.Now().Add(50*time.Minute)) || found.Running != 0 || found.Total != 2 {
			t.Errorf("%+v", found)
		}
		if found = w.control(id, recompact.Cancel); found.State != recompact.Cancelled || found.Changed != 0 {
			t.Errorf("%+v", found)
		}
	}
	soon := time.Now().Add(time.Second)
	id := w.recompact(recompact.Stored{Policy: json.RawMessage(lean), Pace: recompact.Pace{MaxRunning: 2, StartAt: &soon}})
	found := w.until(id, ended)
	if found.Changed != 2 {
		t.Errorf("%+v", found)
	}
	for id, s := range w.outcomes(id) {
		if s.FinishedAt.Before(soon) {
			t.Errorf("session %s was compacted before its time: %s", id, s.FinishedAt)
		}
	}
}

func TestNoMoreSessionsBeginThanARateAllows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.many(8, 20)
	w.work(jobs.Config{Compactions: 16})
	id := w.recompact(recompact.Stored{Policy: json.RawMessage(lean), Pace: recompact.Pace{MaxRunning: 8, PerMinute: new(60)}})
	found := w.until(id, ended)
	if found.Changed != 8 {
		t.Fatalf("%+v", found)
	}
	var ends []time.Time
	for _, s := range w.outcomes(id) {
		ends = append(ends, *s.FinishedAt)
	}
	slices.SortFunc(ends, time.Time.Compare)
	for n, end := range ends {
		if earliest := found.StartedAt.Add(time.Duration(n) * time.Second); end.Before(earliest) {
			t.Errorf("the %s session was compacted %s too early", fmt.Sprint(n+1), earliest.Sub(end))
		}
	}
}

func TestARollbackOfALiveRecompactionCancelsItFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	appended := w.many(6, 20)
	p := jobstest.NewPause(w, "planned")
	w.work(jobs.Config{Trace: p.Trace})
	id := w.recompact(recompact.Stored{Policy: json.RawMessage(lean), Pace: recompact.Pace{MaxRunning: 1}})
	jobstest.Await(w, p.Reached)
	if found := w.control(id, recompact.RollBack); found.State != recompact.RollingBack || found.Running != 1 {
		t.Errorf("%+v", found)
	}
	close(p.GoOn)
	found := w.until(id, in(recompact.RolledBack))
	if found.Changed != 1 || found.RolledBack != 1 || found.Excepted != 0 {
		t.Errorf("%+v", found)
	}
	for n := range 6 {
		w.serves(w.at(fmt.Sprintf("s%04d", n)), appended)
	}
	if again := w.control(id, recompact.RollBack); again.State != recompact.RolledBack || again.RolledBack != 1 {
		t.Errorf("a second time: %+v", again)
	}
}

func TestTheSweepHealsARollbackWhoseJobWasLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	appended := w.many(3, 20)
	_, stop := w.work(jobs.Config{})
	id := w.recompact(recompact.Stored{Policy: json.RawMessage(lean)})
	w.until(id, ended)
	stop()
	w.control(id, recompact.RollBack)
	w.dropJobs()
	if _, err := w.store.Requeue(t.Context(), w.tenant); err != nil {
		t.Fatal(err)
	}
	w.work(jobs.Config{})
	if found := w.until(id, in(recompact.RolledBack)); found.RolledBack != 3 {
		t.Errorf("%+v", found)
	}
	for n := range 3 {
		w.serves(w.at(fmt.Sprintf("s%04d", n)), appended)
	}
}

// TestARecompactionAndItsRollbackCoverColdSessions freezes sessions before each.
func TestARecompactionAndItsRollbackCoverColdSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.session("a"), w.session("b")
	w.fill(a)
	w.fill(b)
	w.work(jobs.Config{})
	w.settle()
	before := w.view(a)
	w.frozen(a)
	w.frozen(b)
	id := w.recompact(recompact.Stored{Policy: json.RawMessage(lean)})
	done := w.until(id, ended)
	if done.Changed+done.Unchanged != 2 || done.Changed == 0 || done.Failed != 0 {
		t.Fatalf("%+v", done)
	}
	w.frozen(a)
	w.frozen(b)
	w.control(id, recompact.RollBack)
	back := w.until(id, in(recompact.RolledBack))
	if back.RolledBack != done.Changed {
		t.Errorf("%d sessions of %d are rolled back", back.RolledBack, done.Changed)
	}
	w.drained("sessions WHERE id = 'a' AND frozen_at IS NOT NULL")
	w.serves(a, before)
}

// frozen freezes a session and waits until that is done.
func (w *world) frozen(at session.Address) {
	w.Helper()
	if err := w.store.CountUsage(w.Context(), at.Tenant, []session.Reading{{Session: at.ID}}); err != nil {
		w.Fatal(err)
	}
	for end := time.Now().Add(patience); w.count("sessions WHERE frozen_at IS NOT NULL AND id = '"+at.ID+"'") == 0; {
		if _, err := tier.FreezeSleeping(w.Context(), w.store.Store, at.Tenant, 0, 100); err != nil || time.Now().After(end) {
			w.Fatalf("%s does not sleep: %v", at.ID, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.drained("session_archives a JOIN sessions s ON s.key = a.session_key WHERE a.state <> 'archived' AND s.id = '" + at.ID + "'")
}
