package jobs_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/jobs/jobstest"
	"github.com/varve-dev/varve/internal/session"
)

// kill starts a victim, waits until one compaction came to the step, and kills it there.
func (w *world) kill(step string) { w.killWith(1, step) }

// killWith does what kill does once this many compactions came to the step.
func (w *world) killWith(compactions int, step string) {
	w.Helper()
	jobstest.Kill(w, w.dsn, step, compactions)
}

func TestAWorkerKilledBetweenAnyTwoStepsLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"snapshot", "planned", "persisted", "rendered", "committed"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			at := w.session("s")
			w.fill(at)
			w.kill(step)
			after := w.check(at, filled())
			if committed := step == "committed"; committed != (after.Checkpoint == 1) {
				t.Fatalf("killed after %s: checkpoint %d", step, after.Checkpoint)
			}
			w.work(jobs.Config{Beat: beat})
			w.settle()
			found := w.check(at, filled())
			if found.Checkpoint != 1 || found.ContextTokens >= 8000 {
				t.Errorf("checkpoint %d, %d tokens", found.Checkpoint, found.ContextTokens)
			}
		})
	}
}

func TestADeadWorkersJobIsTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	w.fill(at)
	w.kill("persisted")
	w.work(jobs.Config{Beat: beat}) // River itself would take 4 minutes
	w.settle()
	if found := w.check(at, filled()); found.Checkpoint != 1 {
		t.Errorf("checkpoint %d", found.Checkpoint)
	}
	if found, err := w.store.Failing(t.Context(), at); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("after it was compacted: %+v, %v", found, err)
	}
}

func TestASessionThatKillsItsWorkersIsQuarantinedAndItsReadsGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at, other := w.session("poison"), w.session("other")
	w.fill(at)
	for range 2 { // the second takes over from the first
		w.kill("planned")
	}
	w.died(at, session.MaxDeaths-1)
	w.work(jobs.Config{Beat: beat, SweepEvery: time.Second})
	w.untilSQL("it is quarantined", `SELECT EXISTS (SELECT FROM river_job WHERE tags = '{quarantined}')`)
	found, err := w.store.Failing(t.Context(), at)
	if err != nil || found.QuarantinedAt == nil || found.Deaths != session.MaxDeaths {
		t.Fatalf("%+v, %v", found, err)
	}
	runs, err := w.store.Runs(t.Context(), at, session.Page{Limit: 10})
	if err != nil || len(runs) != 2 || runs[1].State != session.RunFailed || !strings.Contains(*runs[1].Error, "the worker died") {
		t.Errorf("runs %+v, %v", runs, err)
	}
	w.fill(other)
	w.untilSQL("the other session is compacted", `SELECT count(*) = 1 FROM river_job WHERE kind = 'compact' AND finalized_at IS NULL`)
	if bodies := w.view(at); len(bodies) != len(filled()) {
		t.Errorf("the view has %d messages", len(bodies))
	}
	if found := w.check(other, filled()); found.Checkpoint == 0 {
		t.Error("the other session was not compacted")
	}
}

// died makes a session have this many deaths.
func (w *world) died(at session.Address, deaths int) {
	w.Helper()
	w.inTenant(`
		UPDATE session_failures f
		   SET deaths = $2
		  FROM sessions s
		 WHERE s.tenant_id = f.tenant_id AND s.key = f.session_key AND s.id = $1`, at.ID, deaths)
}

// Sessions that only happened to be in a worker when it was killed are compacted by the next one that lives.
func TestASessionThatDiesWithItsWorkerOftenIsNotTakenForPoison(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := []session.Address{w.session("one"), w.session("other")}
	for _, a := range at {
		w.fill(a)
	}
	for range session.AloneAfter {
		w.killWith(len(at), "planned")
	}
	w.kill("planned") // the third death, of one session alone: the other one waits, and its run has not begun
	log := w.newLog()
	w.work(jobs.Config{Beat: beat, Log: slog.New(slog.NewTextHandler(log, nil))})
	w.settle()
	for _, a := range at {
		if found := w.check(a, filled()); found.Checkpoint != 1 {
			t.Errorf("%s has checkpoint %d", a.ID, found.Checkpoint)
		}
		if found, err := w.store.Failing(t.Context(), a); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("after it was compacted: %+v, %v", found, err)
		}
	}
	if log.count("class=death") != 1 || log.count("deaths=3") != 1 {
		t.Error("the third death is not counted of the session that had begun, and only of that")
	}
}

// untilSQL waits until a condition in SQL holds.
func (w *world) untilSQL(what, sql string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for holds := false; !holds; <-time.After(20 * time.Millisecond) {
		if err := w.store.Pool().QueryRow(ctx, sql).Scan(&holds); err != nil {
			w.Fatalf("waiting until %s: %v", what, err)
		}
	}
}
