package recompact_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/jobs/jobstest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/recompact"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// lean compacts a session of windows of 10,000 tokens to 1,000.
const lean = `{"trigger":0.3,"target":0.1}`

// many makes sessions below their trigger, of a user's message and this many turns of 100 tokens each.
func (w *world) many(sessions, turns int) (appended [][]byte) {
	w.Helper()
	appended = [][]byte{[]byte(`{"role":"user","content":"read all files"}`)}
	for n := range turns {
		appended = append(appended, turn(n, 200)...)
	}
	for n := range sessions {
		w.append(w.session(fmt.Sprintf("s%04d", n)), appended...)
	}
	return appended
}

func (w *world) recompact(r recompact.Stored) uuid.UUID {
	w.Helper()
	if r.MaxRunning == 0 {
		r.MaxRunning = 2
	}
	made, _, err := w.store.Create(w.Context(), w.tenant, r, nil)
	if err != nil {
		w.Fatal(err)
	}
	return made.ID
}

// until waits for a recompaction to come to a state that reached accepts.
func (w *world) until(id uuid.UUID, reached func(recompact.Stored) bool) recompact.Stored {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		found, err := w.store.Read(ctx, w.tenant, id)
		if err != nil {
			w.Fatalf("%v; last seen: %+v", err, found)
		}
		if reached(found) {
			return found
		}
	}
}

func ended(r recompact.Stored) bool { return r.State.Ended() }

// outcomes returns the sessions of a recompaction by their ids.
func (w *world) outcomes(id uuid.UUID) map[string]recompact.RecompactionSession {
	w.Helper()
	found, err := w.store.Sessions(w.Context(), w.tenant, id, session.Page{Limit: 10_000})
	if err != nil {
		w.Fatal(err)
	}
	byID := map[string]recompact.RecompactionSession{}
	for _, s := range found {
		byID[*s.Session] = s
	}
	return byID
}

func TestARecompactionCompactsEverySessionThatItsFilterFinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	appended := w.many(5, 20)
	small := w.session("small")
	w.append(small, appended[0])
	minTokens := int64(1000)
	id := w.recompact(recompact.Stored{Filter: session.SessionFilter{MinTokens: &minTokens}, Policy: json.RawMessage(lean)})
	w.work(jobs.Config{})
	found := w.until(id, ended)
	if found.State != recompact.Done || found.Total != 5 || found.Changed != 5 || found.Skipped != 0 || found.StartedAt == nil {
		t.Errorf("%+v", found)
	}
	if found.TokensAfter >= found.TokensBefore {
		t.Errorf("%d tokens became %d", found.TokensBefore, found.TokensAfter)
	}
	var tokens int64
	for n := range 5 {
		s := w.check(session.Address{Tenant: w.tenant, ID: fmt.Sprintf("s%04d", n)}, appended)
		tokens += s.ContextTokens
		if s.Checkpoint != 1 {
			t.Errorf("session %s has checkpoint %d", s.ID, s.Checkpoint)
		}
	}
	if tokens != found.TokensAfter {
		t.Errorf("the views have %d tokens, the recompaction says %d", tokens, found.TokensAfter)
	}
	if s, err := w.store.Session(t.Context(), small); err != nil || s.Checkpoint != 0 {
		t.Errorf("the filter does not find %+v, %v", s, err)
	}
	for id, s := range w.outcomes(id) {
		runs, err := w.store.Runs(t.Context(), session.Address{Tenant: w.tenant, ID: id}, session.Page{Limit: 10})
		if err != nil || len(runs) != 1 || runs[0].ID != *s.Run || runs[0].Cause != "recompaction" || runs[0].State != session.RunDone || s.State != "changed" {
			t.Errorf("%+v has runs %+v, %v", s, runs, err)
		}
	}
}

func TestARecompactionWithoutAPolicyUsesTheSessionsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.many(2, 14)
	policy, err := policy.Parse([]byte(`{"trigger":0.9,"target":0.1}`))
	if err != nil {
		t.Fatal(err)
	}
	own := session.Policy{Trigger: policy.Trigger, Hard: policy.Hard, Document: policy.Document()}
	at := session.Address{Tenant: w.tenant, ID: "s0001"}
	if _, _, err := w.store.Update(t.Context(), at, session.Change{Policy: &own}, nil); err != nil {
		t.Fatal(err)
	}
	id := w.recompact(recompact.Stored{})
	w.work(jobs.Config{})
	found := w.until(id, ended)
	if outcomes := w.outcomes(id); found.Changed != 1 || found.Unchanged != 1 || outcomes["s0000"].State != "unchanged" || outcomes["s0001"].State != "changed" {
		t.Errorf("%+v: %+v", found, outcomes)
	}
}

