//go:build !race

package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/session"
)

// packSteps are where a packer fails.
var packSteps = []string{
	"packs_planned", "packed", "put", "verified", "pack_committed", "pack_moved", "",
}

// packHistory is a random history of sessions whose packs lie outside.
type packHistory struct {
	*world
	random *rand.Rand
	logs   map[session.Address][][]byte
	made   int
	killed map[string]int // by step
}

func (h *packHistory) begin() {
	h.made++
	at := h.session(fmt.Sprint("s", h.made))
	h.logs[at] = turns(40, 1500)
	h.appendLog(at, session.OpenAIChat, h.logs[at])
}

func (h *packHistory) one() session.Address {
	ats := h.all()
	return ats[h.random.IntN(len(ats))]
}

func (h *packHistory) all() (ats []session.Address) {
	for at := range h.logs {
		ats = append(ats, at)
	}
	slices.SortFunc(ats, func(a, b session.Address) int { return strings.Compare(a.ID, b.ID) })
	return ats
}

// packUntil packs a session until a step, as a process does that is killed there.
func (h *packHistory) packUntil(at session.Address, step string) {
	h.Helper()
	type killed struct{}
	came := func(now string) {
		if now == step {
			h.killed[step]++
			panic(killed{})
		}
	}
	stores := *h.store.ResultStores()
	traced := stores
	traced.Trace = came
	h.store.UseResultStores(traced)
	defer h.store.UseResultStores(stores)
	defer func() {
		if by := recover(); by != nil && by != (killed{}) {
			panic(by)
		}
	}()
	behind := int64(all)
	if h.random.IntN(4) == 0 {
		behind = 60
	}
	if err := h.pack(at, behind, came); err != nil {
		h.Fatal(err)
	}
}

// TestPacksOutsideSurviveRandomHistories packs with workers that are killed at every step, forks, erases, freezes,
// moves and collects, and compares every session with what was appended. In the end no object is left, without a
// collection.
func TestPacksOutsideSurviveRandomHistories(t *testing.T) {
	t.Parallel()
	w, _ := newWorldOfPacks(t)
	w.work(jobs.Config{KeepWhole: true})
	h := &packHistory{world: w, random: rand.New(rand.NewPCG(*archiveSeed, 95)), logs: map[session.Address][][]byte{}, killed: map[string]int{}}
	h.begin()
	h.begin()
	outside := 0
	for n := range 40 {
		if len(h.logs) == 0 {
			h.begin()
		}
		at := h.one()
		w.settled()
		before := w.served(at)
		switch deed := h.random.IntN(12); deed {
		default:
			more := append(turn(100+n, 1500), turn(200+n, 1500)...)
			h.logs[at] = append(h.logs[at], more...)
			w.appendLog(at, session.OpenAIChat, more)
			if _, _, err := w.store.Compact(t.Context(), at, nil); err != nil {
				t.Fatal(err)
			}
			w.settled()
			before = w.served(at)
			h.packUntil(at, packSteps[n%len(packSteps)])
		case 0, 1:
			h.made++
			seq := 1 + h.random.IntN(len(h.logs[at]))
			fork := w.fork(at, fmt.Sprint("s", h.made), int64(seq))
			h.logs[fork] = slices.Clone(h.logs[at][:seq])
		case 2:
			w.frozen(at)
		case 3:
			w.moved([]persist.Kind{persist.File, persist.S3, persist.Postgres}[h.random.IntN(3)])
		case 4:
			w.collected()
		case 5:
			if len(h.logs) > 2 {
				w.erase(at)
				delete(h.logs, at)
				continue
			}
		}
		outside += len(w.namedObjects())
		if after := w.served(at); after != before {
			t.Errorf("%s was %s, and is %s", at.ID, before, after)
		}
		w.same(at, session.OpenAIChat, h.logs[at])
	}
	w.settled()
	for at, log := range h.logs {
		w.used(at)
		w.whole(at, log)
	}
	w.verified()
	t.Logf("packers were killed at %v, %d sessions", h.killed, h.made)
	if outside < 5 || len(h.killed) < 3 { // what is outside when depends on how fast jobs are
		t.Errorf("the history had %d packs outside, and packers killed at %v", outside, h.killed)
	}
	for at := range h.logs {
		w.erase(at)
	}
	if left := w.objects(); len(left) > 0 {
		t.Errorf("after all was erased there are %q", left)
	}
}

