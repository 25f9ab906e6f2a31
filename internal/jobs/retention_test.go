package jobs_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/erasure"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// day is a retention of one day.
var day = session.Retention{IdleSeconds: new(int64(24 * 60 * 60))}

// aged makes a session that was created and last appended to some hours ago. With no messages it was never appended to.
func (w *world) aged(id string, created, appended int, bodies ...[]byte) session.Address {
	w.Helper()
	at := w.session(id)
	if len(bodies) > 0 {
		w.append(at, bodies...)
	}
	w.inTenant(fmt.Sprintf(`
		UPDATE sessions
		   SET created_at = now() - interval '%d hours',
		       last_append_at = CASE WHEN last_seq > 0 THEN now() - interval '%d hours' END
		 WHERE id = '%s'`, created, appended, id))
	if err := w.store.CountUsage(w.Context(), w.tenant, []session.Reading{{Session: id}}); err != nil {
		w.Fatal(err)
	}
	return at
}

// retain changes the retention of the tenant, and of a session if it is named.
func (w *world) retain(tenant session.Retention, own ...session.Address) {
	w.Helper()
	for _, at := range own {
		if _, _, err := w.store.Update(w.Context(), at, session.Change{Retention: &tenant}, nil); err != nil {
			w.Fatal(err)
		}
	}
	if len(own) == 0 {
		if _, err := w.store.SetRetention(w.Context(), w.tenant, tenant); err != nil {
			w.Fatal(err)
		}
	}
}

// ids returns the ids of all sessions, in order.
func (w *world) ids() (ids []string) {
	w.Helper()
	found, err := w.store.Sessions(w.Context(), w.tenant, session.Page{Limit: 100})
	if err != nil {
		w.Fatal(err)
	}
	for i := range found {
		ids = append(ids, found[i].ID)
	}
	slices.Sort(ids)
	return ids
}

// expired waits for the end of an erasure of expired sessions, and returns it with its receipt.
func (w *world) expired() (session.Erasure, session.Receipt) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); w.count("erasures WHERE kind = 'retention' AND state = 'done'") == 0; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.Fatal("no erasure of expired sessions has ended")
		}
	}
	list, err := erasure.List(w.Context(), w.store, w.tenant, session.Page{Limit: 10})
	if err != nil {
		w.Fatal(err)
	}
	i := slices.IndexFunc(list, func(e session.Erasure) bool { return e.Kind == session.ErasureOfExpired })
	return w.ended(w.tenant, list[i].ID)
}

// TestWhatHasExpiredIsErased has sessions of each kind, and lets a worker look.
func TestWhatHasExpiredIsErased(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inFiles()
	w.aged("idle", 100, 30, named("quagga", 20)...)
	w.aged("never used", 30, 0)
	w.aged("young", 20, 20, turn(1, 100)...)
	w.aged("used", 1000, 20, turn(1, 100)...)
	w.retain(session.Retention{}, w.aged("its own is never", 1000, 1000, turn(1, 100)...))
	w.retain(session.Retention{AgeSeconds: new(int64(3600))}, w.aged("its own is an hour", 2, 1, turn(1, 100)...))
	w.retain(session.Retention{IdleSeconds: new(int64(3600))}, w.aged("its own is not over", 1, 0, turn(1, 100)...))
	held := w.aged("held", 1000, 1000, turn(1, 100)...)
	if _, err := erasure.HoldSession(t.Context(), w.store, held, "a case"); err != nil {
		t.Fatal(err)
	}
	fork := w.fork(session.Address{Tenant: w.tenant, ID: "idle"}, "fork", 10)
	w.inTenant(`UPDATE sessions SET last_append_at = now() WHERE id = 'fork'`)
	would, err := w.store.ExpiredBy(t.Context(), w.tenant, &day)
	if err != nil || would.Expired != 3 || would.Held != 1 || !slices.Equal(would.Sessions, []string{"idle", "never used", "its own is an hour"}) {
		t.Fatalf("a preview says %+v, %v", would, err)
	}
	w.retain(day)
	w.work(jobs.Config{})
	done, _ := w.expired()
	if len(done.Held) != 0 {
		t.Errorf("%+v", done)
	}
	if got := w.ids(); !slices.Equal(got, []string{"fork", "held", "its own is never", "its own is not over", "used", "young"}) {
		t.Errorf("%q are there", got)
	}
	w.whole(fork, named("quagga", 20)[:10])
}

// TestAnErasureOfExpiredSessionsHasAReceipt reads it, and what the trail says.
func TestAnErasureOfExpiredSessionsHasAReceipt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.inFiles()
	w.aged("a", 100, 30, named("quagga", 20)...)
	w.aged("b", 100, 30, turn(1, 100)...)
	w.retain(day)
	w.work(jobs.Config{BackupsKept: time.Hour})
	_, said := w.expired()
	if said.Kind != "retention" || said.By.Actor != string(audit.ByVarve) || said.Erased.Sessions != 2 || len(said.Sessions) != 2 ||
		said.Backups.GoneBy == nil || said.Erased.Messages < 20 {
		t.Errorf("the receipt says %+v", said)
	}
	rows, err := w.store.Trail(t.Context(), w.tenant, postgres.TrailFilter{Action: audit.SessionExpire, Limit: 10})
	if err != nil || len(rows) != 2 || rows[0].Actor != audit.ByVarve {
		t.Errorf("%+v, %v", rows, err)
	}
	if left := w.traces("quagga", dir); len(left) > 0 {
		t.Errorf("an expired session is still in %q", left)
	}
	w.verified()
}

