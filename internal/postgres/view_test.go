package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// commit makes a checkpoint of the session's first through messages with this body, of 5 tokens.
func commit(t testing.TB, store *postgres.Store, at session.Address, base int, through int64, body string, refs ...string) error {
	t.Helper()
	return commitOf(t, store, at, base, 0, through, 5, body, refs...)
}

// commitOf commits a checkpoint that was planned when the log ended with seq planned; 0 stands for its present end.
func commitOf(t testing.TB, store *postgres.Store, at session.Address, base int, planned, through, tokens int64, body string, refs ...string) error {
	t.Helper()
	found, err := store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if planned == 0 {
		planned = found.LastSeq
	}
	n := base + 1
	return store.CommitCheckpoint(t.Context(), session.Key{Tenant: at.Tenant, Key: found.Key}, postgres.Outcome{
		Run: session.Run{ID: uuid.Must(uuid.NewV7()), State: session.RunDone, Checkpoint: &n}, Base: base, LastSeq: planned,
		Saved: found.ContextTokens - tokens - sum(t, store, at, through+1),
		Checkpoint: &postgres.Checkpoint{
			Through: through, Tokens: tokens, Body: []byte(body), Size: len(body), State: []byte("state"), Units: []byte(`[]`), Manifest: []byte(`[]`),
			Policy: []byte(`{}`), EngineVersion: 1, Refs: refs,
		},
	}, noJob)
}

func TestAViewIsTheCheckpointAndTheTail(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	a, b, c := message("a", 10), message("b", 10), message("c", 10)
	mustAppend(t, store, batch(at, a, b))
	before, err := store.View(t.Context(), at, postgres.Version{})
	if err != nil || string(before.Tail) != string(a.Body)+","+string(b.Body) || before.Body != nil || before.Tokens != 20 {
		t.Errorf("before the checkpoint: %+v, %v", before, err)
	}
	if err := commit(t, store, at, 0, 2, "compacted"); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, store, batch(at, c))
	got, err := store.View(t.Context(), at, postgres.Version{})
	if err != nil {
		t.Fatal(err)
	}
	want := postgres.View{
		Version: postgres.Version{Key: got.Key, Checkpoint: 1, LastSeq: 3}, Format: session.OpenAIChat, Through: 2, Tokens: 15, Unbound: 2, Window: 1000, Room: 1000, Guess: 1,
		Body: []byte("compacted"), Size: 9, Units: []byte(`[]`), Tail: c.Body, TailBytes: int64(len(c.Body)), TailShapes: []byte("1\x1f0\x1fuser\x1f\x1f\x1f1d.e7986005\x1f"),
	}
	for range 2 { // the second time with the checkpoint that is held
		got.Proof = nil
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(postgres.View{})); diff != "" {
			t.Error(diff)
		}
		if got, err = store.View(t.Context(), at, postgres.Version{}); err != nil {
			t.Fatal(err)
		}
	}
	for maxTokens, shape := range map[int64]string{15: "", 14: "3\x1c10\x1c"} {
		shape += string(want.TailShapes)
		err := store.ViewInto(t.Context(), at, postgres.ViewRead{MaxTokens: maxTokens}, &got)
		if err != nil || string(got.TailShapes) != shape {
			t.Errorf("of at most %d tokens: shapes %q, want %q, %v", maxTokens, got.TailShapes, shape, err)
		}
	}
	known, err := store.View(t.Context(), at, got.Version)
	if err != nil || known.Body != nil || known.Tail != nil || known.Version != got.Version {
		t.Errorf("a view that is known already: %+v, %v", known, err)
	}
}

