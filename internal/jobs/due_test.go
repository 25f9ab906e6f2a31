package jobs_test

import (
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
)

func TestAPolicyWithoutAutoCompactsOnlyOnRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	w.set(at, func(p *policy.Policy) { p.Auto = false })
	w.fill(at) // beyond the hard limit
	if inserted, err := w.sweep(); err != nil || inserted != 0 {
		t.Errorf("the sweep inserted %d jobs, %v", inserted, err)
	}
	w.work(jobs.Config{})
	w.settle()
	if page, err := w.store.Runs(t.Context(), at, session.Page{Limit: 10}); err != nil || len(page) != 0 {
		t.Fatalf("%d runs, %v", len(page), err)
	}
	if run := w.compactNow(at); run.State != session.RunDone || !strings.HasPrefix(run.Reason, "asked for") {
		t.Errorf("run %s: %q", run.State, run.Reason)
	}
}

func TestAPolicyThatIsSwitchedOffChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	w.fill(at)
	w.set(at, func(p *policy.Policy) { p.Enabled = false })
	w.work(jobs.Config{})
	w.settle()
	run := w.compactNow(at)
	if run.State != session.RunUnchanged || run.Reason != "the policy switches compaction off (enabled is false)" {
		t.Errorf("run %s: %q", run.State, run.Reason)
	}
	w.set(at, func(p *policy.Policy) { p.Enabled = true })
	w.compactNow(at)
	found, err := w.store.Session(t.Context(), at)
	if err != nil || found.Checkpoint != 1 {
		t.Errorf("switched on: checkpoint %d, %v", found.Checkpoint, err)
	}
}

// TestASessionIsDueAtWhatItsPolicySays has a window of 10,000 tokens and a trigger at 8,000.
func TestASessionIsDueAtWhatItsPolicySays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work(jobs.Config{})
	for name, c := range map[string]struct {
		change func(*policy.Policy)
		reason string
	}{
		"tokens": {func(p *policy.Policy) { p.TriggerTokens, p.TargetTokens = 2000, 1000 }, "the trigger is 2000"},
		"trim":   {func(p *policy.Policy) { p.Trim.Eager, p.Trim.FloorRatio, p.Target = true, 0.2, 0.1 }, "below the trigger of 8000: a stage that is eager acts"},
		"budget": {
			func(p *policy.Policy) {
				p.Budget = policy.Budget{Enabled: true, Eager: true, Tokens: 2000}
				p.Target = 0.1
			},
			"below the trigger of 8000: a stage that is eager acts",
		},
	} {
		at := w.session(name)
		w.set(at, func(p *policy.Policy) {
			p.Protect.LastUnits, p.Trim.HotZoneMinTokens, p.Trim.DegradationSpanRatio = 0, 0, 0
			c.change(p)
		})
		w.append(at, []byte(`{"role":"user","content":"read all files"}`))
		queued := 0
		for n := range 6 {
			if done := w.append(at, turn(n, 500)...); done.Compaction == session.CompactionQueued {
				queued = int(done.ContextTokens)
				break
			}
		}
		if queued < 2000 || queued > 2700 {
			t.Errorf("%s: due at %d tokens, want 2000", name, queued)
		}
		w.settle()
		if run := w.newest(at); !strings.Contains(run.Reason, c.reason) {
			t.Errorf("%s: run %s: %q", name, run.State, run.Reason)
		}
	}
}
