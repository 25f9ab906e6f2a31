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
	"github.com/varve-dev/varve/internal/wire/provider"
)

// made commits a checkpoint with this number of tokens, on base, through message through.
func made(t testing.TB, store *postgres.Store, at session.Address, base int, through, tokens int64) error {
	t.Helper()
	found, err := store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	separate := int64(0) // the system message, if it is not among the view's messages
	if provider.SeparatesSystem(found.Format) {
		separate = sum(t, store, at, 1) - sum(t, store, at, 2)
	}
	return store.CommitCheckpoint(t.Context(), session.Key{Tenant: at.Tenant, Key: found.Key}, postgres.Outcome{
		Run: session.Run{ID: uuid.Must(uuid.NewV7()), State: session.RunDone}, Base: base, LastSeq: found.LastSeq, Under: under(found),
		Saved: found.ContextTokens - separate - tokens - sum(t, store, at, through+1),
		Checkpoint: &postgres.Checkpoint{
			Through: through, Tokens: tokens, Body: fmt.Appendf(nil, "body of %d", base+1), Size: 9, State: []byte("state"), Units: []byte(`[{},{}]`),
			Manifest: fmt.Appendf(nil, `[{"seq":%d}]`, base+1), OpenCalls: []string{"c"}, Policy: []byte(`{"a": 1}`), EngineVersion: 1,
		},
	}, noJob)
}

// sum returns the tokens of a session's messages from seq on.
func sum(t testing.TB, store *postgres.Store, at session.Address, from int64) (tokens int64) {
	t.Helper()
	_, log, err := store.Messages(t.Context(), at, postgres.Range{After: from - 1, Removed: true, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range log {
		tokens += int64(m.Tokens)
	}
	return tokens
}

// counters are what a restoration has to set right beside the view.
type counters struct {
	Context, Tail, Floor int64
	Size, Wake           int
}

func countersOf(t testing.TB, store *postgres.Store, at session.Address) (c counters) {
	t.Helper()
	err := postgres.Query(t.Context(), store, at.Tenant, `
		SELECT context_tokens, tail_bytes, floor_tokens, checkpoint_size, armed_threshold
		  FROM sessions
		 WHERE tenant_id = $1 AND id = $2`, []any{[16]byte(at.Tenant), at.ID}, scanOne(&c.Context, &c.Tail, &c.Floor, &c.Size, &c.Wake))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustRestore(t testing.TB, store *postgres.Store, at session.Address, n int) session.CheckpointRecord {
	t.Helper()
	restored, _, err := store.Restore(t.Context(), at, n, nil)
	if err != nil {
		t.Fatal(err)
	}
	return restored
}

func TestARestoredSessionIsTheOldCheckpointAndAllMessagesAfterIt(t *testing.T) {
	t.Parallel()
	for _, format := range session.Formats() {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			store, tenant := newStore(t)
			at := newSession(t, store, tenant, "s")
			system := session.NewMessage{Body: []byte(`{"role":"system","content":"be brief"}`), Role: "system", Tokens: 3, StartsUnit: true, Pinned: true}
			messages := []session.NewMessage{system}
			for i := range 6 {
				messages = append(messages, message(fmt.Sprint(i), 10))
			}
			mustAppend(t, store, session.Append{Session: at, Format: format, Messages: messages})
			separate := 0
			if provider.SeparatesSystem(format) {
				separate = system.Tokens
			}
			if err := errors.Join(made(t, store, at, 0, 3, int64(8-separate)), made(t, store, at, 1, 6, int64(10-separate))); err != nil {
				t.Fatal(err)
			}
			before := countersOf(t, store, at)
			restored := mustRestore(t, store, at, 1)
			if restored.N != 3 || restored.Base != 1 || restored.RestoredFrom == nil || *restored.RestoredFrom != 1 || restored.Through != 3 || !restored.HasBody {
				t.Errorf("restored %+v", restored)
			}
			view, err := store.View(t.Context(), at, postgres.Version{})
			if err != nil {
				t.Fatal(err)
			}
			tail := make([]string, 0, 4)
			bytes := int64(0)
			for _, m := range messages[3:] {
				tail = append(tail, string(m.Body))
				bytes += int64(len(m.Body))
			}
			if view.Checkpoint != 3 || view.Through != 3 || string(view.Body) != "body of 1" || string(view.Tail) != strings.Join(tail, ",") {
				t.Errorf("the view is %d through %d: %s + %s", view.Checkpoint, view.Through, view.Body, view.Tail)
			}
			want := counters{Context: 8 + 4*10, Tail: bytes, Size: 9, Wake: 1}
			if diff := cmp.Diff(want, countersOf(t, store, at)); diff != "" {
				t.Error(diff)
			}
			runs, err := store.Runs(t.Context(), at, session.Page{Limit: 1})
			if err != nil || runs[0].ID != restored.Run || runs[0].Cause != "restore" || runs[0].State != session.RunDone || *runs[0].Checkpoint != 3 ||
				*runs[0].TokensBefore != before.Context || *runs[0].TokensAfter != want.Context {
				t.Errorf("runs %+v, %v", runs, err)
			}
			if again := mustRestore(t, store, at, 2); again.N != 4 || again.Through != 6 || countersOf(t, store, at) != before {
				t.Errorf("and back: %+v, %+v", again, countersOf(t, store, at))
			}
		})
	}
}

func TestACompactionThatWasPlannedBeforeARestorationIsStale(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("a", 10), message("b", 10), message("c", 10)))
	if err := errors.Join(made(t, store, at, 0, 1, 5), made(t, store, at, 1, 2, 5)); err != nil {
		t.Fatal(err)
	}
	mustRestore(t, store, at, 1)
	if err := made(t, store, at, 2, 3, 5); !errors.Is(err, session.ErrStale) {
		t.Errorf("a compaction of checkpoint 2: %v", err)
	}
	if err := made(t, store, at, 3, 3, 5); err != nil {
		t.Errorf("a compaction of the restored one: %v", err)
	}
}

