package jobs_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/session"
)

// TestACompactionSharesTheProcessors lets somebody else have the only processor that heavy work has. The compaction of a
// large session waits for it, that of a small one does not.
func TestACompactionSharesTheProcessors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cpu := admit.New(admit.Config{Name: "cpu of a compaction", Size: 1})
	release, err := cpu.Acquire(t.Context(), uuid.New(), 1)
	if err != nil {
		t.Fatal(err)
	}
	small, large := w.session("small"), w.sessionOf("large", 100_000)
	w.work(jobs.Config{Compactions: 2, CPU: cpu})
	for n := range 20 {
		w.append(large, turn(n, 5000)...)
	}
	for apitest.Metric(t, "varve_admit_waiting", "cpu of a compaction") < 1 {
		time.Sleep(time.Millisecond)
	}
	w.fill(small)
	for w.checkpoint(small) == 0 {
		time.Sleep(time.Millisecond)
	}
	if n := w.checkpoint(large); n > 0 {
		t.Errorf("it was compacted to checkpoint %d without a processor", n)
	}
	release.Done()
	w.settle()
	if w.checkpoint(large) == 0 {
		t.Error("it was not compacted when there was a processor")
	}
}

func (w *world) checkpoint(at session.Address) int {
	w.Helper()
	found, err := w.store.Session(w.Context(), at)
	if err != nil {
		w.Fatal(err)
	}
	return found.Checkpoint
}
