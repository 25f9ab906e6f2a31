package replays_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/jobs/jobstest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/replay"
	"github.com/varve-dev/varve/internal/replays"
	"github.com/varve-dev/varve/internal/session"
)

// backtest returns a replay of two policies in a window that the sessions of many fill.
func backtest() replays.Stored {
	document := func(text string) json.RawMessage {
		p, err := policy.Parse([]byte(text))
		if err != nil {
			panic(err)
		}
		return p.Document()
	}
	return replays.Stored{
		Contenders: []replays.Contender{
			{Name: "default", Source: replays.FromProfile, Policy: document(`{}`)},
			{Name: "lean", Source: replays.FromDocument, Policy: document(`{"trigger":0.3,"target":0.1}`)},
		},
		Windows: []int{3000}, Sample: 100, Seed: 1, MaxMessages: 1000, MaxBytes: 1 << 20,
	}
}

func (w *world) replay(r replays.Stored) uuid.UUID {
	w.Helper()
	made, _, err := w.store.Create(w.Context(), w.Tenant, r, nil)
	if err != nil {
		w.Fatal(err)
	}
	return made.ID
}

func (w *world) readReplay(id uuid.UUID) replays.Stored {
	w.Helper()
	found, err := w.store.Read(context.WithoutCancel(w.Context()), w.Tenant, id)
	if err != nil {
		w.Fatal(err)
	}
	return found
}

// replayEnded waits for the end of a replay.
func (w *world) replayEnded(id uuid.UUID) (found replays.Stored) {
	w.Helper()
	w.Until("the replay ends", func() bool {
		found = w.readReplay(id)
		return found.State.Ended()
	})
	return found
}

// outcomesOf returns what a replay has measured.
func (w *world) outcomesOf(id uuid.UUID) (outcomes []replay.Outcome) {
	w.Helper()
	stored, err := w.store.OutcomesOf(w.Context(), w.Tenant, id)
	if err != nil {
		w.Fatal(err)
	}
	for _, text := range stored {
		var o replay.Outcome
		if err := json.Unmarshal(text, &o); err != nil {
			w.Fatal(err)
		}
		outcomes = append(outcomes, o)
	}
	return outcomes
}

