package postgres_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

func mustRemove(t testing.TB, store *postgres.Store, at session.Address, seq int64) session.Session {
	t.Helper()
	left, _, err := store.Remove(t.Context(), at, seq, nil)
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// texts returns messages with these texts, of 10 tokens each.
func texts(names ...string) (messages []session.NewMessage) {
	for _, name := range names {
		messages = append(messages, message(name, 10))
	}
	return messages
}

// shown returns the texts of the view's tail.
func shown(t testing.TB, store *postgres.Store, at session.Address) (view postgres.View, names string) {
	t.Helper()
	view, err := store.View(t.Context(), at, postgres.Version{})
	if err != nil {
		t.Fatal(err)
	}
	names = strings.NewReplacer(`{"role":"user","content":"`, ``, `"}`, ``).Replace(string(view.Tail))
	return view, names
}

func TestARemovedMessageIsInTheLogAndInNoView(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, texts("a", "b", "c")...))
	before, _ := shown(t, store, at)
	left := mustRemove(t, store, at, 2)
	if left.ContextTokens != 20 || left.TotalTokens != 20 || left.LastSeq != 4 {
		t.Errorf("%d of %d tokens through %d are left", left.ContextTokens, left.TotalTokens, left.LastSeq)
	}
	after, names := shown(t, store, at)
	if names != "a,c" || after.Version == before.Version {
		t.Errorf("the view has %s, version %v after %v", names, after.Version, before.Version)
	}
	_, log, err := store.Messages(t.Context(), at, postgres.Range{Removed: true, Limit: 10})
	if err != nil || len(log) != 3 || log[0].RemovedAt != nil || log[1].RemovedAt == nil || string(log[1].Body) != string(message("b", 10).Body) {
		t.Errorf("the log is %+v, %v", log, err)
	}
	if c := countersOf(t, store, at); c.Tail != int64(len(log[0].Body)+len(log[2].Body)) {
		t.Errorf("counters %+v", c)
	}
	if done := mustAppend(t, store, batch(at, texts("d")...)); done.FirstSeq != 5 {
		t.Errorf("the next message has seq %d: that of the removal is taken", done.FirstSeq)
	}
}

func TestWhatIsNotThereCannotBeRemoved(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, texts("a")...))
	mustRemove(t, store, at, 1)
	other := session.Address{Tenant: newTenant(t, store, "other"), ID: "s"}
	for _, missing := range []struct {
		at  session.Address
		seq int64
	}{{at, 1}, {at, 2}, {at, 99}, {session.Address{Tenant: tenant, ID: "none"}, 1}, {other, 1}} {
		if _, _, err := store.Remove(t.Context(), missing.at, missing.seq, nil); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%v %d: %v", missing.at, missing.seq, err)
		}
	}
}

func TestARemovalTakesTheSessionBackBeforeTheCompactionsThatCoverTheMessage(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, texts("a", "b", "c", "d", "e", "f")...))
	if err := errors.Join(made(t, store, at, 0, 2, 5), made(t, store, at, 1, 4, 7)); err != nil {
		t.Fatal(err)
	}
	left := mustRemove(t, store, at, 3)
	view, names := shown(t, store, at)
	if view.Checkpoint != 3 || view.Through != 2 || string(view.Body) != "body of 1" || names != "d,e,f" || left.ContextTokens != 5+3*10 {
		t.Errorf("the view is %d through %d with %d tokens: %s + %s", view.Checkpoint, view.Through, left.ContextTokens, view.Body, names)
	}
	if _, _, err := store.Restore(t.Context(), at, 2, nil); !errors.Is(err, session.ErrPruned) {
		t.Errorf("the checkpoint that shows the message can be restored: %v", err)
	}
	mustRemove(t, store, at, 1)
	view, names = shown(t, store, at)
	if view.Checkpoint != 4 || view.Through != 0 || view.Size != 0 || len(view.Body) != 0 || names != "b,d,e,f" || view.Tokens != 40 {
		t.Errorf("the view is %d through %d with %d tokens: %s + %s", view.Checkpoint, view.Through, view.Tokens, view.Body, names)
	}
	if err := made(t, store, at, 4, 6, 9); err != nil {
		t.Errorf("it cannot be compacted again: %v", err)
	}
	runs, err := store.Runs(t.Context(), at, session.Page{Limit: 3})
	if err != nil || len(runs) != 2 || runs[0].Reason != "message 1 was removed" || *runs[0].TokensAfter != 40 {
		t.Errorf("runs %+v, %v", runs, err)
	}
}

