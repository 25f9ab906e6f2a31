package jobs_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/erasure"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
)

// thawer returns what brings cold sessions back.
func (w *world) thawer() *tier.Thawer {
	return &tier.Thawer{Store: w.store, Log: slog.New(slog.DiscardHandler), Wait: patience}
}

// freezing begins to freeze a session at once.
func (w *world) freezing(at session.Address) {
	w.Helper()
	if err := w.store.CountUsage(w.Context(), at.Tenant, []session.Reading{{Session: at.ID}}); err != nil {
		w.Fatal(err)
	}
	w.eventually("the session sleeps: "+at.ID, func() bool {
		if _, err := tier.FreezeSleeping(w.Context(), w.store, at.Tenant, 0, 100); err != nil {
			w.Fatal(err)
		}
		return w.count("sessions WHERE frozen_at IS NOT NULL AND id = '"+at.ID+"'") == 1
	})
}

// frozen freezes a session and waits until that is done.
func (w *world) frozen(at session.Address) {
	w.Helper()
	w.freezing(at)
	w.drained("session_archives a JOIN sessions s ON s.key = a.session_key WHERE a.state <> 'archived' AND s.id = '" + at.ID + "'")
}

func (w *world) eventually(what string, isSo func() bool) {
	w.Helper()
	for end := time.Now().Add(patience); !isSo(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatal("not so: " + what)
		}
	}
}

// used brings a session back if it is cold, as the API does.
func (w *world) used(at session.Address) {
	w.Helper()
	place, err := w.store.PlaceOf(w.Context(), at)
	if err == nil && place.Cold {
		err = w.thawer().Use(w.Context(), session.Key{Tenant: at.Tenant, Key: place.Key})
	}
	if err != nil {
		w.Fatal(err)
	}
}

// shown returns all of a view that readers are shown.
func shown(v *postgres.View) string {
	return fmt.Sprintf("%+v %s %s %d %d %d %d %d %x %q %q %q %q %q %x", v.Version, v.Format, v.Model, v.Through, v.Tokens, v.Window, v.Room,
		v.Pinned, v.Body, v.System, v.SystemShapes, v.Tail, v.TailShapes, v.OpenCalls, v.Units)
}

