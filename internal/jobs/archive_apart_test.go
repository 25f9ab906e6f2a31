package jobs_test

import (
	"testing"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/session"
)

// TestArchivesLieApartFromResults has results in PostgreSQL and archives in a bucket, and the other way round.
func TestArchivesLieApartFromResults(t *testing.T) {
	t.Parallel()
	for archives, results := range map[persist.Kind]persist.Kind{persist.S3: persist.Postgres, persist.Postgres: persist.S3} {
		t.Run(archives.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.inStore(persist.S3)
			stores := *w.store.ResultStores()
			stores.New, stores.Archives = results, &archives
			w.store.UseResultStores(stores)
			at, bodies := w.archivable("s")
			w.work(jobs.Config{})
			w.offloaded()
			before := w.allRows(at)
			if made := w.archived(at); made.Store != archives.String() {
				t.Errorf("%+v", made)
			}
			if n := w.count("session_archives WHERE objects <> '{}'"); n > 0 != (archives == persist.S3) {
				t.Errorf("%d archives lie outside", n)
			}
			w.verified()
			w.restored(at)
			w.sameRows("s", before, w.allRows(at))
			w.same(at, session.OpenAIChat, bodies)
			if n := w.count("result_chunks WHERE object IS NOT NULL"); n > 0 != (results == persist.S3) {
				t.Errorf("%d chunks lie outside", n)
			}
			w.verified()
		})
	}
}
