package jobs_test

import (
	"fmt"
	"testing"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/session"
)

func TestRecordedSessionsAreKeptOnceAndComeBackByteForByte(t *testing.T) {
	t.Parallel()
	read, _, err := compacttest.Recorded("../../../shared/data")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.work(jobs.Config{})
	originals := map[session.Address]*compacttest.Conversation{}
	for i := range read {
		c := &read[i]
		if total := c.Total(); total > 8000 && (!testing.Short() || total < 20_000) {
			at := w.sessionOf(fmt.Sprintf("%d-%s", i, c.ID), max(total/4, 6000))
			w.appendLog(at, c.Format, c.Messages)
			originals[at] = c
		}
	}
	packs, packed, holed := w.offloaded()
	t.Logf("%d sessions: %d packs with %d messages; %d packs with stored results", len(originals), packs, packed, holed)
	if len(originals) > 0 && (packs == 0 || packed == 0 || holed == 0) {
		t.Error("nothing was packed")
	}
	results, stored := 0, 0
	for at, c := range originals {
		w.same(at, c.Format, c.Messages)
		n, withBody := w.readBack(at, c.Format, c.Messages)
		results += n
		stored += withBody
	}
	t.Logf("%d results, %d of them with a body", results, stored)
}
