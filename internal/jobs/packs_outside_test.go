//go:build !race

package jobs_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/offload"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/persist/object/s3test"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// all has all packs go outside.
const all = -1

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

// pack packs a session once it is compacted. Packs that are behind the newest message by a number go outside.
func (w *world) pack(at session.Address, behind int64, trace func(step string)) error {
	w.Helper()
	w.settled()
	o := offload.Offloader{
		Store: w.store, Log: slog.New(slog.DiscardHandler), Trace: trace, Slice: time.Hour, Behind: behind,
	}
	_, err := o.Session(w.Context(), w.sessionKey(at), 0)
	return err
}

func (w *world) settled() {
	w.Helper()
	w.drained("river_job WHERE kind IN ('compact', 'recompact') AND finalized_at IS NULL")
}

func (w *world) mustPack(at session.Address, behind int64) {
	w.Helper()
	if err := w.pack(at, behind, func(string) {}); err != nil {
		w.Fatal(err)
	}
}

// compacted appends to a session, reads its view and compacts it a number of times, so that no checkpoint of before is
// kept after eleven. It returns what it has appended.
func (w *world) compacted(at session.Address, times int) (bodies [][]byte) {
	w.Helper()
	for n := range times {
		more := append(turn(1000+n, 1500), turn(2000+n, 1500)...)
		w.appendLog(at, session.OpenAIChat, more)
		if _, err := w.store.View(w.Context(), at, postgres.Version{}); err != nil {
			w.Fatal(err)
		}
		if _, _, err := w.store.Compact(w.Context(), at, nil); err != nil {
			w.Fatal(err)
		}
		w.settled()
		bodies = append(bodies, more...)
	}
	return bodies
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

// namedObjects returns the names of the objects that rows of packs name.
func (w *world) namedObjects() []string {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.dsn)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(w.Context()))
	rows, _ := conn.Query(w.Context(), `
		SELECT DISTINCT tenant_id || '/' || coalesce(objects_in, session_key) || '/' || object
		  FROM message_packs
		 WHERE object IS NOT NULL
		 ORDER BY 1`)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.Fatal(err)
	}
	return names
}

// tidy requires that the stores have the objects that packs and results name, and no others.
func (w *world) tidy() {
	w.Helper()
	named := w.count("(SELECT object FROM message_packs UNION SELECT object FROM result_chunks) o WHERE object IS NOT NULL")
	have := w.objects()
	for _, name := range w.namedObjects() {
		if !slices.Contains(have, name) {
			w.Errorf("there is no object %s, which a pack names", name)
		}
	}
	if len(have) != named {
		w.Errorf("the stores have %d objects, and rows name %d", len(have), named)
	}
}

func (w *world) collected() {
	w.Helper()
	c := jobs.Collection{Store: w.store, Log: slog.New(slog.DiscardHandler), Trace: func(string) {}}
	if err := c.Run(w.Context()); err != nil {
		w.Fatal(err)
	}
}

func (w *world) moved(to persist.Kind) (packs int) {
	w.Helper()
	err := w.store.MoveResults(w.Context(), postgres.ResultMove{
		Tenant: w.tenant, To: to,
		Each: func(body persist.Movable, _ int64, err error) {
			if err != nil {
				w.Errorf("body %s: %v", body.ID, err)
			}
		},
		EachPack: func(pack postgres.MovablePack, stored int64, err error) {
			if packs++; err != nil || stored == 0 {
				w.Errorf("pack %+v: %d bytes, %v", pack, stored, err)
			}
		},
	})
	if err != nil {
		w.Fatal(err)
	}
	return packs
}