// served returns what reads of a session say: the digest of its view with the view's version, and of its messages.
func (w *world) served(at session.Address) string {
	w.Helper()
	var cold postgres.View
	err := w.store.ViewInto(w.Context(), at, postgres.ViewRead{}, &cold)
	w.used(at)
	view, found := w.store.View(w.Context(), at, postgres.Version{})
	if found != nil {
		w.Fatal(found)
	}
	if err == nil && shown(&cold) != shown(&view) {
		w.Fatalf("the view of %s, from an archive %t, was\n%s\nand is\n%s", at.ID, cold.Cold, shown(&cold), shown(&view))
	}
	if cold.Cold {
		w.coldViews++
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%+v %d %d %x %s", view.Version, view.Through, view.Tokens, view.Body, view.Tail)
	log, list, err := w.store.Messages(w.Context(), at, postgres.Range{Removed: true, Limit: 1_000_000})
	if err != nil {
		w.Fatal(err)
	}
	for i := range list {
		fmt.Fprintf(sum, "%d %s %s", list[i].Seq, list[i].CreatedAt, list[i].Body)
	}
	return fmt.Sprintf("%x of %d messages", sum.Sum(nil)[:8], log.LastSeq)
}

// cut begins to bring a cold session back and stops after a number of steps, as a process does that is killed.
func (w *world) cut(at session.Address, steps int) {
	w.Helper()
	place, err := w.store.PlaceOf(w.Context(), at)
	if err != nil {
		w.Fatal(err)
	}
	key := session.Key{Tenant: at.Tenant, Key: place.Key}
	found, err := tier.BeginThaw(w.Context(), w.store, key, true)
	if err != nil || found.Archive == uuid.Nil || steps == 0 {
		w.Log("a thaw is cut at its beginning", err)
		return
	}
	work, err := tier.Start(w.Context(), w.store, key, found.Archive, true)
	if err == nil && steps > 1 {
		_, _, err = work.EachPart(w.Context(), func(body []byte) error {
			return work.RestorePart(w.Context(), body)
		})
	}
	if err != nil {
		w.Log("a worker was first:", err)
	}
}

// stumbling starts a worker that fails the first and then each third time that it comes to one of these steps, and tries
// again at once. It returns how often it has come to a step.
func (w *world) stumbling(steps ...string) (came func(step string) int) {
	w.Helper()
	w.atOnce()
	var mu sync.Mutex
	times := map[string]int{}
	w.work(jobs.Config{Log: slog.New(slog.DiscardHandler), Trace: func(step string) {
		mu.Lock()
		times[step]++
		fails := times[step]%3 == 1
		mu.Unlock()
		if fails && slices.Contains(steps, step) {
			panic("the worker fails at " + step)
		}
	}})
	return func(step string) int {
		mu.Lock()
		defer mu.Unlock()
		return times[step]
	}
}

// noObjectIsLeft collects, and requires that no session has objects in any store.
func (w *world) noObjectIsLeft() {
	w.Helper()
	collection := jobs.Collection{Store: w.store, Log: slog.New(slog.DiscardHandler), Trace: func(string) {}}
	if err := collection.Run(w.Context()); err != nil {
		w.Fatal(err)
	}
	for _, store := range w.store.ResultStores().Outside {
		if names := namesIn(w, store); len(names) > 0 {
			w.Errorf("objects are left: %q", names)
		}
	}
}

// TestASessionIsColdAndBackWhateverIsKilled plays random histories in each store, in which workers fail at every step
// and thaws are cut, and compares what is read with what was read of the hot session.
func TestASessionIsColdAndBackWhateverIsKilled(t *testing.T) {
	t.Parallel()
	kinds := []persist.Kind{persist.File, persist.Postgres, persist.S3}
	if testing.Short() {
		kinds = kinds[:1] // that of archives has the other
	}
	inStores(t, kinds, func(t *testing.T, w *world, kind persist.Kind) {
		w.stumbling("archive begun", "part added", "archive checked", "session archived", "part restored", "session restored")
		random := rand.New(rand.NewPCG(17, uint64(len(kind.String()))))
		ats, logs, want := []session.Address{w.session("a"), w.session("b")}, [][][]byte{nil, nil}, []string{"", ""}
		for i := range ats {
			logs[i] = turns(30, 1500)
			w.appendLog(ats[i], session.OpenAIChat, logs[i])
		}
		fork := w.fork(ats[0], "fork", 30)
		w.offloaded()
		for range 8 {
			i := random.IntN(len(ats))
			at := ats[i]
			want[i] = w.served(at)
			switch n := random.IntN(6); n {
			case 0:
				w.freezing(at) // it is used before it is frozen, or after
			case 1, 2, 3:
				w.frozen(at)
				w.cut(at, n-1)
			case 4:
				w.frozen(at)
				w.verified()
			case 5:
				more := turn(100+len(logs[i]), 1500)
				logs[i] = append(logs[i], more...)
				w.appendLog(at, session.OpenAIChat, more)
				w.offloaded()
				continue
			}
			if got := w.served(at); got != want[i] {
				t.Fatalf("%s was %s, and is %s", at.ID, want[i], got)
			}
		}
		for i, at := range ats {
			want[i] = w.served(at)
			w.frozen(at)
			if got := w.served(at); got != want[i] {
				t.Errorf("%s was %s, and is %s", at.ID, want[i], got)
			}
			w.whole(at, logs[i])
		}
		if (w.coldViews > 0) != (kind != persist.Postgres) {
			t.Errorf("%d views were read from archives", w.coldViews)
		}
		w.used(fork)
		w.whole(fork, logs[0][:30])
		w.verified()
		w.frozen(ats[0])
		for _, at := range ats {
			if _, err := w.store.Delete(t.Context(), at, nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.store.Delete(t.Context(), fork, nil); err != nil {
			t.Fatal(err)
		}
		w.drained("erasures WHERE state <> 'done'")
		w.drained("river_job WHERE kind = 'archive' AND state <> 'scheduled' AND finalized_at IS NULL")
		w.noObjectIsLeft()
	})
}

// TestASessionIsFrozenWhereverItsWorkerIsKilled kills a worker at each step, and reads before another has gone on.
func TestASessionIsFrozenWhereverItsWorkerIsKilled(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"archive begun", "part added", "archive checked", "session archived"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			at, bodies := w.archivable("s")
			_, stop := w.work(jobs.Config{})
			w.offloaded()
			stop()
			before, was := w.allRows(at), w.served(at)
			w.freezing(at)
			w.kill(step)
			w.verified()
			if got := w.served(at); got != was {
				t.Errorf("it was %s, and is %s", was, got)
			}
			w.sameRows(step, before, w.allRows(at))
			w.work(jobs.Config{Beat: beat})
			w.frozen(at)
			w.used(at)
			w.same(at, session.OpenAIChat, bodies)
			w.sameRows(step, before, w.allRows(at))
			w.verified()
		})
	}
}

