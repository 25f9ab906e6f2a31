package jobs_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/persist/object/s3test"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
)

// newWorldOfPacks returns a world whose archives go to a bucket, which has a directory besides, and whose worker packs
// nothing: the test does.
func newWorldOfPacks(t *testing.T) (w *world, dir string) {
	t.Helper()
	w = newWorld(t)
	dir = t.TempDir()
	files, err := object.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := object.OpenBucket(s3test.New(t).BucketConfig)
	if err != nil {
		t.Fatal(err)
	}
	w.store.UseResultStores(persist.Stores{Archives: new(persist.S3), Outside: map[persist.Kind]object.Store{
		persist.File: files, persist.S3: bucket,
	}})
	if err := w.store.CheckResultStores(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w, dir
}

func (w *world) sessionKey(at session.Address) session.Key {
	w.Helper()
	found, err := w.store.PlaceOf(w.Context(), at)
	if err != nil {
		w.Fatal(err)
	}
	return session.Key{Tenant: at.Tenant, Key: found.Key}
}

// pack packs a session once it is compacted.
func (w *world) pack(at session.Address, trace func(step string)) error {
	w.Helper()
	w.settled()
	o := tier.Packer{
		Store: w.store, Log: slog.New(slog.DiscardHandler), Trace: trace, Slice: time.Hour,
	}
	_, err := o.Session(w.Context(), w.sessionKey(at), 0)
	return err
}

func (w *world) settled() {
	w.Helper()
	w.drained("river_job WHERE kind IN ('compact', 'recompact') AND finalized_at IS NULL")
}

func (w *world) mustPack(at session.Address) {
	w.Helper()
	if err := w.pack(at, func(string) {}); err != nil {
		w.Fatal(err)
	}
}

// objects returns the names of the objects of sessions in all stores.
func (w *world) objects() (names []string) {
	w.Helper()
	for _, store := range w.store.ResultStores().Outside {
		names = append(names, namesIn(w, store)...)
	}
	slices.Sort(names)
	return names
}

func (w *world) collected() {
	w.Helper()
	c := jobs.Collection{Store: w.store, Log: slog.New(slog.DiscardHandler), Trace: func(string) {}}
	if err := c.Run(w.Context()); err != nil {
		w.Fatal(err)
	}
}