func TestAnAnthropicViewHasItsSystemMessagesApart(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	system := session.NewMessage{Body: []byte(`{"role":"system","content":"be brief"}`), Role: "system", Tokens: 7, Pinned: true, StartsUnit: true}
	a := session.Append{Session: at, Format: session.Anthropic, Messages: []session.NewMessage{system, message("a", 1)}}
	mustAppend(t, store, a)
	a.Messages = []session.NewMessage{system}
	mustAppend(t, store, a)
	view, err := store.View(t.Context(), at, postgres.Version{})
	if err != nil || string(view.System) != string(system.Body) || string(view.Tail) != string(message("a", 1).Body)+","+string(system.Body) {
		t.Errorf("system %s, tail %s, %v", view.System, view.Tail, err)
	}
	snap, err := store.Snapshot(t.Context(), session.Key{Tenant: tenant, Key: view.Key})
	if err != nil || snap.SeparateTokens != 7 || snap.SeparateSeq != 1 {
		t.Errorf("snapshot %+v, %v", snap, err)
	}
	if err := store.ViewInto(t.Context(), at, postgres.ViewRead{MaxTokens: 1}, &view); err != nil {
		t.Fatal(err)
	}
	head, tail := named(t, view.SystemShapes), named(t, view.TailShapes)
	if view.Pinned != 1 || view.Separate() != 1 || head != "1:7" || tail != "2:1 3:7" {
		t.Errorf("%d messages lead the log, %d are separate, %s of them, %s others", view.Pinned, view.Separate(), head, tail)
	}
}

// named returns the seqs and tokens that shapes have.
func named(t *testing.T, shapes []byte) string {
	t.Helper()
	list, err := wire.ParseShapes(shapes)
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, m := range list {
		text = append(text, fmt.Sprintf("%d:%d", m.Seq, m.Tokens))
	}
	return strings.Join(text, " ")
}

func TestMessagesAreNamedOnlyBesideAGap(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	want := func(when, want string) {
		t.Helper()
		view, err := store.View(t.Context(), at, postgres.Version{})
		if got := named(t, view.TailShapes); err != nil || got != want {
			t.Errorf("%s: %q, want %q, %v", when, got, want, err)
		}
	}
	mustAppend(t, store, batch(at, texts("a", "b", "c")...))
	want("without a gap", "0:0 0:0 0:0")
	if _, _, err := store.Remove(t.Context(), at, 2, nil); err != nil { // takes seq 4
		t.Fatal(err)
	}
	mustAppend(t, store, batch(at, message("d", 10)))
	want("after a removal", "1:10 3:10 5:10")
	if err := commit(t, store, at, 0, 3, "x"); err != nil {
		t.Fatal(err)
	}
	want("after a checkpoint with the message, but not the seq of its removal", "5:10")
	if err := commit(t, store, at, 1, 5, "x"); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, store, batch(at, message("e", 10)))
	want("after a checkpoint with the gap", "0:0")
}

func TestAnOlderViewAndTheLogHaveTokensOfTheirOwn(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	for through := range int64(2) {
		mustAppend(t, store, batch(at, texts("a", "b")...))
		if err := commit(t, store, at, int(through), 2*through+2, "x"); err != nil {
			t.Fatal(err)
		}
	}
	mustAppend(t, store, batch(at, message("c", 10)))
	if newest, err := store.View(t.Context(), at, postgres.Version{}); err != nil || newest.Tokens != 15 {
		t.Errorf("the newest view: %d tokens, want 15, %v", newest.Tokens, err)
	}
	for checkpoint, want := range map[int]int64{2: 15, 1: 35, 0: 50} {
		if older, err := store.OlderView(t.Context(), at, postgres.ViewFrom(checkpoint), postgres.ViewRead{}); err != nil || older.Tokens != want {
			t.Errorf("from checkpoint %d: %d tokens, want %d, %v", checkpoint, older.Tokens, want, err)
		}
	}
}

func TestACheckpointCannotNameAResultThatIsNotThere(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("a", 10)))
	err := commit(t, store, at, 0, 1, "x", "r1.0-abcd")
	if err == nil || !strings.Contains(err.Error(), "names 1 results, and 0 are there") {
		t.Errorf("a checkpoint that names a missing result: %v", err)
	}
	if found, err := store.Session(t.Context(), at); err != nil || found.Checkpoint != 0 || found.ContextTokens != 10 {
		t.Errorf("it left %+v, %v", found, err)
	}
}

