package jobs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/jobs/jobstest"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/llm/llmtest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// set gives a session a policy of its own.
func (w *world) set(at session.Address, change func(p *policy.Policy)) {
	w.Helper()
	policy := jobstest.Settled()
	change(&policy)
	own := session.Policy{Trigger: policy.Trigger, Hard: policy.Hard, Document: policy.Document()}
	if _, _, err := w.store.Update(w.Context(), at, session.Change{Policy: &own}, nil); err != nil {
		w.Fatal(err)
	}
}

// snapshot returns what a compaction of the session would read now.
func (w *world) snapshot(at session.Address) postgres.Snapshot {
	w.Helper()
	found, err := w.store.Session(w.Context(), at)
	if err != nil {
		w.Fatal(err)
	}
	snap, err := w.store.Snapshot(w.Context(), session.Key{Tenant: at.Tenant, Key: found.Key})
	if err != nil {
		w.Fatal(err)
	}
	return snap
}

// propose returns what a compaction of the session would do now.
func (w *world) propose(at session.Address, o compactor.Request) *compactor.Proposal {
	w.Helper()
	p, err := compactor.Propose(w.Context(), w.store, w.snapshot(at), o)
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// newest returns the session's newest run.
func (w *world) newest(at session.Address) session.Run {
	w.Helper()
	runs, err := w.store.Runs(w.Context(), at, session.Page{Limit: 1})
	if err != nil || len(runs) == 0 {
		w.Fatalf("runs %+v, %v", runs, err)
	}
	return runs[0]
}

// compactNow compacts a session on request.
func (w *world) compactNow(at session.Address) session.Run {
	w.Helper()
	if _, _, err := w.store.Compact(w.Context(), at, nil); err != nil {
		w.Fatal(err)
	}
	w.settle()
	return w.newest(at)
}

func TestACompactionStartsFromTheLogWhereItsCheckpointHasAnotherPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	w.work(jobs.Config{})
	w.fill(at)
	w.settle()
	if p := w.propose(at, compactor.Request{}); p.From != compactor.FromCheckpoint {
		t.Errorf("under the same policy it starts from the %s", p.From)
	}
	before := w.check(at, filled())
	w.set(at, func(p *policy.Policy) { p.Target, p.Protect.LastUnits, p.Summarise.KeepMessages = 0.1, 1, 2 })
	w.settle()
	same := w.propose(at, compactor.Request{From: compactor.FromCheckpoint})
	if same.From != compactor.FromCheckpoint || same.Input.Base == nil {
		t.Errorf("asked for, it starts from the %s", same.From)
	}
	p := w.propose(at, compactor.Request{})
	if p.From != compactor.FromLog || p.Input.Base != nil || len(p.Input.Tail) != len(filled()) {
		t.Errorf("under another policy it starts from the %s with %d messages", p.From, len(p.Input.Tail))
	}
	if all, after := p.Tokens(); all <= p.View() || p.View()-after != p.Saved() {
		t.Errorf("%d tokens in the log, %d after, %d saved of a view of %d", all, after, p.Saved(), p.View())
	}
	run := w.compactNow(at)
	found := w.check(at, filled())
	if run.State != session.RunDone || *run.TokensAfter != found.ContextTokens || found.ContextTokens >= before.ContextTokens {
		t.Errorf("run %s %d → %d, the view went from %d to %d tokens", run.State, *run.TokensBefore, *run.TokensAfter, before.ContextTokens, found.ContextTokens)
	}
	if again := w.compactNow(at); again.State != session.RunUnchanged {
		t.Errorf("once more it is %s", again.State)
	}
}

func TestAMoreLenientPolicyDoesNotMakeAViewLarger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	w.work(jobs.Config{})
	w.fill(at)
	w.settle()
	before := w.check(at, filled())
	w.set(at, func(p *policy.Policy) { p.Trigger, p.Target, p.Hard = 0.95, 0.94, 1 })
	if run := w.compactNow(at); run.State == session.RunDone {
		t.Errorf("the run is %s: %s", run.State, run.Reason)
	}
	after := w.check(at, filled())
	if after.ContextTokens != before.ContextTokens {
		t.Errorf("%d tokens became %d", before.ContextTokens, after.ContextTokens)
	}
	if p := w.propose(at, compactor.Request{From: compactor.FromLog, Cause: "recompaction"}); p.Saved() >= 0 || !p.Changed || p.Decision.Verdict != compactor.Now {
		t.Errorf("a recompaction saves %d tokens, changed %t, %s", p.Saved(), p.Changed, p.Decision.Verdict)
	}
}

func TestARecompactionUnderTheSamePolicyChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	w.set(at, func(p *policy.Policy) { p.Summarise.Enabled, p.Truncate.Enabled = false, false }) // a summary of all is another one
	w.work(jobs.Config{})
	w.fill(at)
	w.settle()
	w.compactNow(at) // what came last is in the tail until now
	w.append(at, []byte(`{"role":"user","content":"thanks"}`))
	p := w.propose(at, compactor.Request{From: compactor.FromLog})
	if p.Changed || p.Saved() != 0 || p.Decision.Verdict != compactor.Unchanged || p.Kept != p.Plan.After {
		t.Errorf("changed %t, %d tokens saved, %s, %d of %d tokens kept", p.Changed, p.Saved(), p.Decision.Verdict, p.Kept, p.Plan.After)
	}
}