func TestACompactionThatCoversWhatWasRemovedMeanwhileIsStale(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, texts("a", "b", "c")...))
	found, err := store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	plan := func(through int64) postgres.Outcome {
		return postgres.Outcome{
			Run: session.Run{State: session.RunDone}, LastSeq: found.LastSeq, Saved: 1,
			Checkpoint: &postgres.Checkpoint{Through: through, Tokens: 1, Body: []byte("x"), Size: 1, State: []byte("x"), Units: []byte(`[]`), Manifest: []byte(`[]`), Policy: []byte(`{}`)},
		}
	}
	mustRemove(t, store, at, 3)
	key := session.Key{Tenant: tenant, Key: found.Key}
	if err := store.CommitCheckpoint(t.Context(), key, plan(3), noJob); !errors.Is(err, session.ErrStale) {
		t.Errorf("a checkpoint that shows the message: %v", err)
	}
	if err := store.CommitCheckpoint(t.Context(), key, plan(2), noJob); err != nil {
		t.Errorf("one that does not: %v", err)
	}
}

func TestASessionThatIsLargeAgainAfterARemovalIsDue(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("a", 300), message("b", 300), message("c", 150)))
	if err := made(t, store, at, 0, 3, 10); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, store, batch(at, message("d", 300)))
	if n := liveJobs(t, store); n != 0 {
		t.Fatalf("%d jobs before", n)
	}
	mustRemove(t, store, at, 3)
	if n := liveJobs(t, store); n != 1 {
		t.Errorf("%d jobs for a view of 900 tokens in a window of 1,000", n)
	}
}

func TestARemovalWithAKeyIsDoneOnce(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, texts("a", "b")...))
	id := &session.Idempotency{Key: "k", Route: "DELETE", Digest: [32]byte{1}}
	for i := range 2 {
		left, replayed, err := store.Remove(t.Context(), at, 2, id)
		if err != nil || replayed != (i == 1) || left.LastSeq != 3 {
			t.Errorf("attempt %d: %+v, %v, %v", i, left, replayed, err)
		}
	}
}

func TestASliceGoesBothWaysPastWhatWasRemoved(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, texts("a", "b", "c", "d")...))
	mustRemove(t, store, at, 3)
	mustAppend(t, store, batch(at, texts("e")...))
	for _, test := range []struct {
		slice postgres.Range
		want  []int64
	}{
		{postgres.Range{Limit: 9, Bytes: 1 << 20}, []int64{1, 2, 4, 6}},
		{postgres.Range{Limit: 2, After: 2, Bytes: 1 << 20}, []int64{4, 6}},
		{postgres.Range{Limit: 2, Descending: true, Bytes: 1 << 20}, []int64{6, 4}},
		{postgres.Range{Limit: 9, After: 4, Descending: true, Bytes: 1 << 20}, []int64{2, 1}},
		{postgres.Range{Limit: 9, After: 6, Bytes: 1 << 20}, nil},
		{postgres.Range{Limit: 9, Bytes: 1}, []int64{1, 2}},
	} {
		_, found, err := store.Messages(t.Context(), at, test.slice)
		var seqs []int64
		for _, m := range found {
			seqs = append(seqs, m.Seq)
		}
		if diff := cmp.Diff(test.want, seqs); diff != "" || err != nil {
			t.Errorf("%+v: %v\n%s", test.slice, err, diff)
		}
	}
}

func TestASessionIsCreatedWithItsMessagesOrNotAtAll(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := session.Address{Tenant: tenant, ID: "s"}
	window := 1000
	a := batch(at, texts("a", "b")...)
	a.Idempotency = &session.Idempotency{Key: "k", Route: "POST", Digest: [32]byte{1}}
	for i := range 2 {
		made, replayed, err := store.CreateWith(t.Context(), a, session.Change{WindowTokens: &window})
		if err != nil || replayed != (i == 1) || made.LastSeq != 2 || made.ContextTokens != 20 || made.Format != session.OpenAIChat {
			t.Errorf("attempt %d: %+v, %v, %v", i, made, replayed, err)
		}
	}
	a.Idempotency = nil
	if _, _, err := store.CreateWith(t.Context(), a, session.Change{}); !errors.Is(err, session.ErrExists) {
		t.Errorf("an id that is taken: %v", err)
	}
	full := session.Append{Session: session.Address{Tenant: tenant, ID: "full"}, Format: session.OpenAIChat, Messages: make([]session.NewMessage, 3)}
	huge := make([]byte, session.MaxTailBytes/2)
	for i := range full.Messages {
		full.Messages[i] = session.NewMessage{Body: huge, Role: "user"}
	}
	if _, _, err := store.CreateWith(t.Context(), full, session.Change{}); !errors.Is(err, session.ErrTooManyMessages) {
		t.Errorf("messages that are too many: %v", err)
	}
	if _, err := store.Session(t.Context(), full.Session); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("the session is there: %v", err)
	}
}