// TestPacksOutsideAnswerWhatThoseInRowsDid reads a session before and after its packs leave PostgreSQL, get others, are
// moved between the stores, and come back.
func TestPacksOutsideAnswerWhatThoseInRowsDid(t *testing.T) {
	t.Parallel()
	w, _ := newWorldOfPacks(t)
	at, bodies := w.session("s"), turns(16, 1500)
	w.appendLog(at, session.OpenAIChat, bodies)
	w.work(jobs.Config{KeepWhole: true})
	w.mustPack(at, 0)
	inRows := w.count("message_packs")
	before := w.served(at)
	w.frozen(at)
	archived := w.count("session_archives a, generate_series(1, a.stored)")
	w.used(at)
	w.mustPack(at, all)
	if n := w.count("message_packs WHERE object IS NOT NULL AND body IS NULL"); n == 0 || n != inRows {
		t.Fatalf("%d packs of %d are outside", n, inRows)
	}
	w.frozen(at)
	if n := w.count("session_archives a, generate_series(1, a.stored)"); n > archived+100 || n < archived-100 {
		t.Errorf("the archive has %d bytes with packs in rows, and %d with packs outside", archived, n)
	}
	w.used(at)
	w.mustPack(at, all)
	check := func() {
		t.Helper()
		if now := w.served(at); now != before {
			t.Errorf("it was %s, and is %s", before, now)
		}
		w.whole(at, bodies)
		w.tidy()
		w.collected()
		w.tidy()
		w.verified()
	}
	check()
	if w.mustPack(at, all); len(w.namedObjects()) != inRows {
		t.Errorf("%d packs became %d although nothing was to be packed", inRows, len(w.namedObjects()))
	}
	bodies = append(bodies, w.compacted(at, 20)...)
	was := w.namedObjects()
	w.mustPack(at, all)
	now := w.namedObjects()
	if len(now) <= len(was) || slices.ContainsFunc(was, func(name string) bool { return !slices.Contains(now, name) }) {
		t.Errorf("%d packs outside have become %d, which are others", len(was), len(now))
	}
	before = w.served(at)
	check()
	for _, to := range []persist.Kind{persist.File, persist.S3, persist.Postgres} {
		if n := w.moved(to); n != w.count("message_packs") || n == 0 {
			t.Errorf("%d packs moved to %s", n, to)
		}
		check()
		stats, err := w.store.ResultStats(t.Context(), w.tenant, nil)
		i := slices.IndexFunc(stats, func(s persist.Stat) bool { return s.Store == to })
		if err != nil || i < 0 || stats[i].Packs != int64(w.count("message_packs")) || stats[i].PackBytes == 0 {
			t.Errorf("in %s are %+v, %v", to, stats, err)
		}
	}
	w.mustPack(at, all)
	w.frozen(at)
	if n := w.count("message_packs"); n > 0 {
		t.Errorf("%d packs of a cold session", n)
	}
	if now := w.served(at); now != before {
		t.Errorf("it was %s, and is %s after it slept", before, now)
	}
	w.mustPack(at, all)
	check()
	w.erase(at)
	w.tidy()
}

// TestOnlyPacksFarBehindTheNewestMessageLeave has a bound that some packs are behind.
func TestOnlyPacksFarBehindTheNewestMessageLeave(t *testing.T) {
	t.Parallel()
	w, _ := newWorldOfPacks(t)
	at := w.session("s")
	bodies := turns(200, 1500)
	w.appendLog(at, session.OpenAIChat, bodies)
	w.work(jobs.Config{KeepWhole: true}) // its one checkpoint covers more than a pack has
	w.mustPack(at, 0)
	last := w.firsts(at)[1] - 1
	w.mustPack(at, int64(len(bodies))-last)
	if n := w.count(fmt.Sprint("message_packs WHERE (object IS NOT NULL) <> (last_seq <= ", last, ")")); n > 0 {
		t.Errorf("%d packs lie where they should not", n)
	}
	if w.count("message_packs WHERE object IS NULL") == 0 || w.count("message_packs WHERE object IS NOT NULL") == 0 {
		t.Error("all packs lie in one place")
	}
	w.whole(at, bodies)
	w.tidy()
}
