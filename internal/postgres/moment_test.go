package postgres_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// asOf returns what the view has as of a moment: its checkpoint, its tokens, and its messages.
func asOf(t testing.TB, store *postgres.Store, at session.Address, when postgres.At) (string, error) {
	t.Helper()
	then, err := store.Moment(t.Context(), at, when)
	if err != nil {
		return "", err
	}
	view, err := store.OlderView(t.Context(), at, postgres.Older{Checkpoint: then.Checkpoint, AsOf: &then}, postgres.ViewRead{})
	return contents(&view), err
}

func contents(v *postgres.View) string {
	return fmt.Sprintf("%d through %d, %d tokens at %d, %d pinned: %s + %s + %s",
		v.Checkpoint, v.Through, v.Tokens, v.LastSeq, v.Pinned, v.System, v.Body, v.Tail)
}

// history takes random steps in a session, and notes what its view was after each seq.
type history struct {
	testing.TB
	store *postgres.Store
	at    session.Address
	seen  map[int64]string
	rand  *rand.Rand
}

func (h *history) step(n int) {
	found, err := h.store.Session(h.Context(), h.at)
	if err != nil {
		h.Fatal(err)
	}
	seq := 1 + h.rand.Int64N(max(found.LastSeq, 1))
	switch h.rand.IntN(6) {
	case 0:
		_, _, err = h.store.Remove(h.Context(), h.at, seq, nil)
	case 1:
		_, _, err = h.store.Replace(h.Context(), replacement(h, h.store, h.at, seq, texts(fmt.Sprintf("replaced %d", n))...))
	case 2:
		err = made(h, h.store, h.at, found.Checkpoint, min(seq, found.LastSeq), 5)
	case 3:
		_, _, err = h.store.Restore(h.Context(), h.at, 1+h.rand.IntN(max(found.Checkpoint, 1)), nil)
	default:
		mustAppend(h, h.store, batch(h.at, texts(fmt.Sprintf("step %d", n), "and more")...))
	}
	if err != nil && !errors.Is(err, session.ErrNotFound) && !errors.Is(err, session.ErrStale) && !errors.Is(err, session.ErrPruned) {
		h.Fatal(err)
	}
	h.note()
}

// note notes the view of a seq that was just taken.
func (h *history) note() {
	view, err := h.store.View(h.Context(), h.at, postgres.Version{})
	if err != nil {
		h.Fatal(err)
	}
	if _, known := h.seen[view.LastSeq]; !known {
		h.seen[view.LastSeq] = contents(&view)
	}
}

func TestAViewAsOfASeqIsTheOneThatWasReadThen(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	kept := 0
	for seed := range uint64(12) {
		at := newSession(t, store, tenant, fmt.Sprint("s", seed))
		system := message("be brief", 3)
		system.Role, system.Pinned = "system", true
		a := batch(at, system)
		if seed%2 == 0 {
			a.Format = session.Anthropic
		}
		mustAppend(t, store, a)
		h := history{t, store, at, map[int64]string{}, rand.New(rand.NewPCG(seed, 1))}
		h.note()
		for n := range 40 {
			h.step(n)
		}
		for seq, want := range h.seen {
			switch got, err := asOf(t, store, at, postgres.At{Seq: seq}); {
			case errors.Is(err, session.ErrPruned):
			case err != nil || got != want:
				t.Errorf("seed %d: as of %d the view was\n%s\nand is said to have been\n%s\n%v", seed, seq, want, got, err)
			default:
				kept++
			}
		}
	}
	if kept < 150 {
		t.Errorf("only %d views could be had", kept)
	}
}

func TestAViewAsOfATimeIsTheOneThatWasReadThen(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	type moment struct {
		time time.Time
		view string
	}
	var moments []moment
	note := func() {
		view, err := store.View(t.Context(), at, postgres.Version{})
		if err != nil {
			t.Fatal(err)
		}
		var now time.Time
		if err := store.Pool().QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&now); err != nil {
			t.Fatal(err)
		}
		moments = append(moments, moment{now, contents(&view)})
	}
	note()
	mustAppend(t, store, batch(at, texts("a", "b", "c", "d")...))
	note()
	if err := made(t, store, at, 0, 2, 5); err != nil {
		t.Fatal(err)
	}
	note()
	mustRemove(t, store, at, 3)
	note()
	mustReplace(t, store, replacement(t, store, at, 4, texts("e")...))
	note()
	if err := made(t, store, at, 1, 4, 7); err != nil {
		t.Fatal(err)
	}
	note()
	mustAppend(t, store, batch(at, texts("f")...))
	for i, m := range moments {
		if got, err := asOf(t, store, at, postgres.At{Time: m.time}); err != nil || got != m.view {
			t.Errorf("moment %d: the view was\n%s\nand is said to have been\n%s\n%v", i, m.view, got, err)
		}
	}
}

func TestACheckpointOfAnOlderProgramGoesByItsTime(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, texts("a", "b")...))
	before, _ := shown(t, store, at)
	if err := made(t, store, at, 0, 1, 5); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, store, batch(at, texts("c")...))
	after, _ := shown(t, store, at)
	if err := execInTenant(t, store, tenant, `UPDATE checkpoints SET made_after = NULL`); err != nil {
		t.Fatal(err)
	}
	for seq, want := range map[int64]string{2: contents(&before), 3: contents(&after)} {
		if got, err := asOf(t, store, at, postgres.At{Seq: seq}); err != nil || got != want {
			t.Errorf("as of %d: %s, %v; it was %s", seq, got, err, want)
		}
	}
}

func TestAViewWhoseCheckpointIsNotKeptSaysWhichIs(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	for n := range postgres.KeptCheckpoints + 3 {
		mustAppend(t, store, batch(at, texts("a", "b")...))
		if err := made(t, store, at, n, int64(n+1), 5); err != nil {
			t.Fatal(err)
		}
	}
	want := "the view as of seq 5 began with checkpoint 2, whose body is not kept any more; the next one that is kept is as of seq 9; GET /v1/sessions/{id}/messages has every message"
	if _, err := asOf(t, store, at, postgres.At{Seq: 5}); !errors.Is(err, session.ErrPruned) || err.Error() != want {
		t.Errorf("%v", err)
	}
	if _, err := asOf(t, store, at, postgres.At{Seq: 9}); err != nil {
		t.Error(err)
	}
	if _, err := asOf(t, store, at, postgres.At{Seq: 2}); err != nil {
		t.Errorf("before the first compaction: %v", err)
	}
	var invalid *session.InvalidError
	if _, err := asOf(t, store, at, postgres.At{Seq: 27}); !errors.As(err, &invalid) {
		t.Errorf("of the future: %v", err)
	}
	for _, other := range []session.Address{{Tenant: newTenant(t, store, "other"), ID: "s"}, {Tenant: tenant, ID: "none"}} {
		if _, err := asOf(t, store, other, postgres.At{Seq: 1}); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%v: %v", other, err)
		}
	}
}