func TestASliceReadsAsManyPagesOfALongLogAsOfAShortOne(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	read := map[string]func(descending bool) int{}
	for name, n := range map[string]int{"short": 40, "long": 5_000} {
		at := newSession(t, store, tenant, name)
		for range n / min(n, 1000) {
			var messages []session.NewMessage
			for i := range min(n, 1000) {
				messages = append(messages, message(fmt.Sprintf("%0500d", i), 0))
			}
			mustAppend(t, store, batch(at, messages...))
		}
		found, err := store.Session(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		read[name] = func(descending bool) int {
			return pages(t, store, tenant, postgres.Range{Descending: descending}.SQL(),
				[16]byte(tenant), [16]byte(found.Key), int64(n/2), int64(0), 10, int64(1<<20))
		}
	}
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			analyze(t, store)
		}
		for _, descending := range []bool{false, true} {
			if few, many := read["short"](descending), read["long"](descending); many > few+10 || few > 40 {
				t.Errorf("analyzed %v, descending %v: %d pages of 40 messages, %d of 5,000", analyzed, descending, few, many)
			}
		}
	}
}

// Appends, removals and compactions of one session, all at once: whatever their order, no checkpoint covers what was
// removed, and the counters are those of the view.
func TestRemovalsUnderLoadKeepTheCountersRight(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("a", 10)))
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for range 20 {
				mustAppend(t, store, batch(at, texts("b", "c")...))
			}
		})
		group.Go(func() {
			for range 15 {
				removeNewest(t, store, at)
			}
		})
	}
	group.Go(func() {
		for range 30 {
			compactAll(t, store, at)
		}
	})
	group.Wait()
	checkCounters(t, store, at)
}

// checkCounters compares the counters of a session with its log and its newest checkpoint, as compactAll makes it.
func checkCounters(t *testing.T, store *postgres.Store, at session.Address) {
	t.Helper()
	found, live, err := store.Messages(t.Context(), at, postgres.Range{Limit: 1000, Bytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := store.Snapshot(t.Context(), session.Key{Tenant: at.Tenant, Key: found.Key})
	if err != nil {
		t.Fatal(err)
	}
	var context, tail, through int64
	if snap.Base != nil {
		context, through = snap.Base.Tokens, snap.Base.Through
	}
	behind, err := store.Window(t.Context(), snap.Key, through, snap.LastSeq)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range behind {
		context, tail = context+m.Tokens, tail+int64(len(m.Body))
	}
	if c := countersOf(t, store, at); c.Context != context || c.Tail != tail || found.TotalTokens != int64(10*len(live)) {
		t.Errorf("%+v and %d tokens, but the view has %d tokens, its tail %d bytes, and the log %d messages", c, found.TotalTokens, context, tail, len(live))
	}
	if snap.Base != nil {
		covered := slices.IndexFunc(live, func(m session.Message) bool { return m.Seq > snap.Base.Through })
		if covered < 0 {
			covered = len(live)
		}
		if string(snap.Base.Body) != fmt.Sprint(covered) && snap.Base.Through > 0 {
			t.Errorf("the checkpoint covers %s messages, of which %d are left", snap.Base.Body, covered)
		}
	}
}

func removeNewest(t *testing.T, store *postgres.Store, at session.Address) {
	_, newest, err := store.Messages(t.Context(), at, postgres.Range{Limit: 1, Descending: true, Bytes: 1})
	if err != nil {
		t.Error(err)
		return
	}
	if len(newest) == 0 {
		return
	}
	if _, _, err := store.Remove(t.Context(), at, newest[0].Seq, nil); err != nil && !errors.Is(err, session.ErrNotFound) {
		t.Error(err)
	}
}

// compactAll commits a checkpoint of all messages, whose body is their number.
func compactAll(t *testing.T, store *postgres.Store, at session.Address) {
	found, err := store.Session(t.Context(), at)
	if err != nil {
		t.Error(err)
		return
	}
	key := session.Key{Tenant: at.Tenant, Key: found.Key}
	snap, err := store.Snapshot(t.Context(), key)
	if err != nil {
		return
	}
	log, err := store.Window(t.Context(), key, 0, snap.LastSeq)
	if err != nil || len(log) == 0 {
		return
	}
	o := postgres.Outcome{Run: session.Run{ID: uuid.Must(uuid.NewV7()), State: session.RunDone}, LastSeq: snap.LastSeq, Saved: snap.ContextTokens - 5}
	if snap.Base != nil {
		o.Base = snap.Base.N
	}
	o.Checkpoint = &postgres.Checkpoint{
		Through: log[len(log)-1].Seq, Tokens: 5, Body: fmt.Append(nil, len(log)), Size: 9, State: []byte("x"), Units: []byte(`[]`),
		Manifest: []byte(`[]`), Policy: []byte(`{}`), EngineVersion: 1,
	}
	if err := store.CommitCheckpoint(t.Context(), key, o, noJob); err != nil && !errors.Is(err, session.ErrStale) {
		t.Error(err)
	}
}