// TestSleepingSessionsAreFrozenByThePolicy has sessions of two tenants that have slept, and some that must not be frozen.
func TestSleepingSessionsAreFrozenByThePolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, bodies := w.archivable("old")
	held, _ := w.archivable("held")
	w.archivable("young")
	if _, err := erasure.HoldSession(t.Context(), w.store, held, "a case"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"old", "held"} {
		w.inTenant(`UPDATE sessions SET last_append_at = now() - interval '2 hours' WHERE id = $1`, id)
	}
	w.work(jobs.Config{SweepEvery: 50 * time.Millisecond, ColdAfter: time.Hour})
	w.drained("sessions s LEFT JOIN session_archives a ON a.session_key = s.key AND a.state = 'archived' WHERE s.id = 'old' AND a.id IS NULL")
	w.used(old)
	time.Sleep(300 * time.Millisecond) // some sweeps
	if n := w.count("sessions WHERE frozen_at IS NOT NULL"); n > 0 {
		t.Errorf("%d sessions are cold: one was used just now, one is held, one is young", n)
	}
	w.same(old, session.OpenAIChat, bodies)
	if n := w.count("audit_trail WHERE action IN ('session.archive', 'session.unarchive')"); n > 0 {
		t.Errorf("the trail has %d archives", n)
	}
	w.inTenant(`UPDATE usage_sessions u SET thawed_at = now() - interval '2 hours', back_at = now() - interval '11 minutes' FROM sessions s WHERE s.key = u.session_key AND s.id = 'old'`)
	w.drained("sessions WHERE id = 'old' AND frozen_at IS NULL")
}

// TestAnExpiredColdSessionIsArchivedOrErased has a retention that archives, and then one that erases.
func TestAnExpiredColdSessionIsArchivedOrErased(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, bodies := w.archivable("a")
	b, _ := w.archivable("b")
	w.work(jobs.Config{RetainEvery: time.Nanosecond, SweepEvery: 50 * time.Millisecond})
	w.offloaded()
	for _, at := range []session.Address{a, b} {
		w.frozen(at)
	}
	if _, _, err := w.store.Update(t.Context(), b, session.Change{Retention: &session.Retention{}}, nil); err == nil {
		t.Error("a cold session is changed, and is not brought back")
	}
	w.used(b)
	if _, _, err := w.store.Update(t.Context(), b, session.Change{Retention: &session.Retention{}}, nil); err != nil {
		t.Fatal(err)
	}
	w.frozen(b)
	w.asOwner(`UPDATE sessions SET created_at = now() - interval '1 day', last_append_at = now() - interval '2 hours' WHERE id = $1`, "a")
	w.asOwner(`UPDATE usage_sessions SET appended_at = now() - interval '2 hours'`)
	if _, err := w.store.SetRetention(t.Context(), w.tenant, session.Retention{IdleSeconds: new(int64(3600)), Then: session.ThenArchive}); err != nil {
		t.Fatal(err)
	}
	w.drained("sessions WHERE id = 'a' AND NOT archived")
	made := w.archiveIn(a, session.Archived)
	if made.Messages != int64(len(bodies)) {
		t.Errorf("the archive has %+v", made)
	}
	if n := w.count("sessions WHERE frozen_at IS NOT NULL AND NOT archived"); n != 1 {
		t.Errorf("%d sessions are cold", n)
	}
	w.restored(a)
	w.same(a, session.OpenAIChat, bodies)
	w.frozen(a)
	w.asOwner(`UPDATE sessions SET last_append_at = now() - interval '2 hours', restored_at = NULL WHERE id = $1`, "a")
	if _, err := w.store.SetRetention(t.Context(), w.tenant, session.Retention{IdleSeconds: new(int64(3600))}); err != nil {
		t.Fatal(err)
	}
	w.drained("sessions WHERE id = 'a'")
	w.drained("erasures WHERE state <> 'done'")
	w.verified()
}

