package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// identified returns messages with these texts, of 10 tokens each, whose client ids are what is before a colon, if any.
func identified(names ...string) (messages []session.NewMessage) {
	for _, name := range names {
		m := message(name, 10)
		m.ClientID, _, _ = strings.Cut(name, ":")
		messages = append(messages, m)
	}
	return messages
}

// replacement returns a replacement of the messages from seq from on, made for the log as it is now.
func replacement(t testing.TB, store *postgres.Store, at session.Address, from int64, messages ...session.NewMessage) session.Replacement {
	t.Helper()
	found, err := store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	r := session.Replacement{Session: at, Seen: found.LastSeq, From: from}
	if len(messages) > 0 {
		r.Appends = []session.Append{batch(at, messages...)}
	}
	return r
}

func mustReplace(t testing.TB, store *postgres.Store, r session.Replacement) session.Replaced {
	t.Helper()
	done, _, err := store.Replace(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func TestSupersededMessagesStayInTheLogAndInNoView(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, identified("a", "b:1", "c")...))
	before, _ := shown(t, store, at)
	done := mustReplace(t, store, replacement(t, store, at, 2, identified("b:2", "d")...))
	if done.Superseded != 2 || done.Appended != 2 || *done.FirstSeq != 5 || done.LastSeq != 6 || done.ContextTokens != 30 || done.TotalTokens != 30 {
		t.Errorf("%+v", done)
	}
	after, names := shown(t, store, at)
	if names != "a,b:2,d" || after.Version == before.Version {
		t.Errorf("the view has %s, version %v after %v", names, after.Version, before.Version)
	}
	_, log, err := store.Messages(t.Context(), at, postgres.Range{Removed: true, Limit: 10})
	if err != nil || len(log) != 5 {
		t.Fatalf("%+v, %v", log, err)
	}
	for i, want := range []int64{0, 5, 4, 0, 0} { // the one with its id; the removal
		if log[i].SupersededBy != want || (log[i].RemovedAt != nil) != (want > 0) {
			t.Errorf("message %d: removed at %v, superseded by %d, not %d", log[i].Seq, log[i].RemovedAt, log[i].SupersededBy, want)
		}
	}
}

func TestAReplacementTakesTheSessionBackBeforeTheCompactionsThatCoverIt(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, identified("a", "b", "c", "d", "e", "f")...))
	if err := errors.Join(made(t, store, at, 0, 2, 5), made(t, store, at, 1, 4, 7)); err != nil {
		t.Fatal(err)
	}
	done := mustReplace(t, store, replacement(t, store, at, 3, identified("c")...))
	view, names := shown(t, store, at)
	if view.Checkpoint != 3 || view.Through != 2 || string(view.Body) != "body of 1" || names != "c" || done.ContextTokens != 5+10 {
		t.Errorf("the view is %d through %d with %d tokens: %s + %s", view.Checkpoint, view.Through, done.ContextTokens, view.Body, names)
	}
	if _, _, err := store.Restore(t.Context(), at, 2, nil); !errors.Is(err, session.ErrPruned) {
		t.Errorf("the checkpoint that shows what is superseded can be restored: %v", err)
	}
	mustReplace(t, store, replacement(t, store, at, 1, identified("a")...))
	view, names = shown(t, store, at)
	if view.Checkpoint != 4 || view.Through != 0 || len(view.Body) != 0 || names != "a" || view.Tokens != 10 {
		t.Errorf("the view is %d through %d with %d tokens: %s + %s", view.Checkpoint, view.Through, view.Tokens, view.Body, names)
	}
}

func TestACompactionThatCoversWhatWasSupersededMeanwhileIsStale(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, identified("a", "b", "c")...))
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
	mustReplace(t, store, replacement(t, store, at, 3, identified("c", "d")...))
	key := session.Key{Tenant: tenant, Key: found.Key}
	if err := store.CommitCheckpoint(t.Context(), key, plan(3), noJob); !errors.Is(err, session.ErrStale) {
		t.Errorf("a checkpoint that shows what is superseded: %v", err)
	}
	if err := store.CommitCheckpoint(t.Context(), key, plan(2), noJob); err != nil {
		t.Errorf("one that does not: %v", err)
	}
}

func TestAReplacementIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, identified("a", "b")...))
	moved := replacement(t, store, at, 2, identified("c")...)
	moved.Seen--
	stale := replacement(t, store, at, 2, identified("c")...)
	stale.ExpectedSeq = new(int64)
	missing := replacement(t, store, at, 2, identified("c")...)
	missing.Session.ID = "none"
	large := replacement(t, store, at, 2, session.NewMessage{Role: "user", Body: make([]byte, session.MaxTailBytes)})
	var staleErr *session.StaleError
	for what, test := range map[string]struct {
		replacement session.Replacement
		is          func(error) bool
	}{
		"a log that has moved on":   {moved, func(err error) bool { return errors.Is(err, postgres.ErrMoved) }},
		"another expected_seq":      {stale, func(err error) bool { return errors.As(err, &staleErr) && staleErr.Current == 2 }},
		"no session":                {missing, func(err error) bool { return errors.Is(err, session.ErrNotFound) }},
		"the id of one that stays":  {replacement(t, store, at, 2, identified("a")...), func(err error) bool { return errors.Is(err, session.ErrClientIDReused) }},
		"more than a view may have": {large, func(err error) bool { return errors.Is(err, session.ErrTooManyMessages) }},
	} {
		if _, _, err := store.Replace(t.Context(), test.replacement); !test.is(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, names := shown(t, store, at); names != "a,b" {
		t.Errorf("the view has %s", names)
	}
}

// TestAnAppendThatIsSentAgainBringsNothingBack: its messages may have been superseded since, with or without others
// that have their ids now.
func TestAnAppendThatIsSentAgainBringsNothingBack(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, identified("a")...))
	first := mustAppend(t, store, batch(at, identified("b:1", "c")...))
	mustReplace(t, store, replacement(t, store, at, 2, identified("b:2")...))
	for _, again := range []session.Append{batch(at, identified("b:1", "c")...), batch(at, identified("c")...), batch(at, identified("b:1")...)} {
		done := mustAppend(t, store, again)
		if !done.Replayed || done.LastSeq > first.LastSeq {
			t.Errorf("%+v", done)
		}
	}
	if done := mustAppend(t, store, batch(at, identified("b:2")...)); !done.Replayed || done.FirstSeq != 5 {
		t.Errorf("%+v", done)
	}
	if _, _, err := store.Append(t.Context(), batch(at, identified("b:3")...)); !errors.Is(err, session.ErrClientIDReused) {
		t.Errorf("another message with a known id: %v", err)
	}
	mustReplace(t, store, replacement(t, store, at, 5, identified("b:1", "c")...)) // the branch of before
	if _, names := shown(t, store, at); names != "a,b:1,c" {
		t.Errorf("the view has %s", names)
	}
}

func TestAReplacementWithAKeyIsDoneOnce(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, identified("a", "b")...))
	r := replacement(t, store, at, 2, identified("c")...)
	r.Idempotency = &session.Idempotency{Key: "k", Route: "PUT", Digest: [32]byte{1}}
	for i := range 2 {
		done, replayed, err := store.Replace(t.Context(), r)
		if err != nil || replayed != (i == 1) || done.LastSeq != 4 || done.Superseded != 1 {
			t.Errorf("attempt %d: %+v, %v, %v", i, done, replayed, err)
		}
	}
}

func TestPinsGoWithTheMessageThatIsTheSame(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, identified("a", "b", "c:1")...))
	for _, seq := range []int64{2, 3} {
		if _, err := store.PutPin(t.Context(), at, session.Pin{Ref: fmt.Sprintf("m%d.0", seq), Seq: seq, Part: new(int), Text: "x", Tokens: 1}, 100); err != nil {
			t.Fatal(err)
		}
	}
	mustReplace(t, store, replacement(t, store, at, 2, identified("b", "c:2")...))
	pins, err := store.Pins(t.Context(), at)
	if err != nil || len(pins) != 1 || pins[0].Ref != "m5.0" || pins[0].Seq != 5 {
		t.Errorf("%+v, %v", pins, err)
	}
}

// Appends, removals, replacements and compactions of one session, all at once: whatever their order, no checkpoint
// covers what was superseded, and the counters are those of the view.
func TestReplacementsUnderLoadKeepTheCountersRight(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("a", 10)))
	var group sync.WaitGroup
	for worker := range 2 {
		group.Go(func() {
			for range 20 {
				mustAppend(t, store, batch(at, texts("b", "c")...))
			}
		})
		group.Go(func() {
			for range 10 {
				removeNewest(t, store, at)
				compactAll(t, store, at)
			}
		})
		group.Go(func() {
			for n := range 20 {
				replaceSome(t, store, at, (n+worker)%4, identified(fmt.Sprint("x", n%3), "y")...)
			}
		})
	}
	group.Wait()
	checkCounters(t, store, at)
	found, err := store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.RepairCounters(t.Context(), session.Key{Tenant: tenant, Key: found.Key}, 1); err != nil {
		t.Fatal(err)
	}
	checkCounters(t, store, at)
}

// replaceSome supersedes the newest messages, and appends others.
func replaceSome(t *testing.T, store *postgres.Store, at session.Address, n int, messages ...session.NewMessage) {
	found, newest, err := store.Messages(t.Context(), at, postgres.Range{Limit: 4, Descending: true})
	if err != nil {
		t.Error(err)
		return
	}
	r := session.Replacement{Session: at, Seen: found.LastSeq, Appends: []session.Append{batch(at, messages...)}}
	if n < len(newest) {
		r.From = newest[n].Seq
	}
	_, _, err = store.Replace(t.Context(), r)
	if err != nil && !errors.Is(err, postgres.ErrMoved) && !errors.Is(err, session.ErrClientIDReused) {
		t.Error(err)
	}
}
