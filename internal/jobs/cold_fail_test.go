package jobs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
)

// TestAStoreThatIsAwayKeepsSessionsColdAndOthersHot stops the store.
func TestAStoreThatIsAwayKeepsSessionsColdAndOthersHot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inStore(persist.S3)
	at, bodies := w.archivable("s")
	hot, _ := w.archivable("hot")
	_, stop := w.work(jobs.Config{})
	w.offloaded()
	was, hotWas := w.served(at), w.view(hot)
	w.frozen(at)
	w.used(hot)
	stop()
	comesBack := w.storeGoesAway()
	place, err := w.store.PlaceOf(t.Context(), at)
	if err != nil || !place.Cold {
		t.Fatal(place, err)
	}
	for range 2 { // it is cold again after the first
		err = w.thawer().Use(t.Context(), session.Key{Tenant: at.Tenant, Key: place.Key})
		if !errors.Is(err, session.ErrThawing) || !errors.Is(err, session.ErrResultStore) {
			t.Errorf("%v", err)
		}
	}
	if got := w.view(hot); !slices.EqualFunc(got, hotWas, bytes.Equal) {
		t.Errorf("the view of a hot session has %d messages, and had %d", len(got), len(hotWas))
	}
	comesBack()
	if got := w.served(at); got != was {
		t.Errorf("it was %s, and is %s", was, got)
	}
	w.same(at, session.OpenAIChat, bodies)
}

// TestAThawThatItsWorkerCannotEndIsTriedByTheNextRequest has a worker take over while the store is away.
func TestAThawThatItsWorkerCannotEndIsTriedByTheNextRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inStore(persist.S3)
	at, bodies := w.archivable("s")
	_, stop := w.work(jobs.Config{})
	w.offloaded()
	was := w.served(at)
	w.frozen(at)
	stop()
	w.cut(at, 0)
	comesBack := w.storeGoesAway()
	w.asOwner(`UPDATE river_job SET state = 'available', scheduled_at = now() WHERE kind = 'archive' AND state = 'scheduled'`)
	w.work(jobs.Config{})
	w.drained("session_archives WHERE state <> 'archived' OR error IS NULL")
	comesBack()
	if got := w.served(at); got != was {
		t.Errorf("it was %s, and is %s", was, got)
	}
	w.same(at, session.OpenAIChat, bodies)
}

// TestAThawThatNobodyGoesOnWithIsTakenOver has nothing restore the session whose thaw was begun.
func TestAThawThatNobodyGoesOnWithIsTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at, bodies := w.archivable("s")
	_, stop := w.work(jobs.Config{})
	w.offloaded()
	w.frozen(at)
	stop()
	place, err := w.store.PlaceOf(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	key := session.Key{Tenant: at.Tenant, Key: place.Key}
	begun, err := tier.BeginThaw(t.Context(), w.store, key, true)
	if err != nil || begun.Archive == uuid.Nil {
		t.Fatal(begun, err)
	}
	if found, err := tier.BeginThaw(t.Context(), w.store, key, true); err != nil || !found.Wait {
		t.Errorf("a thaw that was begun is begun again: %+v, %v", found, err)
	}
	w.asOwner(`UPDATE river_job SET state = 'available', scheduled_at = now() WHERE kind = 'archive' AND state = 'scheduled'`)
	w.work(jobs.Config{})
	w.drained("sessions WHERE frozen_at IS NOT NULL AND id = '" + at.ID + "'")
	w.same(at, session.OpenAIChat, bodies)
}

// TestADamagedColdSessionSaysThatItIsDamaged, and not that it comes back later.
func TestADamagedColdSessionSaysThatItIsDamaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at, _ := w.archivable("s")
	w.work(jobs.Config{})
	w.offloaded()
	w.frozen(at)
	place, err := w.store.PlaceOf(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	w.asOwner(`UPDATE archive_parts SET body = set_byte(body, 20, get_byte(body, 20) # 1)`)
	for range 2 { // it is cold again after the first
		err = w.thawer().Use(t.Context(), session.Key{Tenant: at.Tenant, Key: place.Key})
		if !errors.Is(err, session.ErrDamaged) || errors.Is(err, session.ErrThawing) {
			t.Errorf("%v", err)
		}
	}
}

// TestAThawThatFailsKeepsNoOtherSessionFromFreezing: only archives that cannot be made say that their store is away.
func TestAThawThatFailsKeepsNoOtherSessionFromFreezing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at, _ := w.archivable("s")
	w.archivable("old")
	_, stop := w.work(jobs.Config{})
	w.offloaded()
	w.frozen(at)
	stop()
	w.cut(at, 0)
	w.asOwner(`UPDATE river_job SET state = 'retryable', attempted_at = now(), scheduled_at = now() + interval '1 hour' WHERE kind = 'archive' AND state = 'scheduled'`)
	w.inTenant(`UPDATE sessions SET last_append_at = now() - interval '2 hours' WHERE id = $1`, "old")
	w.asOwner(`UPDATE usage_sessions SET appended_at = now() - interval '2 hours'`)
	w.work(jobs.Config{SweepEvery: 50 * time.Millisecond, ColdAfter: time.Hour})
	w.drained("sessions WHERE id = 'old' AND frozen_at IS NULL")
}

// away is a store that does not answer.
type away struct{ object.Store }

func (away) Get(context.Context, string, int64, int) ([]byte, error) {
	return nil, fmt.Errorf("%w: it is away", session.ErrResultStore)
}

// storeGoesAway has the S3 store of a world not answer, until the function that it returns is called.
func (w *world) storeGoesAway() (comesBack func()) {
	w.Helper()
	stores := *w.store.ResultStores()
	w.store.UseResultStores(persist.Stores{New: persist.S3, Outside: map[persist.Kind]object.Store{persist.S3: away{stores.Outside[persist.S3]}}})
	return func() { w.store.UseResultStores(stores) }
}
