package jobs_test

import (
	"testing"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/jobs/jobstest"
	"github.com/varve-dev/varve/internal/session"
)

func TestARestorationDuringACompactionSupersedesIt(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"snapshot", "planned", "persisted", "rendered"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			at := w.session("s")
			_, stop := w.work(jobs.Config{})
			w.fill(at)
			w.settle()
			stop()
			appended := filled()
			for n := range 24 {
				bodies := turn(100+n, 500)
				w.append(at, bodies...)
				appended = append(appended, bodies...)
			}
			p := jobstest.NewPause(w, step)
			w.work(jobs.Config{Trace: p.Trace})
			jobstest.Await(w, p.Reached)
			restored, _, err := w.store.Restore(t.Context(), at, 1, nil)
			close(p.GoOn)
			if err != nil {
				t.Fatal(err)
			}
			w.settle()
			if found := w.check(at, appended); found.Checkpoint != restored.N {
				t.Errorf("checkpoint %d was restored as %d, the newest is %d", 1, restored.N, found.Checkpoint)
			}
			runs, err := w.store.Runs(t.Context(), at, session.Page{Limit: 2})
			if err != nil || runs[0].Cause != "restore" || runs[1].State != session.RunSuperseded {
				t.Errorf("runs %+v, %v", runs, err)
			}
			if _, _, err := w.store.Compact(t.Context(), at, nil); err != nil {
				t.Fatal(err)
			}
			w.settle()
			if found := w.check(at, appended); found.Checkpoint != restored.N+1 {
				t.Errorf("asked for, the session was compacted to checkpoint %d", found.Checkpoint)
			}
		})
	}
}
