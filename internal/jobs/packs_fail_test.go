//go:build !race

package jobs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/verify"
)

// TestHotSessionsGoOnWhileTheStoreOfTheirPacksIsAway appends, reads the view and compacts.
func TestHotSessionsGoOnWhileTheStoreOfTheirPacksIsAway(t *testing.T) {
	t.Parallel()
	w, _ := newWorldOfPacks(t)
	at := w.session("s")
	bodies := turns(60, 1500)
	w.work(jobs.Config{KeepWhole: true})
	w.appendLog(at, session.OpenAIChat, bodies)
	w.mustPack(at, all)
	stores := *w.store.ResultStores()
	gone := stores
	gone.Outside = map[persist.Kind]object.Store{persist.S3: downStore{stores.Outside[persist.S3]}, persist.File: stores.Outside[persist.File]}
	w.store.UseResultStores(gone)
	checkpoints, packs := w.count("checkpoints"), w.count("message_packs")
	bodies = append(bodies, w.compacted(at, 12)...)
	if w.count("checkpoints") == checkpoints {
		t.Error("nothing was compacted")
	}
	_, _, err := w.store.Messages(t.Context(), at, postgres.Range{Limit: 5})
	if !errors.Is(err, session.ErrResultStore) || errors.Is(err, session.ErrDamaged) {
		t.Errorf("old messages: %v", err)
	}
	if err := w.pack(at, all, func(string) {}); !errors.Is(err, session.ErrResultStore) {
		t.Errorf("packing: %v", err)
	}
	if n := w.count("message_packs"); n != packs {
		t.Errorf("%d packs, and then %d", packs, n)
	}
	w.store.UseResultStores(stores)
	w.mustPack(at, all)
	w.whole(at, bodies)
	w.verified()
	w.tidy()
}

// downStore is a store that does not answer.
type downStore struct{ object.Store }

func (downStore) Get(context.Context, string, int64, int) ([]byte, error) {
	return nil, fmt.Errorf("%w: it is away", session.ErrResultStore)
}

func (downStore) Put(context.Context, string, []byte) error {
	return fmt.Errorf("%w: it is away", session.ErrResultStore)
}

