package jobs_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/session"
)

// TestRecordedSessionsComeBackFromTheirArchives freezes recorded sessions that were compacted and packed, tells how
// large their archives are, and compares what is read, and the rows, before and after.
func TestRecordedSessionsComeBackFromTheirArchives(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("VARVE_DATA")
	if dir == "" {
		dir = "../../../shared/data"
	}
	read, _, err := compacttest.Recorded(dir)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.inFiles()
	w.work(jobs.Config{})
	var sessions []session.Address
	raw := 0
	for i := range read {
		c := &read[i]
		if total := c.Total(); total > 8000 && (!testing.Short() || total < 20_000) {
			at := w.sessionOf(fmt.Sprintf("%d-%s", i, c.ID), max(total/4, 6000))
			w.appendLog(at, c.Format, c.Messages)
			sessions = append(sessions, at)
			for _, m := range c.Messages {
				raw += len(m)
			}
		}
	}
	w.offloaded()
	rows, before := map[session.Address][]string{}, map[session.Address]string{}
	for _, at := range sessions {
		rows[at], before[at] = w.allRows(at), w.served(at)
	}
	for _, at := range sessions {
		w.frozen(at)
	}
	size := w.one(`SELECT format('%s bytes of archives, %s of them views',
		sum(stored), sum(view_end)) FROM session_archives`)
	for _, at := range sessions {
		if after := w.served(at); after != before[at] {
			t.Errorf("%s was %s, and is %s", at.ID, before[at], after)
		}
		w.sameRows(at.ID, rows[at], w.allRows(at))
	}
	t.Logf("%d sessions of %d bytes: %s", len(sessions), raw, size)
}

// one returns the only value of a query, of any tenant.
func (w *world) one(sql string) (value string) {
	w.Helper()
	if err := pgtest.Row(w, w.dsn, sql).Scan(&value); err != nil {
		w.Fatal(err)
	}
	return value
}
