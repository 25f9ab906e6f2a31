package jobs_test

import (
	"log/slog"
	"testing"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/session"
)

// TestObjectsOfArchivesAreNotCollected collects while a session is cold, whose object the archive's row names, and
// another is archived in several parts.
func TestObjectsOfArchivesAreNotCollected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inStore(persist.File)
	w.work(jobs.Config{})
	asleep, bodies := w.archivable("asleep")
	large, long := w.sessionOf("large", 10_000_000), turns(9, 300_000) // no compaction makes it smaller meanwhile
	w.appendLog(large, session.OpenAIChat, long)
	w.frozen(asleep)
	w.archived(large)
	if n := w.count("session_archives WHERE cardinality(objects) > 1"); n != 1 || w.count("session_archives WHERE cardinality(objects) = 1") != 1 {
		t.Fatalf("%d archives of two have several objects", n)
	}
	collection := jobs.Collection{Store: w.store, Log: slog.New(slog.DiscardHandler), Trace: func(string) {}}
	if err := collection.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.verified()
	w.used(asleep)
	w.same(asleep, session.OpenAIChat, bodies)
	w.restored(large)
	w.same(large, session.OpenAIChat, long)
	w.verified()
	w.eventually("only objects with chunks are left", func() bool {
		names := namesIn(w, w.store.ResultStores().Outside[persist.File])
		return len(names) == w.count("(SELECT DISTINCT object FROM result_chunks WHERE object IS NOT NULL) o")
	})
}
