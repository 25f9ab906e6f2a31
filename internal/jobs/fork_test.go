package jobs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
	"github.com/varve-dev/varve/internal/verify"
)

// fork forks a session at a seq, 0 for its end.
func (w *world) fork(from session.Address, id string, seq int64) session.Address {
	w.Helper()
	made, _, err := w.store.Fork(w.Context(), session.Fork{From: from, ID: id, Seq: seq})
	if err != nil {
		w.Fatalf("fork of %s at %d: %v", from.ID, seq, err)
	}
	if seq > 0 && (made.LastSeq != seq || made.Forked == nil || made.Forked.Session != from.ID) {
		w.Fatalf("the fork at %d is %+v of %+v", seq, made, made.Forked)
	}
	return session.Address{Tenant: from.Tenant, ID: id}
}

// whole holds a fork to the messages that it must have, and to what a read of the other session returned then.
func (w *world) whole(fork session.Address, bodies [][]byte) (stored int) {
	w.Helper()
	w.same(fork, session.OpenAIChat, bodies)
	_, stored = w.readBack(fork, session.OpenAIChat, bodies)
	return stored
}

// asOf reads the view of a session right after a seq; ok is false if its checkpoint is not kept.
func (w *world) asOf(at session.Address, seq int64) (v postgres.View, ok bool) {
	w.Helper()
	then, err := w.store.Moment(w.Context(), at, postgres.At{Seq: seq})
	if errors.Is(err, session.ErrPruned) {
		return v, false
	}
	if err == nil {
		v, err = w.store.OlderView(w.Context(), at, postgres.Older{Checkpoint: then.Checkpoint, AsOf: &then}, postgres.ViewRead{})
	}
	if err != nil {
		w.Fatal(err)
	}
	return v, true
}

// sameViewAs holds a fork to what a read of the other session returned then. The fork may have been compacted since.
func (w *world) sameViewAs(from, fork session.Address, seq int64) {
	w.Helper()
	want, kept := w.asOf(from, seq)
	if !kept {
		return // the fork begins with another checkpoint
	}
	got, ok := w.asOf(fork, seq)
	if !ok || got.Checkpoint != want.Checkpoint || got.Tokens != want.Tokens || got.LastSeq != want.LastSeq ||
		!bytes.Equal(got.Body, want.Body) || !bytes.Equal(got.Tail, want.Tail) || !bytes.Equal(got.System, want.System) {
		w.Errorf("fork at %d: %d through %d with %d tokens, not %d through %d with %d", seq,
			got.Checkpoint, got.Through, got.Tokens, want.Checkpoint, want.Through, want.Tokens)
	}
}

