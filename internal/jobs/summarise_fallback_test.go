package jobs_test

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/llm/fake"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// TestASummaryThatWasWrittenIsNoFailure has the model's answer in the view, whatever stands in for it meanwhile.
func TestASummaryThatWasWrittenIsNoFailure(t *testing.T) {
	t.Parallel()
	for _, fallback := range []policy.Fallback{policy.ExtractInstead, policy.KeepInstead, policy.DropInstead} {
		t.Run(string(fallback), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.provider(fake.Options{Choose: good})
			at := w.session("s")
			w.asks(at, fallback)
			w.work(jobs.Config{Caller: p.caller})
			w.talk(at)
			w.quiet()
			runs, err := w.store.Runs(t.Context(), at, session.Page{Limit: 10})
			if err != nil || runs[0].Cause != "summary" || !w.inView(at, canary) {
				t.Fatalf("the answer is not in the view: %+v, %v", runs, err)
			}
			for _, run := range runs {
				var report protocol.Report
				if err := json.Unmarshal(run.Report, &report); err != nil || len(report.FailedOpen) > 0 {
					t.Errorf("the run for %s reports %v, and nothing has failed: %v", run.Cause, report.FailedOpen, err)
				}
			}
		})
	}
}

func TestAfterAFailureThePolicySaysWhatTheViewHas(t *testing.T) {
	t.Parallel()
	for fallback, notice := range map[policy.Fallback]bool{
		policy.ExtractInstead: false, policy.KeepInstead: false, policy.DropInstead: true,
	} {
		t.Run(string(fallback), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.provider(fake.Options{Choose: func(fake.Request) fake.Step { return fake.Step{Fault: fake.Refusal} }})
			at := w.session("s")
			w.asks(at, fallback)
			w.work(jobs.Config{Caller: p.caller})
			log := w.talk(at)
			w.quiet()
			s := w.summaries(at)
			if len(s) == 0 || s[0].State == session.SummaryDue || s[0].Reason == "" {
				t.Fatalf("%+v", s)
			}
			shown, err := compactor.Summaries(t.Context(), w.store, at, 0)
			state := map[policy.Fallback]string{policy.DropInstead: "dropped"}
			if s := shown.Summaries; err != nil || len(s) != 1 || s[0].State != cmp.Or(state[fallback], "failed") || s[0].Reason == "" || s[0].Model != "small" {
				t.Errorf("%+v, %v", shown, err)
			}
			found, err := w.store.Session(t.Context(), at)
			if err != nil {
				t.Fatal(err)
			}
			if fallback != policy.KeepInstead { // whose view has everything still
				w.check(at, log)
			}
			runs, err := w.store.Runs(t.Context(), at, session.Page{Limit: 10})
			if err != nil || (runs[0].Cause == "summary") != notice {
				t.Errorf("%+v, %v", runs, err)
			}
			first := runs[len(runs)-1].Reason
			if waits := strings.HasSuffix(first, "; the messages stay until small has written their summary"); waits == (fallback == policy.ExtractInstead) {
				t.Errorf("the first run: %s", first)
			}
			if twice := summary.ErrFailed.Error() + ": " + summary.ErrFailed.Error(); strings.Contains(string(runs[0].Report), twice) {
				t.Errorf("the report says twice that the model has failed: %s", runs[0].Report)
			}
			if dropped := found.ContextTokens < 6000; dropped != (fallback != policy.KeepInstead) {
				t.Errorf("%d tokens are in the view", found.ContextTokens)
			}
		})
	}
}