// digests returns a digest of all rows of each table that tells of sessions, and the jobs that compact them.
func (w *world) digests() map[string]string {
	w.Helper()
	found := map[string]string{}
	err := postgres.InTenant(w.Context(), w.store.Pool(), w.Tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		for _, table := range []string{
			"sessions", "messages", "checkpoints", "runs", "results", "result_bodies", "result_chunks",
			"policies", "policy_versions", "idempotency",
		} {
			var sum string
			err := tx.QueryRow(w.Context(), `
				SELECT count(*) || ' ' || coalesce(md5(string_agg(md5(t::text), '' ORDER BY md5(t::text))), '')
				  FROM `+table+` t`).Scan(&sum)
			if err != nil {
				return err
			}
			found[table] = sum
		}
		var jobs string
		err := tx.QueryRow(w.Context(), `SELECT count(*)::text FROM river_job WHERE kind = 'compact'`).Scan(&jobs)
		found["compactions"] = jobs
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return found
}

func TestAReplayMeasuresEverySessionAndChangesNone(t *testing.T) {
	t.Parallel()
	w := newSliced(t, 1)
	w.many(6)
	w.turns(w.session("compacted"), 24, 500)
	w.append(w.session("small"), []byte(`{"role":"user","content":"hi"}`))
	var mutex sync.Mutex
	var id uuid.UUID
	var seen []replays.Stored
	w.Work(jobs.Config{KeepWhole: true, Trace: func(step string) {
		if step == "session" {
			mutex.Lock()
			defer mutex.Unlock()
			seen = append(seen, w.readReplay(id))
		}
	}})
	w.compacted()
	before := w.digests()
	if strings.HasPrefix(before["checkpoints"], "0 ") || strings.HasPrefix(before["runs"], "0 ") {
		t.Fatalf("nothing was compacted: %v", before)
	}
	mutex.Lock()
	id = w.replay(backtest())
	mutex.Unlock()
	r := w.replayEnded(id)
	if r.State != replays.Done || r.Matched != 8 || r.TooShort != 1 || r.Total != 7 || r.Measured != 7 || r.Outcomes != 14 || len(r.Skipped) != 0 || r.Contender != nil {
		t.Errorf("%+v", r)
	}
	for table, sum := range w.digests() {
		if sum != before[table] {
			t.Errorf("%s: %s became %s", table, before[table], sum)
		}
	}
	for i, at := range seen {
		if at.State != replays.Running || at.Done() != int64(i+1) || at.Outcomes != int64(2*i+2) || at.Contender == nil {
			t.Errorf("after %d sessions: %+v", i+1, at)
		}
	}
	if len(seen) != 7 {
		t.Errorf("progress was made %d times", len(seen))
	}
	outcomes := w.outcomesOf(id)
	for i, o := range outcomes {
		if want := r.Contenders[i%2].Name; o.Contender != want || o.Window != 3000 || o.LogTokens < 3000 || o.Session != outcomes[i/2*2].Session {
			t.Errorf("%d: %+v", i, o)
		}
	}
	if len(outcomes) != 14 {
		t.Errorf("%d outcomes", len(outcomes))
	}
	want, err := json.Marshal(replay.Summarise(outcomes, replay.Options{Baseline: "default"}))
	if err != nil {
		t.Fatal(err)
	}
	if report, err := w.store.Report(t.Context(), w.Tenant, id); err != nil || string(report) != string(want) {
		t.Errorf("%s, %v; want %s", report, err, want)
	}
	var slices int
	const ofReplay = `SELECT count(*) FROM river_job WHERE kind = 'replay' AND args->>'replay' = $1`
	if err := w.store.Pool().QueryRow(t.Context(), ofReplay, id.String()).Scan(&slices); err != nil || slices != 8 {
		t.Errorf("%d jobs, %v: one a session, and one that ends the replay", slices, err)
	}
}

// TestAReplaySurvivesItsWorkers kills a worker after each step, and counts the measurements of the one that ends it.
func TestAReplaySurvivesItsWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.many(4)
	id := w.replay(backtest())
	for _, step := range []string{"sampled", "log", "outcome", "session", "outcome", "log"} {
		before := w.readReplay(id)
		w.die(step)
		if after := w.readReplay(id); after.Outcomes < before.Outcomes || after.Done() < before.Done() {
			t.Errorf("after %s: %+v became %+v", step, before, after)
		}
	}
	stored := w.readReplay(id)
	if stored.Outcomes == 0 || stored.Outcomes == 8 {
		t.Fatalf("%+v", stored)
	}
	var mutex sync.Mutex
	steps := map[string]int64{}
	w.Work(jobs.Config{Trace: func(step string) {
		mutex.Lock()
		defer mutex.Unlock()
		steps[step]++
	}})
	r := w.replayEnded(id)
	mutex.Lock()
	defer mutex.Unlock()
	if r.State != replays.Done || r.Measured != 4 || r.Outcomes != 8 || steps["outcome"] != 8-stored.Outcomes {
		t.Errorf("%+v; %d were stored, then %v", r, stored.Outcomes, steps)
	}
	w.requireNoJob(id)
}

// requireNoJob requires that an ended replay has no live job.
func (w *world) requireNoJob(id uuid.UUID) {
	w.Helper()
	var live int
	err := w.store.Pool().QueryRow(w.Context(), `SELECT count(*) FROM river_job WHERE kind = 'replay' AND finalized_at IS NULL AND args ->> 'replay' = $1::text`, id).Scan(&live)
	if err != nil || live != 0 {
		w.Errorf("%d jobs are live, %v", live, err)
	}
}

func TestASessionThatKillsItsWorkersIsGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.many(2)
	id := w.replay(backtest())
	for range 3 {
		w.die("log")
	}
	w.Work(jobs.Config{})
	r := w.replayEnded(id)
	sessions, err := w.store.Sessions(t.Context(), w.Tenant, id, 0, 10)
	if err != nil || r.Failed != 1 || r.Measured != 1 || sessions[0].State != "failed" || *sessions[0].Reason != "its worker died 3 times" {
		t.Errorf("%+v: %+v, %v", r, sessions, err)
	}
}