func TestNoMoreSessionsRunAtOnceThanARecompactionAllows(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 3} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.many(12, 20)
			var running, peak atomic.Int64
			w.work(jobs.Config{Compactions: 16, Trace: func(step string) {
				switch step {
				case "snapshot":
					now := running.Add(1)
					for high := peak.Load(); now > high && !peak.CompareAndSwap(high, now); high = peak.Load() {
					}
				case "rendered": // before the commit that lets the next one begin
					running.Add(-1)
				}
			}})
			id := w.recompact(recompact.Stored{Policy: json.RawMessage(lean), Pace: recompact.Pace{MaxRunning: limit}})
			found := w.until(id, func(r recompact.Stored) bool {
				if r.Running > int64(limit) {
					t.Errorf("%d sessions are running", r.Running)
				}
				return ended(r)
			})
			if found.Changed != 12 || peak.Load() > int64(limit) || peak.Load() == 0 {
				t.Errorf("up to %d at once: %+v", peak.Load(), found)
			}
		})
	}
}

func TestASessionThatCannotBeCompactedDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.many(6, 20)
	policy := session.Policy{Trigger: 0.8, Hard: 0.95, Document: []byte(`{}`), Patch: []byte(`{"hard":"poison"}`)}
	if _, _, err := w.store.Update(t.Context(), session.Address{Tenant: w.tenant, ID: "s0000"}, session.Change{Policy: &policy}, nil); err != nil {
		t.Fatal(err)
	}
	w.asOwner(`UPDATE messages SET body = '{"role":' WHERE session_key = (SELECT key FROM sessions WHERE id = 's0001')`)
	id := w.recompact(recompact.Stored{Policy: json.RawMessage(lean), Pace: recompact.Pace{MaxRunning: 1}})
	w.work(jobs.Config{})
	found := w.until(id, ended)
	if found.State != recompact.Done || found.Changed != 4 || found.Failed != 2 || len(found.Errors) != 2 {
		t.Fatalf("%+v", found)
	}
	if found.Errors[0].Session != "s0001" || !strings.Contains(found.Errors[1].Error, "policy of session s0000") {
		t.Errorf("%+v", found.Errors)
	}
	outcomes := w.outcomes(id)
	for id, failures := range map[string]int{"s0000": 1, "s0001": 3} { // a policy would be no better the next time
		runs, err := w.store.Runs(t.Context(), session.Address{Tenant: w.tenant, ID: id}, session.Page{Limit: 10})
		if err != nil || len(runs) != failures || outcomes[id].Failures != failures || outcomes[id].State != "failed" {
			t.Errorf("%+v: %+v, %v", outcomes[id], runs, err)
		}
		for _, r := range runs {
			if r.State != session.RunFailed || r.Error == nil {
				t.Errorf("run %+v", r)
			}
		}
	}
}

func TestACancelledRecompactionLetsWhatRunsComeToItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	appended := w.many(6, 20)
	p := jobstest.NewPause(w, "planned")
	w.work(jobs.Config{Trace: p.Trace})
	id := w.recompact(recompact.Stored{Policy: json.RawMessage(lean), Pace: recompact.Pace{MaxRunning: 1}})
	jobstest.Await(w, p.Reached)
	for range 2 {
		found, _, err := w.store.Control(t.Context(), w.tenant, id, recompact.Cancel, nil)
		if err != nil || found.State != recompact.Cancelling || found.Running != 1 {
			t.Errorf("%+v, %v", found, err)
		}
	}
	close(p.GoOn)
	found := w.until(id, ended)
	if found.State != recompact.Cancelled || found.Done() != 1 || found.Changed != 1 {
		t.Errorf("%+v", found)
	}
	states := map[string]int{}
	for id, s := range w.outcomes(id) {
		states[s.State]++
		checkpoint := w.check(session.Address{Tenant: w.tenant, ID: id}, appended).Checkpoint
		if (s.State == "changed") != (checkpoint == 1) {
			t.Errorf("session %s is %s, its checkpoint %d", id, s.State, checkpoint)
		}
	}
	if states["changed"] != 1 || states["cancelled"] != 5 {
		t.Errorf("%v", states)
	}
}

func TestARecompactionIsCancelledBeforeAWorkerHasSeenIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.many(2, 1)
	id := w.recompact(recompact.Stored{})
	found, _, err := w.store.Control(t.Context(), w.tenant, id, recompact.Cancel, nil)
	if err != nil || found.State != recompact.Cancelled || found.FinishedAt == nil {
		t.Errorf("%+v, %v", found, err)
	}
	w.work(jobs.Config{})
	w.idle()
	if found := w.until(id, ended); found.State != recompact.Cancelled || found.Total != 0 {
		t.Errorf("%+v", found)
	}
}