// TestADamagedPackOutsideIsNamedAndNeverServed cuts, changes and deletes objects.
func TestADamagedPackOutsideIsNamedAndNeverServed(t *testing.T) {
	t.Parallel()
	w, dir := newWorldOfPacks(t)
	at, bodies := w.archivable("s")
	w.work(jobs.Config{KeepWhole: true})
	w.mustPack(at, all)
	w.moved(persist.File)
	path := filepath.Join(dir, w.namedObjects()[0])
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(whole)
	changed[40] ^= 255
	for name, damage := range map[string]func() error{
		"cut":     func() error { return os.WriteFile(path, whole[:len(whole)-1], 0o600) },
		"changed": func() error { return os.WriteFile(path, changed, 0o600) },
		"gone":    func() error { return os.Remove(path) },
	} {
		if err := errors.Join(os.Chmod(path, 0o600), damage()); err != nil {
			t.Fatal(err)
		}
		_, _, err := w.store.Messages(t.Context(), at, postgres.Range{Limit: 5})
		if !errors.Is(err, session.ErrDamaged) || errors.Is(err, session.ErrResultStore) {
			t.Errorf("%s: the messages: %v", name, err)
		}
		kinds := []verify.Kind{}
		v := verify.Verifier{Store: w.store}
		tenants, _ := w.store.Tenants(t.Context())
		err = v.Run(t.Context(), verify.Scope{Tenants: tenants}, false, func(_, _ int64, r *verify.Report) error {
			for _, f := range r.Findings {
				kinds = append(kinds, f.Kind)
			}
			return nil
		})
		if err != nil || !slices.Contains(kinds, verify.Pack) {
			t.Errorf("%s: verification finds %q, %v", name, kinds, err)
		}
		if _, err := w.store.MovePack(t.Context(), w.sessionKey(at), w.firsts(at)[0], persist.S3); !errors.Is(err, session.ErrDamaged) {
			t.Errorf("%s: a damaged pack moves: %v", name, err)
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.whole(at, bodies)
	w.verified()
}

// newWorldOfPackedBatch returns a world with a session that has a batch with client ids and more, in packs outside, and
// all its messages.
func newWorldOfPackedBatch(t *testing.T) (w *world, first session.Append, bodies [][]byte) {
	t.Helper()
	w, _ = newWorldOfPacks(t)
	at := w.session("s")
	w.work(jobs.Config{KeepWhole: true})
	bodies = turns(60, 1500)
	first = w.batch(at, bodies[:20]...)
	for i := range first.Messages {
		first.Messages[i].ClientID = fmt.Sprint("c", i)
	}
	if _, _, err := w.store.Append(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	w.appendLog(at, session.OpenAIChat, bodies[20:])
	w.mustPack(at, all)
	return w, first, bodies
}

// TestAnAppendEndsAtAPackOutsideThatIsEmpty sends a batch again whose pack is an object without bytes, of which a bucket
// says that the range does not exist.
func TestAnAppendEndsAtAPackOutsideThatIsEmpty(t *testing.T) {
	t.Parallel()
	w, first, _ := newWorldOfPackedBatch(t)
	for _, name := range w.namedObjects() {
		if err := w.store.ResultStores().Outside[persist.S3].Put(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	if _, _, err := w.store.Append(ctx, first); !errors.Is(err, session.ErrDamaged) {
		t.Errorf("sent again: %v", err)
	}
}

// TestWhatAnAppendLooksForInPacksOutsideIsFound sends a batch again, another with its ids, and an answer whose call is in
// a pack outside, to a store that caps answers.
func TestWhatAnAppendLooksForInPacksOutsideIsFound(t *testing.T) {
	t.Parallel()
	w, first, bodies := newWorldOfPackedBatch(t)
	at := first.Session
	if n := w.count("message_packs WHERE object IS NULL"); n > 0 {
		t.Fatalf("%d packs lie in rows", n)
	}
	if done, _, err := w.store.Append(t.Context(), first); err != nil || !done.Replayed || done.FirstSeq != 1 {
		t.Errorf("sent again: %+v, %v", done, err)
	}
	other := first
	other.Messages = slices.Clone(first.Messages)
	other.Messages[2].Body = bytes.Replace(other.Messages[2].Body, []byte("line"), []byte("lime"), 1)
	if _, _, err := w.store.Append(t.Context(), other); !errors.Is(err, session.ErrClientIDReused) {
		t.Errorf("another message with a known client_id: %v", err)
	}
	earlier := w.earlierOf(at, bodies)
	if len(earlier) != 2 || !bytes.Equal(earlier[0], bodies[31]) {
		t.Errorf("of call c15 are found %d messages: %.300q", len(earlier), earlier)
	}
	bodies = append(bodies, bodies[32])
	w.whole(at, bodies)
	stores := *w.store.ResultStores()
	gone := stores
	gone.Outside = map[persist.Kind]object.Store{persist.S3: downStore{stores.Outside[persist.S3]}}
	w.store.UseResultStores(gone)
	call := turn(15, 1500)
	w.appendLog(at, session.OpenAIChat, call[:1])
	bodies = append(bodies, call...)
	if earlier = w.earlierOf(at, bodies); !slices.ContainsFunc(earlier, func(b []byte) bool { return bytes.Equal(b, call[0]) }) {
		t.Errorf("while the store is away, of call c15 are found %d messages: %.300q", len(earlier), earlier)
	}
	w.store.UseResultStores(stores)
	w.whole(at, bodies)
}

// earlierOf appends the answer to call c15 again, and returns the messages that are found for the function that caps it.
func (w *world) earlierOf(at session.Address, bodies [][]byte) (earlier [][]byte) {
	w.Helper()
	w.asOwner(`UPDATE policies SET document = document::jsonb || '{"cap": {"enabled": true, "at_insertion": true, "max_tokens": 1}}'`)
	inserts, err := queue.New(w.store.Pool())
	if err != nil {
		w.Fatal(err)
	}
	capping := postgres.New(w.store.Pool(), inserts, func(batch postgres.IngestBatch) ([]postgres.ViewMessage, []persist.NewResult, error) {
		earlier = batch.Earlier
		return nil, nil, nil
	})
	capping.UseResultStores(*w.store.ResultStores())
	a := w.batch(at, turn(15, 1500)[1])
	a.Messages[0].Answers = []string{"c15"}
	if _, _, err := capping.Append(w.Context(), a); err != nil {
		w.Fatal(err)
	}
	return earlier
}

// TestPacksAreReadWhileTheyMove reads a log on and on while its packs go from store to store.
func TestPacksAreReadWhileTheyMove(t *testing.T) {
	t.Parallel()
	w, _ := newWorldOfPacks(t)
	at, bodies := w.archivable("s")
	w.work(jobs.Config{KeepWhole: true})
	w.mustPack(at, all)
	ctx, stop := context.WithCancel(t.Context())
	read := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			_, found, err := w.store.Messages(t.Context(), at, postgres.Range{Limit: 40})
			if err != nil || len(found) != 40 || !bytes.Equal(found[39].Body, bodies[39]) {
				read <- fmt.Errorf("%d messages, %w", len(found), err)
				return
			}
		}
		read <- nil
	}()
	for n := range 12 {
		w.moved([]persist.Kind{persist.File, persist.S3}[n%2])
	}
	stop()
	if err := <-read; err != nil {
		t.Error(err)
	}
}

// moving is a store in which something happens before an object is read for the first time.
type moving struct {
	object.Store
	once   *sync.Once
	before func()
}

func (s moving) Get(ctx context.Context, name string, at int64, size int) ([]byte, error) {
	s.once.Do(s.before)
	return s.Store.Get(ctx, name, at, size)
}

// TestAPackThatMovesAfterItsRowWasReadIsFound moves a pack between the read of its row and that of its object.
func TestAPackThatMovesAfterItsRowWasReadIsFound(t *testing.T) {
	t.Parallel()
	w, _ := newWorldOfPacks(t)
	at, bodies := w.archivable("s")
	w.work(jobs.Config{KeepWhole: true})
	w.mustPack(at, all)
	w.settled()
	key, first := w.sessionKey(at), w.firsts(at)[0]
	stores, moved := *w.store.ResultStores(), false
	mover := postgres.New(w.store.Pool(), nil, nil)
	mover.UseResultStores(stores)
	seen := stores
	seen.Outside = maps.Clone(stores.Outside)
	seen.Outside[persist.S3] = moving{stores.Outside[persist.S3], new(sync.Once), func() {
		_, err := mover.MovePack(t.Context(), key, first, persist.File)
		if moved = err == nil; !moved {
			t.Error(err)
		}
	}}
	w.store.UseResultStores(seen)
	_, found, err := w.store.Messages(t.Context(), at, postgres.Range{Limit: 1})
	if err != nil || len(found) != 1 || !bytes.Equal(found[0].Body, bodies[0]) || !moved {
		t.Errorf("moved: %t, %d messages, %v", moved, len(found), err)
	}
}
