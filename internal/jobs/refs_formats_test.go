package jobs_test

import (
	"fmt"
	"testing"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// TestAResultHasOneRef appends results in each format to sessions of each format, where the large ones are cut at
// insertion, compacts them, compacts them again with new messages, and from the log. All along, a result has one ref: the number of its part in its
// message as it was appended, and its content there. The ref is the only one that is persisted and the only one in views,
// and brings the content back.
func TestAResultHasOneRef(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inserts, err := queue.New(w.store.Pool())
	if err != nil {
		t.Fatal(err)
	}
	w.store = postgres.New(w.store.Pool(), inserts, compactor.CapAtIngest)
	var all []*mixed
	formats := session.Formats()
	for i, own := range formats {
		for j, of := range formats {
			if testing.Short() && j != i && j != (i+1)%len(formats) {
				continue
			}
			m := &mixed{at: w.sessionOf(fmt.Sprintf("%s in %s", of, own), 20_000), of: of}
			w.setFormat(m.at, own)
			w.set(m.at, func(p *policy.Policy) {
				p.Cap.AtInsertion, p.Cap.MaxTokens, p.Cap.HeadChars, p.Cap.TailChars = true, 500, 900, 900
				p.Trim.BookendMaxChars, p.Trim.BookendMinChars, p.Trim.MinTokens = 256, 128, 10
				p.Trim.HotZoneMinTokens, p.Trim.HotZoneRatio, p.Trim.DegradationSpanRatio = 700, 0.01, 0.01
				p.Trim.Enabled, p.Trim.FloorRatio = true, 0.01
				p.Protect.LastUnits, p.Protect.LastMessages, p.Protect.Yields = 0, 0, false // results that no request has had, too
				p.Trigger, p.Target, p.Hard = 0.9, 0.05, 0.95
				p.Summarise.Enabled = of == session.Gemini
			})
			all = append(all, m)
		}
	}
	w.work(jobs.Config{})
	for phase, change := range []func(m *mixed){
		func(m *mixed) { w.step(m, 0); w.step(m, 1) },
		func(m *mixed) { w.step(m, 2) },
		func(m *mixed) {},
	} {
		for _, m := range all {
			change(m)
		}
		if phase == 2 {
			w.otherEngine(all[0].at)
		}
		for _, m := range all {
			if _, _, err := w.store.Compact(t.Context(), m.at, nil); err != nil {
				t.Fatal(err)
			}
		}
		w.settle()
		for _, m := range all {
			w.oneRef(m, fmt.Sprintf("%s: compaction %d", m.at.ID, phase+1))
		}
	}
}