func TestARestoredSessionIsCompactedOnlyOnceItHasGrown(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("a", 450), message("b", 450)))
	loseJobs(t, store)
	if err := errors.Join(made(t, store, at, 0, 1, 440), made(t, store, at, 1, 2, 20)); err != nil {
		t.Fatal(err)
	}
	loseJobs(t, store) // the one that follows the first checkpoint
	mustRestore(t, store, at, 1)
	if c := countersOf(t, store, at); c.Context != 890 || c.Floor != 890 {
		t.Errorf("%+v", c)
	}
	if n, err := sweep(t, store); err != nil || n != 0 || liveJobs(t, store) != 0 {
		t.Errorf("the sweep inserted %d, %v", n, err)
	}
	if done := mustAppend(t, store, batch(at, message("c", 49))); done.Compaction != session.CompactionNone {
		t.Errorf("49 tokens more: %s", done.Compaction)
	}
	if done := mustAppend(t, store, batch(at, message("d", 1))); done.Compaction != session.CompactionQueued {
		t.Errorf("50 tokens more: %s", done.Compaction)
	}
}

func TestARestoredCheckpointKeepsItsBodyUntilAnotherIsRestored(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("a", 10)))
	bodies := func() (kept []int) {
		list, err := store.Checkpoints(t.Context(), at, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			if c.HasBody {
				kept = append(kept, c.N)
			}
		}
		slices.Sort(kept)
		return kept
	}
	compact := func(from, to int) {
		for n := from; n <= to; n++ {
			if err := made(t, store, at, n-1, 1, 5); err != nil {
				t.Fatal(err)
			}
		}
	}
	compact(1, 12)
	if _, _, err := store.Restore(t.Context(), at, 2, nil); !errors.Is(err, session.ErrPruned) {
		t.Errorf("restoring a pruned checkpoint: %v", err)
	}
	if _, err := store.OlderView(t.Context(), at, postgres.Older{Checkpoint: 2, Bare: true}, postgres.ViewRead{}); !errors.Is(err, session.ErrPruned) {
		t.Errorf("the view of a pruned checkpoint: %v", err)
	}
	for _, n := range []int{13, 99} {
		if _, _, err := store.Restore(t.Context(), at, n, nil); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("restoring checkpoint %d: %v", n, err)
		}
	}
	mustRestore(t, store, at, 3) // the oldest that can be: it loses its body by this
	if diff := cmp.Diff([]int{4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, bodies()); diff != "" {
		t.Error(diff)
	}
	compact(14, 30)
	if diff := cmp.Diff([]int{13, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30}, bodies()); diff != "" {
		t.Error(diff)
	}
	if again := mustRestore(t, store, at, 13); again.N != 31 || again.Base != 13 {
		t.Errorf("restored again: %+v", again)
	}
	if diff := cmp.Diff([]int{22, 23, 24, 25, 26, 27, 28, 29, 30, 31}, bodies()); diff != "" {
		t.Error(diff)
	}
	if view, err := store.OlderView(t.Context(), at, postgres.Older{Checkpoint: 31, Bare: true}, postgres.ViewRead{}); err != nil || string(view.Body) != "body of 3" {
		t.Errorf("%s, %v", view.Body, err)
	}
}