// TestASessionThatWorkBroughtBackIsLeftForAMoment: a request that found it cold meanwhile sees that it is back, and it is
// not frozen again before the work has ended.
func TestASessionThatWorkBroughtBackIsLeftForAMoment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at, _ := w.archivable("s")
	w.work(jobs.Config{})
	w.offloaded()
	w.frozen(at)
	place, err := w.store.PlaceOf(t.Context(), at)
	if err != nil || !place.Cold {
		t.Fatal(place, err)
	}
	if err := w.thawer().Read(t.Context(), session.Key{Tenant: at.Tenant, Key: place.Key}); err != nil {
		t.Fatal(err)
	}
	if place, err = w.store.PlaceOf(t.Context(), at); err != nil || place.Cold || !place.Thawed {
		t.Errorf("%+v, %v", place, err)
	}
	w.asOwner(`UPDATE sessions SET last_append_at = now() - interval '2 hours'`)
	w.asOwner(`UPDATE usage_sessions SET appended_at = now() - interval '2 hours'`)
	if n, err := tier.FreezeSleeping(t.Context(), w.store, w.tenant, time.Hour, 10); n != 0 || err != nil {
		t.Errorf("%d sessions are frozen, %v", n, err)
	}
	w.asOwner(`UPDATE usage_sessions SET back_at = now() - interval '11 minutes', read_at = now()`)
	if n, err := tier.FreezeSleeping(t.Context(), w.store, w.tenant, time.Hour, 10); n != 0 || err != nil {
		t.Errorf("%d sessions are frozen that were read, %v", n, err)
	}
	w.asOwner(`UPDATE usage_sessions SET read_at = now() - interval '2 hours'`)
	if n, err := tier.FreezeSleeping(t.Context(), w.store, w.tenant, time.Hour, 10); n != 1 || err != nil {
		t.Errorf("%d sessions are frozen, %v", n, err)
	}
}

// TestAnArchiveThatIsAskedForWhileTheSessionFreezesIsTold asks between the steps of the worker.
func TestAnArchiveThatIsAskedForWhileTheSessionFreezesIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at, _ := w.archivable("s")
	_, stop := w.work(jobs.Config{})
	w.offloaded()
	stop()
	w.freezing(at)
	var once sync.Once
	w.work(jobs.Config{Trace: func(step string) {
		if step == "part added" {
			once.Do(func() {
				if _, _, err := tier.Archive(context.Background(), w.store, at, nil); err != nil {
					t.Error(err)
				}
			})
		}
	}})
	w.drained("session_archives WHERE state <> 'archived'")
	if n := w.count("events WHERE type = 'session.archived'"); n != 1 {
		t.Errorf("%d events say that the session is archived", n)
	}
}

func namesIn(t testing.TB, store object.Store) (names []string) {
	t.Helper()
	for info, err := range store.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if _, _, ok := persist.ObjectOf(info.Name); ok { // the mark of the store is no session's
			names = append(names, info.Name)
		}
	}
	return names
}