// TestAnAppendKeepsWhatWasToExpire appends, holds, or changes the retention between the look and the deletion.
func TestAnAppendKeepsWhatWasToExpire(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *world, at session.Address){
		"append": func(w *world, at session.Address) { w.append(at, turn(2, 100)...) },
		"hold": func(w *world, at session.Address) {
			if _, err := erasure.HoldSession(w.Context(), w.store, at, "a case"); err != nil {
				w.Fatal(err)
			}
		},
		"retention": func(w *world, at session.Address) { w.retain(session.Retention{}) },
		"own":       func(w *world, at session.Address) { w.retain(session.Retention{}, at) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			at := w.aged("a", 100, 30, turn(1, 100)...)
			w.retain(day)
			if begun, err := w.store.EraseExpired(t.Context(), w.tenant); !begun || err != nil {
				t.Fatal(begun, err)
			}
			list, err := erasure.List(t.Context(), w.store, w.tenant, session.Page{Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			work, err := erasure.Start(t.Context(), w.store, w.tenant, list[0].ID)
			if err != nil {
				t.Fatal(err)
			}
			found, err := work.Next(t.Context(), 10)
			if err != nil || len(found) != 1 {
				t.Fatal(found, err)
			}
			change(w, at)
			if err := work.Erase(t.Context(), found[0]); err != nil {
				t.Fatal(err)
			}
			if got := w.ids(); !slices.Equal(got, []string{"a"}) {
				t.Fatal("the session is gone")
			}
			w.work(jobs.Config{})
			if done, _ := w.ended(w.tenant, work.ID); done.Sessions != 0 {
				t.Errorf("%+v", done)
			}
		})
	}
}

// TestAHeldTenantsSessionsDoNotExpire also lifts the hold.
func TestAHeldTenantsSessionsDoNotExpire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.aged("a", 100, 30, turn(1, 100)...)
	w.retain(day)
	if _, err := erasure.HoldTenant(t.Context(), w.store, w.tenant, "a case"); err != nil {
		t.Fatal(err)
	}
	if begun, err := w.store.EraseExpired(t.Context(), w.tenant); begun || err != nil {
		t.Fatal(begun, err)
	}
	if would, err := w.store.ExpiredBy(t.Context(), w.tenant, &day); err != nil || would.Expired != 0 || would.Held != 1 {
		t.Errorf("a preview says %+v, %v", would, err)
	}
	if err := erasure.ReleaseTenant(t.Context(), w.store, w.tenant); err != nil {
		t.Fatal(err)
	}
	if begun, err := w.store.EraseExpired(t.Context(), w.tenant); !begun || err != nil {
		t.Fatal(begun, err)
	}
}

// TestAHeldSessionAloneBeginsNoErasure: each look would otherwise sign a receipt for nothing.
func TestAHeldSessionAloneBeginsNoErasure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.aged("a", 100, 30, turn(1, 100)...)
	w.retain(day)
	if _, err := erasure.HoldSession(t.Context(), w.store, session.Address{Tenant: w.tenant, ID: "a"}, "a case"); err != nil {
		t.Fatal(err)
	}
	if begun, err := w.store.EraseExpired(t.Context(), w.tenant); begun || err != nil {
		t.Error(begun, err)
	}
}

// TestAnErasureOfExpiredSessionsIsFinishedWhereverItIsKilled kills a worker after each step, and lets another go on.
func TestAnErasureOfExpiredSessionsIsFinishedWhereverItIsKilled(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"session erased", "objects of a session erased", "erasure finished"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for n := range 3 {
				w.aged(fmt.Sprint("s", n), 100, 30, turn(n, 100)...)
			}
			w.retain(day)
			if begun, err := w.store.EraseExpired(t.Context(), w.tenant); !begun || err != nil {
				t.Fatal(begun, err)
			}
			w.kill(step)
			w.work(jobs.Config{Beat: beat})
			if _, said := w.expired(); said.Erased.Sessions != 3 || len(said.Sessions) != 3 {
				t.Errorf("the receipt says %+v", said)
			}
		})
	}
}

// TestABoundOfOperatorsErasesWhatIsKeptLonger has a session that is kept for ever, one that its own retention keeps for
// longer than the bound, and a younger one.
func TestABoundOfOperatorsErasesWhatIsKeptLonger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.aged("for ever", 100, 30, turn(1, 100)...)
	w.retain(session.Retention{}, w.aged("its own is never", 100, 30, turn(1, 100)...))
	w.retain(session.Retention{IdleSeconds: new(int64(360_000))}, w.aged("its own is long", 100, 30, turn(1, 100)...))
	w.aged("young", 20, 20, turn(1, 100)...)
	bound := session.TenantChange{MostKept: &session.RetentionBound{IdleSeconds: day.IdleSeconds}}
	if _, err := w.store.ChangeTenant(t.Context(), w.tenant, bound); err != nil {
		t.Fatal(err)
	}
	long := session.Retention{IdleSeconds: new(int64(360_000))}
	if would, err := w.store.ExpiredBy(t.Context(), w.tenant, &long); err != nil || would.Expired != 3 {
		t.Errorf("a preview of a longer one says %+v, %v", would, err)
	}
	w.work(jobs.Config{})
	w.expired()
	if got := w.ids(); !slices.Equal(got, []string{"young"}) {
		t.Errorf("%q are there", got)
	}
}