// TestAForkKeepsTheObjectsThatItIsAboutToName stops a fork between the copy of its rows and its commit, and has the
// session's packs moved and made anew meanwhile.
func TestAForkKeepsTheObjectsThatItIsAboutToName(t *testing.T) {
	t.Parallel()
	w, _ := newWorldOfPacks(t)
	at, bodies := w.archivable("s")
	w.work(jobs.Config{KeepWhole: true})
	w.mustPack(at, all)
	w.asOwner(`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN PERFORM pg_advisory_xact_lock(95); RETURN NULL; END $$`)
	w.asOwner(`CREATE TRIGGER wait AFTER INSERT ON message_packs FOR EACH ROW WHEN (NEW.objects_in IS NOT NULL) EXECUTE FUNCTION wait()`)
	conn, err := pgx.Connect(t.Context(), w.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_lock(95)`); err != nil {
		t.Fatal(err)
	}
	forked := make(chan error, 1)
	go func() {
		_, _, err := w.store.Fork(context.WithoutCancel(t.Context()), session.Fork{From: at, ID: "fork", Seq: int64(len(bodies))})
		forked <- err
	}()
	w.eventually("the fork waits", func() bool {
		return w.count("pg_locks WHERE locktype = 'advisory' AND NOT granted") > 0
	})
	was := w.objects()
	for first := range slices.Values(w.firsts(at)) {
		if _, err := w.store.MovePack(t.Context(), w.sessionKey(at), first, persist.File); !errors.Is(err, session.ErrStale) {
			t.Errorf("the pack from %d on moves while it is copied: %v", first, err)
		}
	}
	begun := time.Now()
	w.append(at, turn(5000, 10)...) // waits for nothing
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("an append waited %s for a fork", took)
	}
	if now := w.objects(); !slices.Equal(now, was) {
		t.Errorf("the objects were %q, and are %q", was, now)
	}
	if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_unlock(95)`); err != nil {
		t.Fatal(err)
	}
	if err := <-forked; err != nil {
		t.Fatal(err)
	}
	w.moved(persist.File)
	w.erase(at)
	w.whole(session.Address{Tenant: at.Tenant, ID: "fork"}, bodies)
	w.verified()
}

func (w *world) firsts(at session.Address) []int64 {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.dsn)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(w.Context()))
	rows, _ := conn.Query(w.Context(), `SELECT first_seq FROM message_packs WHERE session_key = $1 ORDER BY 1`, w.sessionKey(at).Key)
	firsts, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		w.Fatal(err)
	}
	return firsts
}

// askedBy returns turns of a user, who says so.
func askedBy(user string, n int) (bodies [][]byte) {
	for i := range n {
		bodies = append(bodies, fmt.Appendf(nil, `{"role":"user","content":"I am %s, for the %d. time"}`, user, i))
		bodies = append(bodies, turn(i, 1500)...)
	}
	return bodies
}

// keeping is a store that deletes nothing.
type keeping struct{ object.Store }

func (keeping) Delete(context.Context, string) error {
	return fmt.Errorf("%w: it deletes nothing", session.ErrResultStore)
}

// TestNothingIsLeftOfAnErasedSessionWhosePacksLieOutside plants a text in packs that a session shares with a fork and a
// fork of that, erases one after the other, and looks for it. The packs of the forks came back into rows while the store
// deleted nothing.
func TestNothingIsLeftOfAnErasedSessionWhosePacksLieOutside(t *testing.T) {
	t.Parallel()
	w, dir := newWorldOfPacks(t)
	stores := *w.store.ResultStores()
	stores.Archives = new(persist.File)
	w.store.UseResultStores(stores)
	w.work(jobs.Config{KeepWhole: true})
	at := w.of("s", subject)
	bodies := askedBy(subject, 60)
	w.appendLog(at, session.OpenAIChat, bodies)
	w.mustPack(at, all)
	fork := w.fork(at, "fork", int64(len(bodies)))
	second := w.fork(fork, "second", int64(len(bodies)))
	if found := w.traces(subject, dir); !slices.Contains(found, "files") {
		t.Fatalf("the text is in %q", found)
	}
	w.erase(at)
	w.whole(fork, bodies)
	w.asOwner(`UPDATE result_bodies SET objects_in = NULL`) // nothing but packs_in leads to the objects
	kept := stores
	kept.Outside = map[persist.Kind]object.Store{persist.File: keeping{stores.Outside[persist.File]}, persist.S3: stores.Outside[persist.S3]}
	w.store.UseResultStores(kept)
	for _, of := range []session.Address{second, fork} {
		for _, first := range w.firsts(of) {
			if _, err := w.store.MovePack(t.Context(), w.sessionKey(of), first, persist.Postgres); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.store.UseResultStores(stores)
	if len(w.objects()) == 0 {
		t.Fatal("the store has deleted what it should keep")
	}
	w.erase(second)
	w.whole(fork, bodies)
	w.erase(fork)
	if found := w.traces(subject, dir); slices.Contains(found, "files") || slices.Contains(found, "message_packs.body") {
		t.Errorf("the text is left in %q", found)
	}
	if left := w.objects(); len(left) > 0 {
		t.Errorf("objects are left: %q", left)
	}
}

// TestAnErasureLeavesAloneWhatAnotherSessionIsAboutToName erases a fork while an object was just put for the session
// that it was made of.
func TestAnErasureLeavesAloneWhatAnotherSessionIsAboutToName(t *testing.T) {
	t.Parallel()
	w, _ := newWorldOfPacks(t)
	at, bodies := w.archivable("s")
	w.work(jobs.Config{KeepWhole: true})
	w.mustPack(at, all)
	fork := w.fork(at, "fork", int64(len(bodies)))
	name := persist.ObjectName(w.sessionKey(at), uuid.Must(uuid.NewV7()))
	if err := w.store.ResultStores().Outside[persist.S3].Put(t.Context(), name, []byte("a pack")); err != nil {
		t.Fatal(err)
	}
	w.erase(fork)
	if !slices.Contains(w.objects(), name) {
		t.Error("an object was erased that a transaction of another session may be about to name")
	}
	w.whole(at, bodies)
	w.erase(at)
	if left := w.objects(); len(left) > 0 {
		t.Errorf("objects are left: %q", left)
	}
}