func TestOfTwoCheckpointsOnOneBaseTheSecondIsStale(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("a", 10)))
	if err := commit(t, store, at, 0, 1, "first"); err != nil {
		t.Fatal(err)
	}
	if err := commit(t, store, at, 0, 1, "second"); err != session.ErrStale {
		t.Errorf("the second: %v, want ErrStale", err)
	}
}

func TestOldCheckpointsLoseTheirBodies(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("a", 500)))
	for n := range postgres.KeptCheckpoints + 3 {
		if err := commit(t, store, at, n, 1, "body"); err != nil {
			t.Fatal(err)
		}
	}
	var bodies, all int
	err := postgres.Query(t.Context(), store, tenant, `SELECT count(body), count(*) FROM checkpoints`, nil, scanOne(&bodies, &all))
	if err != nil || bodies != postgres.KeptCheckpoints || all != postgres.KeptCheckpoints+3 {
		t.Errorf("%d of %d checkpoints have bodies, %v", bodies, all, err)
	}
}

func TestAViewWhoseCheckpointIsHeldIsThatOfTheDatabase(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("a", 500)))
	want := func(checkpoint int, body string) {
		t.Helper()
		for range 3 { // read, held, held
			view, err := store.View(t.Context(), at, postgres.Version{})
			if err != nil || view.Checkpoint != checkpoint || string(view.Body) != body {
				t.Errorf("checkpoint %d with body %q, want %d with %q; %v", view.Checkpoint, view.Body, checkpoint, body, err)
			}
		}
	}
	want(0, "")
	for n, body := range []string{"first", "second"} {
		if err := commit(t, store, at, n, 1, body); err != nil {
			t.Fatal(err)
		}
		want(n+1, body)
	}
	if _, err := store.Delete(t.Context(), at, nil); err != nil {
		t.Fatal(err)
	}
	newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("a", 500)))
	want(0, "")
	if err := commit(t, store, at, 0, 1, "of another session with this id"); err != nil {
		t.Fatal(err)
	}
	want(1, "of another session with this id")
}

// TestTheRoomOfAViewIsThatOfItsSession holds the rule in SQL to that in Go.
func TestTheRoomOfAViewIsThatOfItsSession(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("a", 10)))
	if err := commit(t, store, at, 0, 1, "x"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		window, overhead, unseen int64
		calibration              float64
		want                     int64
	}{
		{1000, 0, 0, 1, 1000}, {1000, 200, 0, 1, 800}, {1000, 200, 300, 1, 500}, {1000, 200, -300, 1, 800},
		{1000, 200, 0, 0.5, 800}, {1000, 200, 0, 3, 133}, {1000, 0, 0, 1.3, 769}, {1000, 200, 900, 1, 0},
		{1000, 100, 2000, 2, 0}, {2147483647, 0, 0, 1, 2147483647}, {10000000, 9999999, -5000000, 2.2, 0},
	} {
		sql := `UPDATE sessions SET window_tokens = $1, overhead_tokens = $2, unseen_tokens = $3, calibration = $4::real`
		err := execInTenant(t, store, tenant, sql, test.window, test.overhead, test.unseen, test.calibration)
		if err != nil {
			t.Fatal(err)
		}
		found, err := store.Session(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		newest, err := store.View(t.Context(), at, postgres.Version{})
		if err != nil {
			t.Fatal(err)
		}
		older, err := store.OlderView(t.Context(), at, postgres.ViewFrom(1), postgres.ViewRead{})
		if err != nil {
			t.Fatal(err)
		}
		if found.Room() != test.want || newest.Room != test.want || older.Room != test.want {
			t.Errorf("%+v: room %d in Go, %d and %d in SQL", test, found.Room(), newest.Room, older.Room)
		}
		if newest.Window != test.window || newest.Size != 1 || newest.Pinned != 0 || older.Window != test.window {
			t.Errorf("%+v: %+v", test, newest)
		}
	}
}
