package jobs_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// otherEngine makes the session's checkpoints those of another version of the engine.
func (w *world) otherEngine(at session.Address) {
	w.Helper()
	err := postgres.InTenant(w.Context(), w.store.Pool(), at.Tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		_, err := tx.Exec(w.Context(), `UPDATE checkpoints SET engine_version = engine_version - 1 WHERE tenant_id = $1`, [16]byte(at.Tenant))
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
}

// A log of any size is compacted from its beginning, for an upgrade of the engine asks for that.
func TestALogIsCompactedFromItsBeginningInWindows(t *testing.T) {
	t.Parallel()
	const window = 3000 // bytes: a few messages
	w := newWorld(t)
	at := w.session("s")
	w.set(at, func(p *policy.Policy) { p.Summarise.Enabled, p.Truncate.Enabled = false, false })
	_, stop := w.work(jobs.Config{})
	w.fill(at)
	w.settle()
	stop()
	snap := w.snapshot(at)
	ends, err := w.store.Windows(t.Context(), &snap, 0, window)
	if err != nil || len(ends) < 4 || !slices.IsSorted(ends) || ends[len(ends)-1] != snap.LastSeq {
		t.Fatalf("windows end with %v of %d, %v", ends, snap.LastSeq, err)
	}
	after := int64(0)
	for _, end := range ends {
		messages, err := w.store.Window(t.Context(), snap.Key, after, end)
		size := 0
		for i := range messages {
			if size >= window {
				t.Errorf("a window through %d has %d bytes before its message %d", end, size, messages[i].Seq)
			}
			size += len(messages[i].Body)
		}
		if err != nil || size == 0 {
			t.Fatalf("%d bytes after message %d, %v", size, after, err)
		}
		after = end
	}
	whole := w.propose(at, compactor.Request{From: compactor.FromLog})
	w.otherEngine(at)
	w.work(jobs.Config{Window: window})
	run := w.compactNow(at)
	var report protocol.Report
	if err := json.Unmarshal(run.Report, &report); err != nil {
		t.Fatal(err)
	}
	if run.State != session.RunDone || run.Error != nil || report.From != string(compactor.FromLog) || len(report.FailedOpen) > 0 {
		t.Errorf("run %s, %v, report %+v", run.State, run.Error, report)
	}
	if report.ResultsPersisted != len(whole.Plan.Results) || report.BytesBefore != whole.Report().BytesBefore || report.MessagesTotal != snap.LastSeq {
		t.Errorf("in windows: %+v, at once: %+v", report, whole.Report())
	}
	w.check(at, filled())
}