func TestALineageGoesBackToTheLogThroughRestorations(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("a", 10)))
	for base := range 3 {
		if err := made(t, store, at, base, 1, 5); err != nil {
			t.Fatal(err)
		}
	}
	mustRestore(t, store, at, 2)
	if err := made(t, store, at, 4, 1, 5); err != nil {
		t.Fatal(err)
	}
	found, err := store.Lineages(t.Context(), at, 0, 3)
	if err != nil || len(found) != 2 {
		t.Fatal(found, err)
	}
	var got [2][]string
	for i, l := range found {
		for _, m := range l.Manifests {
			got[i] = append(got[i], strings.ReplaceAll(string(m), " ", ""))
		}
	}
	want := [2][]string{{`[{"seq":5}]`, `[]`, `[{"seq":2}]`, `[{"seq":1}]`}, {`[{"seq":3}]`, `[{"seq":2}]`, `[{"seq":1}]`}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if l := found[0]; l.N != 5 || l.Units != 2 || l.OpenCalls != 1 || string(l.Policy) != `{"a": 1}` {
		t.Errorf("%+v", l)
	}
	if _, err := store.Lineages(t.Context(), at, 1, 6); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a checkpoint that is not there: %v", err)
	}
}

func TestARestorationWithAKeyIsDoneOnce(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("a", 10)))
	if err := made(t, store, at, 0, 1, 5); err != nil {
		t.Fatal(err)
	}
	id := &session.Idempotency{Key: "k", Route: "r"}
	var group sync.WaitGroup
	var answers [8]session.CheckpointRecord
	for i := range answers {
		group.Go(func() {
			var err error
			if answers[i], _, err = store.Restore(t.Context(), at, 1, id); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, a := range answers {
		if a.N != 2 || !a.CreatedAt.Equal(answers[0].CreatedAt) {
			t.Errorf("restored %+v, another time %+v", a, answers[0])
		}
	}
}

// restoreNewest restores the newest checkpoint; one that was overtaken by many others meanwhile has no body any more.
func restoreNewest(t *testing.T, store *postgres.Store, at session.Address) (n int) {
	for {
		found, err := store.Session(t.Context(), at)
		if err != nil {
			t.Error(err)
			return 0
		}
		restored, _, err := store.Restore(t.Context(), at, found.Checkpoint, nil)
		if !errors.Is(err, session.ErrPruned) {
			if err != nil {
				t.Error(err)
			}
			return restored.N
		}
	}
}

// Appends, compactions and restorations of one session, all at once: whatever their order, every checkpoint has a number
// of its own, and the counters are those of the view.
func TestRestorationsUnderLoadKeepTheCountersRight(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("a", 10)))
	if err := made(t, store, at, 0, 1, 5); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	restored := make(chan int, 40)
	for range 4 {
		group.Go(func() {
			for range 10 {
				restored <- restoreNewest(t, store, at)
			}
		})
		group.Go(func() {
			for range 20 {
				mustAppend(t, store, batch(at, message("b", 10)))
			}
		})
	}
	group.Go(func() {
		for range 20 {
			found, err := store.Session(t.Context(), at)
			if err != nil {
				t.Error(err)
			}
			err = store.CommitCheckpoint(t.Context(), session.Key{Tenant: at.Tenant, Key: found.Key}, postgres.Outcome{
				Run: session.Run{ID: uuid.Must(uuid.NewV7()), State: session.RunUnchanged}, Base: found.Checkpoint, LastSeq: found.LastSeq,
			}, noJob)
			if err != nil && !errors.Is(err, session.ErrStale) {
				t.Error(err)
			}
		}
	})
	group.Wait()
	close(restored)
	numbers := map[int]bool{}
	for n := range restored {
		numbers[n] = true
	}
	view, err := store.View(t.Context(), at, postgres.Version{})
	if err != nil || len(numbers) != 40 || view.Checkpoint != 41 || view.Through != 1 || string(view.Body) != "body of 1" {
		t.Errorf("%d restorations made checkpoints up to %d through %d: %s, %v", len(numbers), view.Checkpoint, view.Through, view.Body, err)
	}
	if c := countersOf(t, store, at); c.Context != 5+800 || c.Tail != int64(len(view.Tail)-79) {
		t.Errorf("%+v, but the tail has %d bytes", c, len(view.Tail)-79)
	}
}