// idle waits until no job of a recompaction is live.
func (w *world) idle() {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		var live int
		err := w.store.Pool().QueryRow(ctx, `SELECT count(*) FROM river_job WHERE queue = 'recompaction' AND finalized_at IS NULL`).Scan(&live)
		if err != nil {
			w.Fatal(err)
		}
		if live == 0 {
			return
		}
	}
}

func TestASessionThatIsErasedOnTheWayIsSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.many(4, 20)
	p := jobstest.NewPause(w, "planned")
	w.work(jobs.Config{Trace: p.Trace})
	filter := session.SessionFilter{Sessions: []string{"s0000", "s0001", "s0002", "s0003"}}
	id := w.recompact(recompact.Stored{Filter: filter, Policy: json.RawMessage(lean), Pace: recompact.Pace{MaxRunning: 1}})
	jobstest.Await(w, p.Reached)
	for _, erased := range []string{"s0000", "s0002"} { // the one that runs, and one that does not yet
		if _, err := w.store.Delete(t.Context(), session.Address{Tenant: w.tenant, ID: erased}, nil); err != nil {
			t.Fatal(err)
		}
	}
	close(p.GoOn)
	found := w.until(id, ended)
	if found.State != recompact.Done || found.Total != 4 || found.Changed != 2 || found.Skipped != 2 || len(w.outcomes(id)) != 2 {
		t.Errorf("%+v", found)
	}
	if got := found.Filter.Sessions; !slices.Equal(got, []string{"s0001", "s0003"}) {
		t.Errorf("the filter knows %q", got)
	}
}

func TestAnOrdinaryCompactionAtTheSameTimeIsNotLost(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"snapshot", "planned", "persisted", "rendered"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			appended := w.many(1, 20)
			at := session.Address{Tenant: w.tenant, ID: "s0000"}
			p := jobstest.NewPause(w, step)
			w.work(jobs.Config{Trace: p.Trace})
			id := w.recompact(recompact.Stored{Policy: json.RawMessage(lean)})
			jobstest.Await(w, p.Reached)
			w.append(at, filled()[1:]...) // over the trigger
			w.settle()
			ordinary := w.check(at, append(appended, filled()[1:]...))
			if ordinary.Checkpoint != 1 || ordinary.ContextTokens >= 8000 {
				t.Errorf("the compaction waits for the recompaction: checkpoint %d, %d tokens", ordinary.Checkpoint, ordinary.ContextTokens)
			}
			close(p.GoOn)
			found := w.until(id, ended)
			w.settle()
			after := w.check(at, append(appended, filled()[1:]...))
			if found.Changed != 1 || after.Checkpoint != 2 || after.ContextTokens > ordinary.ContextTokens {
				t.Errorf("%+v; checkpoint %d, %d tokens", found, after.Checkpoint, after.ContextTokens)
			}
			runs, err := w.store.Runs(t.Context(), at, session.Page{Limit: 10})
			if err != nil || len(runs) != 2 || slices.ContainsFunc(runs, func(r session.Run) bool { return r.State != session.RunDone }) {
				t.Errorf("%+v, %v", runs, err)
			}
		})
	}
}

// dropJobs takes the jobs of a recompaction away, as nobody should.
func (w *world) dropJobs() {
	w.Helper()
	if _, err := w.store.Pool().Exec(w.Context(), `DELETE FROM river_job WHERE queue = 'recompaction'`); err != nil {
		w.Fatal(err)
	}
}

func TestTheSweepHealsARecompactionWhoseJobsWereLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.many(3, 20)
	id := w.recompact(recompact.Stored{Policy: json.RawMessage(lean)})
	w.dropJobs()
	heal := func(want int) {
		t.Helper()
		if lost, err := w.store.Requeue(t.Context(), w.tenant); err != nil || lost != want {
			t.Errorf("%d jobs were lost, want %d; %v", lost, want, err)
		}
	}
	heal(0) // there is a job again that looks for the sessions
	var fill int64
	if err := w.store.Pool().QueryRow(t.Context(), `SELECT id FROM river_job WHERE kind = 'recompaction_fill'`).Scan(&fill); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Fill(t.Context(), w.tenant, id, fill); err != nil {
		t.Fatal(err)
	}
	w.dropJobs()
	heal(2)
	heal(0)
	w.work(jobs.Config{})
	if found := w.until(id, ended); found.State != recompact.Done || found.Changed != 3 || found.Failed != 0 {
		t.Errorf("%+v", found)
	}
}

func TestADryRunSaysWhatTheRecompactionDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.many(7, 20)
	w.append(w.session("small"), []byte(`{"role":"user","content":"hi"}`))
	counted, err := w.store.Count(t.Context(), w.tenant, session.SessionFilter{}, 20)
	if err != nil || counted.Sessions != 8 || counted.Messages != 7*41+1 || len(counted.Sample) != 8 {
		t.Fatalf("%+v, %v", counted, err)
	}
	var changed, after int64
	for _, s := range counted.Sample {
		p, err := compactor.ProposeRecompaction(t.Context(), w.store.Store, s.Key, json.RawMessage(lean), nil)
		if err != nil {
			t.Fatal(err)
		}
		if p.Changed {
			changed++
			after -= p.Saved()
		}
		after += p.View()
	}
	id := w.recompact(recompact.Stored{Policy: json.RawMessage(lean)})
	w.work(jobs.Config{})
	found := w.until(id, ended)
	if found.Total != counted.Sessions || found.Changed != changed || found.TokensBefore != counted.ContextTokens || found.TokensAfter != after {
		t.Errorf("counted %+v, %d changes to %d tokens; came to %+v", counted, changed, after, found)
	}
}

var recompacted = flag.Int("sessions", 20, "how many sessions TestARecompactionSurvivesItsWorkers has")

// TestARecompactionSurvivesItsWorkers kills a worker in the middle of a session again and again, while messages are
// appended and views read. With -v it logs how far the recompaction is.
func TestARecompactionSurvivesItsWorkers(t *testing.T) {
	t.Parallel()
	sessions := *recompacted
	w := newWorld(t)
	appended := w.many(sessions, 12)
	id := w.recompact(recompact.Stored{Policy: json.RawMessage(lean), Pace: recompact.Pace{MaxRunning: 4}})
	busy, stop := context.WithCancel(t.Context())
	defer stop()
	late := make([][][]byte, 2)
	var load sync.WaitGroup
	for n := range late {
		at := session.Address{Tenant: w.tenant, ID: fmt.Sprintf("s%04d", n*sessions/len(late))}
		load.Go(func() { late[n] = w.appendAndRead(busy, at) })
	}
	for _, step := range []string{"committed", "snapshot", "planned", "persisted", "rendered"} {
		w.kill(step)
		w.rescueRecompaction()
		w.logProgress(id, "a worker was killed after "+step)
	}
	_, stopWorker := w.work(jobs.Config{Compactions: 8})
	w.until(id, func(r recompact.Stored) bool { return r.Changed+r.Unchanged > r.Total/2 })
	stopWorker()
	w.rescueRecompaction()
	w.logProgress(id, "a worker was stopped")
	w.work(jobs.Config{Compactions: 8})
	found := w.until(id, ended)
	w.logProgress(id, "ended")
	stop()
	load.Wait()
	w.settle()
	if found.State != recompact.Done || found.Total != int64(sessions) || found.Changed != int64(sessions) {
		t.Errorf("%+v", found)
	}
	for n := range sessions {
		all := slices.Clone(appended)
		for i := range late {
			if n == i*sessions/len(late) {
				all = append(all, late[i]...)
			}
		}
		at := session.Address{Tenant: w.tenant, ID: fmt.Sprintf("s%04d", n)}
		if s := w.check(at, all); s.Checkpoint != 1 {
			t.Errorf("session %s has checkpoint %d", at.ID, s.Checkpoint)
		}
	}
}

// appendAndRead appends 40 turns to a session, and reads its view until the load is over.
func (w *world) appendAndRead(busy context.Context, at session.Address) (appended [][]byte) {
	for n := 0; busy.Err() == nil; n++ {
		if n < 40 {
			bodies := turn(1000+n, 20)
			w.append(at, bodies...)
			appended = append(appended, bodies...)
		}
		if violations := wiretest.Validate(session.OpenAIChat, w.view(at), wire.Options{}); len(violations) > 0 {
			w.Errorf("the view of %s breaks its provider's rules: %v", at.ID, violations)
		}
	}
	return appended
}

func (w *world) logProgress(id uuid.UUID, occasion string) {
	w.Helper()
	r, err := w.store.Read(w.Context(), w.tenant, id)
	if err != nil {
		w.Fatal(err)
	}
	w.Logf("%s: %s, %d of %d sessions are done, %d running; %d tokens became %d", occasion, r.State, r.Done(), r.Total, r.Running, r.TokensBefore, r.TokensAfter)
}

// asOwner runs a statement as the superuser.
func (w *world) asOwner(sql string) {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), pgtest.Superuser(w, w.dsn))
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close(w.Context())
	if _, err := conn.Exec(w.Context(), sql); err != nil {
		w.Fatal(err)
	}
}