func TestACancelledReplayReportsWhatWasMeasured(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.many(4)
	p := w.pauseAt("session")
	id := w.replay(backtest())
	jobstest.Await(w, p.Reached)
	if r, _, err := w.store.Cancel(t.Context(), w.Tenant, id, nil); err != nil || r.State != replays.Cancelling {
		t.Errorf("%+v, %v", r, err)
	}
	close(p.GoOn)
	r := w.replayEnded(id)
	if r.State != replays.Cancelled || r.Measured != 1 || r.Outcomes != 2 || r.Done() != 1 {
		t.Errorf("%+v", r)
	}
	if report, err := w.store.Report(t.Context(), w.Tenant, id); err != nil || len(report) == 0 {
		t.Errorf("%s, %v", report, err)
	}
	sessions, err := w.store.Sessions(t.Context(), w.Tenant, id, 0, 10)
	if err != nil || len(sessions) != 4 || sessions[3].State != "cancelled" {
		t.Errorf("%+v, %v", sessions, err)
	}
	again := w.replay(backtest()) // there is room for another one
	if r := w.replayEnded(again); r.Measured != 4 {
		t.Errorf("%+v", r)
	}
}

func TestACancelledReplayThrowsTheMeasurementAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.many(2)
	p := w.pauseAt("log")
	id := w.replay(backtest())
	jobstest.Await(w, p.Reached)
	if _, _, err := w.store.Cancel(t.Context(), w.Tenant, id, nil); err != nil {
		t.Fatal(err)
	}
	close(p.GoOn)
	if r := w.replayEnded(id); r.State != replays.Cancelled || r.Outcomes != 0 || r.Done() != 0 {
		t.Errorf("%+v", r)
	}
}

func TestASessionThatCannotBeMeasuredDoesNotStopAReplay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.many(5)
	w.Exec(`UPDATE messages SET body = '{"role":' WHERE session_key = (SELECT key FROM sessions WHERE id = 's0001')`)
	w.turns(w.session("long"), 60, 100)
	foreign := session.Append{Session: session.Address{Tenant: w.Tenant, ID: "s0002"}, Format: session.Anthropic, Messages: []session.NewMessage{
		{Body: []byte(`{"role":"user","content":"hi"}`), Role: "user", Tokens: 5, StartsUnit: true},
	}}
	if _, _, err := w.store.Append(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	b := backtest()
	b.MaxMessages = 50
	id := w.replay(b)
	p := w.pauseAt("sampled")
	jobstest.Await(w, p.Reached)
	if _, err := w.store.Delete(t.Context(), session.Address{Tenant: w.Tenant, ID: "s0003"}, nil); err != nil {
		t.Fatal(err)
	}
	close(p.GoOn)
	r := w.replayEnded(id)
	want := []replays.ReplaySkip{{Reason: "erased", Sessions: 1}, {Reason: "several_formats", Sessions: 1}, {Reason: "too_many_messages", Sessions: 1}}
	if r.State != replays.Done || r.Total != 6 || r.Measured != 2 || r.Failed != 1 || !slices.Equal(r.Skipped, want) || r.Done() != 6 {
		t.Errorf("%+v", r)
	}
	sessions, err := w.store.Sessions(t.Context(), w.Tenant, id, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sessions {
		if *s.Session == "s0001" && (s.State != "failed" || s.Reason == nil || !strings.Contains(*s.Reason, "message 1 is damaged")) {
			t.Errorf("%+v", s)
		}
	}
}

// TestASessionThatTakesTooLongIsGivenUp lets the time of a job pass between the log and the measurement.
func TestASessionThatTakesTooLongIsGivenUp(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for a job's timeout: 5 seconds")
	}
	w := newWorld(t)
	w.many(2)
	id := w.replay(backtest())
	var once sync.Once
	w.Work(jobs.Config{JobTimeout: 5 * time.Second, Trace: func(step string) {
		if step == "log" {
			once.Do(func() { time.Sleep(5100 * time.Millisecond) })
		}
	}})
	r := w.replayEnded(id)
	sessions, err := w.store.Sessions(t.Context(), w.Tenant, id, 0, 10)
	if err != nil || r.Failed != 1 || r.Measured != 1 || !strings.Contains(fmt.Sprint(*sessions[0].Reason), "longer than a job may take") {
		t.Errorf("%+v: %+v, %v", r, sessions, err)
	}
}

func TestAReplayWhosePolicyCannotBeReadFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := backtest()
	b.Contenders[1].Policy = json.RawMessage(`{"hard":"poison"}`)
	id := w.replay(b)
	_, err := w.store.Pool().Exec(t.Context(), `UPDATE river_job SET max_attempts = 1 WHERE kind = 'replay'`)
	if err != nil {
		t.Fatal(err)
	}
	w.Work(jobs.Config{})
	if r := w.replayEnded(id); r.State != replays.Failed || !strings.Contains(*r.Error, "contender lean: /hard") {
		t.Errorf("%+v", r)
	}
}