// damage makes the state of the session's checkpoints unreadable.
func (w *world) damage(at session.Address) {
	w.Helper()
	key := w.snapshot(at).Key
	err := postgres.InTenant(w.Context(), w.store.Pool(), at.Tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		_, err := tx.Exec(w.Context(), `
			UPDATE checkpoints
			   SET state = 'x'
			 WHERE tenant_id = $1 AND session_key = $2`, [16]byte(at.Tenant), [16]byte(key.Key))
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
}

func TestWhatCannotBeReadIsDoneWithout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	_, stop := w.work(jobs.Config{})
	w.fill(at)
	w.settle()
	stop()
	w.damage(at)
	w.work(jobs.Config{})
	run := w.compactNow(at)
	var report protocol.Report
	if err := json.Unmarshal(run.Report, &report); err != nil {
		t.Fatal(err)
	}
	if run.State != session.RunDone || report.From != string(compactor.FromLog) || len(report.FailedOpen) != 1 || !strings.Contains(report.FailedOpen[0], "checkpoint") {
		t.Errorf("run %s, report %+v", run.State, report)
	}
	w.check(at, filled())
	if healed := w.compactNow(at); healed.State == session.RunFailed {
		t.Errorf("the next run is %s: %v", healed.State, healed.Error)
	}
	w.check(at, filled())
}

func TestARunReportsWhatItDid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	w.work(jobs.Config{})
	w.fill(at)
	w.settle()
	run := w.first(at)
	var report protocol.Report
	var why compactor.Decision
	if err := json.Unmarshal(run.Report, &report); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(run.Why, &why); err != nil {
		t.Fatal(err)
	}
	parts := 0
	for _, n := range report.Actions {
		parts += n
	}
	if report.TokensSaved != *run.TokensBefore-*run.TokensAfter || report.MessagesCompacted == 0 || parts == 0 ||
		report.ResultsPersisted != *run.ResultsPersisted || report.BytesBefore <= report.BytesAfter || report.OverflowRisk != nil {
		t.Errorf("report %s", run.Report)
	}
	if why.Verdict != compactor.Now || why.Cause != run.Cause || why.ContextTokens != *run.TokensBefore || why.TriggerTokens != 8000 || why.HardTokens != 9500 {
		t.Errorf("why %s", run.Why)
	}
	if !strings.Contains(run.Reason, "8000") && !strings.Contains(run.Reason, "9500") {
		t.Errorf("reason %q", run.Reason)
	}
}

func TestAReportNamesWhatIsStaleWithoutSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	const path = "src/api_key=sk-live-0123456789abcdef0123456789abcdef/main.go"
	w.append(at, []byte(`{"role":"user","content":"change it"}`))
	for n := range 12 {
		read := turn(n, 500)
		if n < 2 { // the same file twice
			read[0] = bytes.ReplaceAll(read[0], fmt.Appendf(nil, "f%d", n), []byte(path))
		}
		w.append(at, read...)
	}
	w.set(at, func(p *policy.Policy) {
		p.Dedupe.Identity = policy.ByResource
		p.Trim.Enabled, p.Summarise.Enabled, p.Truncate.Enabled = false, false, false
	})
	report := w.propose(at, compactor.Request{}).Report()
	if report.Stale.Count != 1 || len(report.Stale.Resources) != 1 || !strings.HasSuffix(report.Stale.Resources[0], "main.go") || strings.Contains(report.Stale.Resources[0], "89abcdef") {
		t.Errorf("stale %+v, actions %v", report.Stale, report.Actions)
	}
}

func TestWithoutASummaryTheBudgetHoldsAllTheSame(t *testing.T) {
	t.Parallel()
	for failure, writer := range map[string]llm.Writer{
		"summarise: the model does not answer": llmtest.New(slices.Repeat([]llmtest.Reply{{Err: errors.New("the model does not answer")}}, 10)...),
		"panic: a bug":                         panicking{},
	} {
		t.Run(failure, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			at := w.session("s")
			w.work(jobs.Config{Writer: writer})
			w.fill(at)
			w.settle()
			run := w.first(at)
			var report protocol.Report
			if err := json.Unmarshal(run.Report, &report); err != nil {
				t.Fatal(err)
			}
			if len(report.FailedOpen) != 1 || report.FailedOpen[0] != failure || report.OverflowRisk != nil {
				t.Errorf("run %s, report %s", run.State, run.Report)
			}
			if found := w.check(at, filled()); found.ContextTokens >= 8000 {
				t.Errorf("%d tokens after checkpoint %d", found.ContextTokens, found.Checkpoint)
			}
		})
	}
}

// panicking is a writer with a bug.
type panicking struct{}

func (panicking) Write(context.Context, summary.Request) (summary.Answer, error) { panic("a bug") }

// first returns the session's first run that made a checkpoint.
func (w *world) first(at session.Address) (run session.Run) {
	w.Helper()
	runs, err := w.store.Runs(w.Context(), at, session.Page{Limit: 20})
	for _, r := range runs {
		if r.State == session.RunDone {
			run = r
		}
	}
	if err != nil || run.State != session.RunDone {
		w.Fatalf("runs %+v, %v", runs, err)
	}
	return run
}
