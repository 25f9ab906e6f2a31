package jobs_test

import (
	"testing"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/jobs/jobstest"
	"github.com/varve-dev/varve/internal/policy"
)

// TestAPolicyLoweredWhileARunIsPlannedIsObeyed lowers it when the run is planned under the old one.
func TestAPolicyLoweredWhileARunIsPlannedIsObeyed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	p := jobstest.NewPause(w, "planned")
	w.work(jobs.Config{Trace: p.Trace})
	w.fill(at)
	jobstest.Await(w, p.Reached)
	w.set(at, func(p *policy.Policy) { p.Trigger, p.Target = 0.3, 0.1 })
	close(p.GoOn)
	w.settle()
	if found, err := w.store.Session(t.Context(), at); err != nil || found.ContextTokens >= 3000 {
		t.Errorf("the session stays at %d tokens with a trigger of 3000, %v", found.ContextTokens, err)
	}
}

// sweep looks for lost jobs in all ways there are, and returns how many it inserted.
func (w *world) sweep() (int, error) {
	w.Helper()
	swept, err := w.store.Sweep(w.Context())
	if err != nil {
		return swept, err
	}
	audited, err := w.store.AuditNext(w.Context(), 1_000_000, 1000)
	return swept + audited, err
}
