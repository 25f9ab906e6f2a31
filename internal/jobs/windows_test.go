package jobs_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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

// Pictures have few tokens: their bytes or their number make a session due, and they leave its view.
func TestASessionOfPicturesIsCompactedForThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		triggerBytes, bytes, pictures int
		reason                        string
		viewBytes                     int64
	}{
		{2 << 20, 300 << 10, 7, "the trigger is 2097152 bytes", 1 << 20},
		{0, 1 << 10, 50, "50 new messages with images, a request has at most 100 images", 50 << 10},
	} {
		testPictures(t, c.triggerBytes, c.bytes, c.pictures, c.reason, c.viewBytes)
	}
}

func testPictures(t *testing.T, triggerBytes, bytes, pictures int, reason string, viewBytes int64) {
	t.Helper()
	w := newWorld(t)
	at := w.sessionOf("s", 1_000_000)
	w.set(at, func(p *policy.Policy) { p.TriggerBytes, p.MediaBytes = triggerBytes, 1<<20 })
	w.work(jobs.Config{})
	say := func(form string, args ...any) {
		w.appendLog(at, session.Anthropic, [][]byte{fmt.Appendf(nil, form, args...)})
	}
	shot := func(n int) {
		say(`{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"computer","input":{}}]}`, n)
		say(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}]}]}`,
			n, strings.Repeat(string(rune('A'+n)), bytes))
	}
	newest := func() int {
		w.settle()
		found, err := w.store.Session(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		w.checkResults(at, found)
		return found.Checkpoint
	}
	say(`{"role":"user","content":"use the computer"}`)
	for n := range pictures - 1 {
		shot(n)
	}
	if n := newest(); n != 0 {
		t.Fatalf("checkpoint %d below the trigger", n)
	}
	shot(pictures - 1)
	if n, run := newest(), w.newest(at); n != 1 || run.State != session.RunDone || !strings.Contains(run.Reason, reason) {
		t.Fatalf("checkpoint %d, run %s: %s", n, run.State, run.Reason)
	}
	if snap := w.snapshot(at); snap.ViewBytes > viewBytes {
		t.Errorf("the view has %d bytes", snap.ViewBytes)
	}
	say(`{"role":"user","content":"thanks"}`)
	if n := newest(); n != 1 {
		t.Errorf("an append later it has checkpoint %d", n)
	}
}

// What no stage can shorten is tried once, and not with every append.
func TestPicturesThatCannotLeaveAreTriedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.sessionOf("s", 1_000_000)
	w.set(at, func(p *policy.Policy) { p.TriggerBytes, p.MediaBytes = 1<<20, 1<<20 })
	w.work(jobs.Config{})
	for range 4 {
		w.appendLog(at, session.Anthropic, [][]byte{
			fmt.Appendf(nil, `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}]}`, strings.Repeat("A", 400<<10)),
			[]byte(`{"role":"assistant","content":"I see."}`),
		})
		w.settle()
	}
	runs, err := w.store.Runs(t.Context(), at, session.Page{Limit: 10})
	if err != nil || len(runs) != 1 || runs[0].State != session.RunUnchanged {
		t.Errorf("runs %+v, %v", runs, err)
	}
}