func (w *world) verified() {
	w.Helper()
	v := verify.Verifier{Store: w.store}
	tenants, err := w.store.Tenants(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	err = v.Run(w.Context(), verify.Scope{Tenants: tenants}, false, func(_, _ int64, r *verify.Report) error {
		for _, f := range r.Findings {
			w.Errorf("%s %s of %s: %s", f.Kind, f.Where(), f.Session, f.What)
		}
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) erase(at session.Address) {
	w.Helper()
	done, err := w.store.Delete(context.WithoutCancel(w.Context()), at, nil)
	if err != nil {
		w.Fatal(err)
	}
	w.ended(at.Tenant, done.Erasure)
}

// filesIn counts the objects of a directory.
func filesIn(t testing.TB, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Bodies lie in PostgreSQL, and then in a directory: forks share them, and what is erased first takes nothing away
// from the others.
func TestAForkHasTheLogAndTheResultsWhateverIsErasedFirst(t *testing.T) {
	kinds := []persist.Kind{persist.File, persist.Postgres}
	if testing.Short() {
		kinds = kinds[:1] // the histories of archives have forks whose bodies lie in PostgreSQL
	}
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			dir := t.TempDir()
			files, err := object.OpenDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			w.store.UseResultStores(persist.Stores{New: kind, Outside: map[persist.Kind]object.Store{persist.File: files}})
			if err := w.store.CheckResultStores(t.Context()); err != nil {
				t.Fatal(err)
			}
			empty := filesIn(t, dir)
			at := w.session("s")
			bodies := turns(80, 1500)
			w.work(jobs.Config{})
			w.appendLog(at, session.OpenAIChat, bodies)
			if packs, packed, holes := w.offloaded(); packs == 0 || packed < 20 || holes == 0 {
				t.Fatalf("%d packs with %d messages and %d holes", packs, packed, holes)
			}
			chunks := w.count("result_chunks")
			forks := map[session.Address]int64{}
			for n, seq := range []int64{17, 77, 120, int64(len(bodies))} {
				fork := w.fork(at, fmt.Sprint("fork-", n), seq)
				w.sameViewAs(at, fork, seq)
				if stored := w.whole(fork, bodies[:seq]); seq > 100 && stored == 0 {
					t.Errorf("the fork at %d has no result with a body", seq)
				}
				forks[fork] = seq
			}
			second := w.fork(session.Address{Tenant: at.Tenant, ID: "fork-2"}, "fork of a fork", 90)
			forks[second] = 90
			w.whole(second, bodies[:90])
			if now := w.count("result_chunks"); now != chunks {
				t.Errorf("%d chunks have become %d", chunks, now)
			}
			w.verified()
			w.erase(at)
			for len(forks) > 0 {
				for fork, seq := range forks {
					w.whole(fork, bodies[:seq])
				}
				w.verified()
				for fork := range forks {
					w.erase(fork)
					delete(forks, fork)
					break
				}
			}
			if n := w.count("result_chunks") + w.count("messages") + w.count("message_packs") + w.count("sessions"); n > 0 {
				t.Errorf("%d rows are left", n)
			}
			if n := filesIn(t, dir) - empty; n > 0 {
				t.Errorf("%d objects are left", n)
			}
		})
	}
}

// What a fork shares is moved, collected and repaired where it is held.
func TestSharedBodiesAreMovedAndCollectedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	files, err := object.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	w.store.UseResultStores(persist.Stores{New: persist.Postgres, Outside: map[persist.Kind]object.Store{persist.File: files}})
	if err := w.store.CheckResultStores(t.Context()); err != nil {
		t.Fatal(err)
	}
	at := w.session("s")
	bodies := turns(60, 1500)
	w.work(jobs.Config{})
	w.appendLog(at, session.OpenAIChat, bodies)
	w.offloaded()
	fork := w.fork(at, "fork", 0)
	move := func(to persist.Kind) {
		t.Helper()
		err := tier.MoveResults(t.Context(), w.store, tier.ResultMove{Tenant: at.Tenant, To: to, Each: func(body persist.Movable, _ int64, err error) {
			if err != nil {
				t.Errorf("%s of %s: %v", body.ID, body.Session, err)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		w.whole(fork, bodies)
	}
	move(persist.File)
	w.whole(at, bodies)
	if _, err := w.store.CollectBodies(t.Context(), at.Tenant, 0, 1000); err != nil {
		t.Fatal(err)
	}
	w.whole(fork, bodies)
	w.erase(at)
	w.whole(fork, bodies)
	move(persist.Postgres)
	move(persist.File)
	w.verified()
	w.erase(fork)
	if n := w.count("result_bodies"); n > 0 {
		t.Errorf("%d bodies are left", n)
	}
}

// Of a session that changes while it is forked, each fork is whole.
func TestAForkIsWholeWhileTheSessionChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	bodies := turns(90, 1200)
	w.work(jobs.Config{})
	w.appendLog(at, session.OpenAIChat, bodies[:41])
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.appendLog(at, session.OpenAIChat, bodies[41:])
	}()
	forks := 0
	for open := true; open; forks++ {
		select {
		case <-done:
			open = false
		default:
		}
		fork := w.fork(at, fmt.Sprint("fork-", forks), 0)
		found, err := w.store.Session(t.Context(), fork)
		if err != nil {
			t.Fatal(err)
		}
		w.same(fork, session.OpenAIChat, bodies[:found.LastSeq])
	}
	w.offloaded()
	w.verified()
	for n := range forks {
		fork := session.Address{Tenant: at.Tenant, ID: fmt.Sprint("fork-", n)}
		found, err := w.store.Session(t.Context(), fork)
		if err != nil {
			t.Fatal(err)
		}
		w.whole(fork, bodies[:found.LastSeq])
	}
}

// TestAnErasureLeavesAloneWhatAnotherSessionIsAboutToName erases a fork, which an archive of its session has given
// bodies to, while an object was just put for that session.
func TestAnErasureLeavesAloneWhatAnotherSessionIsAboutToName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inFiles()
	at, bodies := w.archivable("s")
	w.work(jobs.Config{})
	w.offloaded()
	fork := w.fork(at, "fork", int64(len(bodies)))
	w.archived(at)
	w.restored(at)
	store, name := w.store.ResultStores().Outside[persist.File], persist.ObjectName(w.sessionKey(at), uuid.Must(uuid.NewV7()))
	if err := store.Put(t.Context(), name, []byte("a body")); err != nil {
		t.Fatal(err)
	}
	w.erase(fork)
	if !slices.Contains(namesIn(w, store), name) {
		t.Error("an object was erased that a transaction of another session may be about to name")
	}
	w.whole(at, bodies)
	w.erase(at)
	if left := namesIn(w, store); len(left) > 0 {
		t.Errorf("objects are left: %q", left)
	}
}