// putResult persists a result of the only session, with a body of its own or in its message.
func putResult(t *testing.T, store *postgres.Store, tenant uuid.UUID, ref string, seq int, own bool) {
	t.Helper()
	err := execInTenant(t, store, tenant, `
		WITH body AS (
		    INSERT INTO result_bodies (tenant_id, session_key, id, sha256)
		    SELECT tenant_id, key, gen_random_uuid(), sha256($2::text::bytea)
		      FROM sessions
		     WHERE tenant_id = $1
		    RETURNING tenant_id, session_key, id, sha256
		)
		INSERT INTO results (tenant_id, session_key, ref, seq, part, tool_name, call_id, category, media_type, bytes, lines, tokens, sha256, body_id)
		SELECT tenant_id, session_key, $2, $3, 0, '', '', '', '', 0, 0, 0, sha256, CASE WHEN $4 THEN id END
		  FROM body`, [16]byte(tenant), ref, seq, own)
	if err != nil {
		t.Fatal(err)
	}
}

func TestACheckpointThatLeavesNothingToPackAsksForNoPacking(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("a", 10), message("b", 10), message("c", 10), message("d", 10)))
	for seq, own := range []bool{true, false, true, false} {
		putResult(t, store, tenant, fmt.Sprintf("r%d.0-aaaa", seq+1), seq+1, own)
	}
	found, err := store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	for base, c := range []struct {
		ref  string
		asks bool
	}{
		{"r3.0-aaaa", true},  // there are no packs yet
		{"r2.0-aaaa", false}, // its message is packed and has its bytes
		{"r4.0-aaaa", false}, // its message is not packed
		{"r1.0-aaaa", true},  // a pack can leave it out
	} {
		if err := commit(t, store, at, base, int64(min(base+2, 4)), "x", c.ref); err != nil {
			t.Fatal(err)
		}
		asked := rows(t, store, "river_job WHERE kind = 'offload' AND finalized_at IS NULL") > 0
		missed, err := store.RequeueOffloads(t.Context(), tenant)
		if asked != c.asks || missed > 0 || err != nil {
			t.Errorf("a checkpoint with %s asked for packing: %v; the sweep asked for %d, %v", c.ref, asked, missed, err)
		}
		packAll(t, store, session.Key{Tenant: tenant, Key: found.Key})
	}
}

// packAll does what the job does that packs a session.
func packAll(t *testing.T, store *postgres.Store, key session.Key) {
	t.Helper()
	plan, n, err := store.PlanPack(t.Context(), key)
	if err == nil && plan != nil {
		err = store.CommitPack(t.Context(), plan, []byte("packed"))
	}
	if err == nil {
		_, err = store.EndOffload(t.Context(), key, n, noJob)
	}
	if err == nil {
		_, err = store.Pool().Exec(t.Context(), `UPDATE river_job SET state = 'completed', finalized_at = now()`)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A job that waits in the queue was asked for by a view that is gone once the session is restored.
func TestAQueuedRunLeavesARestoredSessionAloneUnlessSomebodyWantsIt(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("a", 450), message("b", 300)))
	if err := errors.Join(made(t, store, at, 0, 1, 440), made(t, store, at, 1, 2, 20)); err != nil {
		t.Fatal(err)
	}
	if done := mustAppend(t, store, batch(at, message("c", 790))); done.Compaction != session.CompactionQueued {
		t.Fatal(done)
	}
	mustRestore(t, store, at, 1)
	newest := func(cause string) session.Run {
		runs, err := store.Runs(t.Context(), at, session.Page{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(runs, func(r session.Run) bool { return r.Cause == cause })
		return runs[i]
	}
	found, err := store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	key := session.Key{Tenant: tenant, Key: found.Key}
	if _, err := store.StartRun(t.Context(), key, newest("threshold").ID); !errors.Is(err, session.ErrEnded) {
		t.Errorf("a run that the trigger asked for: %v", err)
	}
	if run := newest("threshold"); run.State != session.RunPostponed || run.Reason == "" {
		t.Errorf("%+v", run)
	}
	loseJobs(t, store)
	run, _, err := store.Compact(t.Context(), at, nil)
	if err != nil {
		t.Fatal(err)
	}
	if cause, err := store.StartRun(t.Context(), key, run.ID); err != nil || cause != "manual" {
		t.Errorf("a run that somebody wants: %s, %v", cause, err)
	}
}
