package postgres_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

func TestAppendNumbersMessagesDenselyAndCountsTokens(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	first := mustAppend(t, store, batch(at, message("a", 10), message("b", 20)))
	second := mustAppend(t, store, batch(at, message("c", 5)))
	want := []session.Appended{
		{FirstSeq: 1, LastSeq: 2, Tokens: 30, ContextTokens: 30, TotalTokens: 30, Compaction: session.CompactionNone},
		{FirstSeq: 3, LastSeq: 3, Tokens: 5, ContextTokens: 35, TotalTokens: 35, Compaction: session.CompactionNone},
	}
	if diff := cmp.Diff(want, []session.Appended{first, second}); diff != "" {
		t.Error(diff)
	}
}

func TestAppendRefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("a", 10)))
	seen := int64(7)
	tests := map[string]struct {
		append session.Append
		want   error
	}{
		"a session that is not there": {batch(session.Address{Tenant: tenant, ID: "other"}, message("a", 1)), session.ErrNotFound},
	}
	for name, test := range tests {
		if _, _, err := store.Append(t.Context(), test.append); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
	stale := batch(at, message("b", 1))
	stale.ExpectedSeq = &seen
	var staleErr *session.StaleError
	if _, _, err := store.Append(t.Context(), stale); !errors.As(err, &staleErr) || staleErr.Current != 1 {
		t.Errorf("expected_seq 7 of a session with 1 message: %v", err)
	}
	if found, err := store.Session(t.Context(), at); err != nil || found.LastSeq != 1 || found.ContextTokens != 10 {
		t.Errorf("refused appends left %+v, %v", found, err)
	}
}

// An append that one statement decides has its view from the same round trip; any other leaves it to the caller.
func TestAnAppendReadsItsViewBehindIt(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	a, b := message("a", 10), message("b", 10)
	b.ClientID = "b"
	into := &postgres.View{}
	for i, step := range []struct {
		append session.Append
		read   bool
		tail   string
	}{
		{batch(at, a), true, string(a.Body)},
		{batch(at, b), true, string(a.Body) + "," + string(b.Body)},
		{batch(at, b), false, ""}, // it was appended before
		{batch(at, a), true, string(a.Body) + "," + string(b.Body) + "," + string(a.Body)},
	} {
		view := &postgres.Viewing{Into: into}
		done, _, err := store.AppendAndView(t.Context(), step.append, view)
		if err != nil || view.Done != step.read {
			t.Fatalf("%d: %+v, the view was read: %t, %v", i, done, view.Done, err)
		}
		if step.read && (into.LastSeq != done.LastSeq || string(into.Tail) != step.tail) {
			t.Errorf("%d: seq %d of %d, tail %s, want %s", i, into.LastSeq, done.LastSeq, into.Tail, step.tail)
		}
	}
}

func TestABatchSentAgainWithItsClientIDsIsAReplay(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	a, b, c := message("a", 10), message("b", 20), message("c", 30)
	a.ClientID, b.ClientID, c.ClientID = "1", "2", "3"
	mustAppend(t, store, batch(at, message("before", 1)))
	first := mustAppend(t, store, batch(at, a, b))
	again := mustAppend(t, store, batch(at, a, b))
	if !again.Replayed || again.FirstSeq != first.FirstSeq || again.LastSeq != first.LastSeq || again.Tokens != 30 {
		t.Errorf("first %+v, again %+v", first, again)
	}
	other := message("other", 10)
	other.ClientID = "1"
	for name, messages := range map[string][]session.NewMessage{
		"other bytes": {other, b}, "a new one behind": {a, b, c}, "a new one before": {c, a, b}, "another order": {b, a}, "one without": {a, message("b", 20)},
	} {
		if _, _, err := store.Append(t.Context(), batch(at, messages...)); !errors.Is(err, session.ErrClientIDReused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if found, err := store.Session(t.Context(), at); err != nil || found.LastSeq != 3 {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestABatchWithSomeClientIDsSentAgainIsAReplay(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	a, b, c := message("a", 1), message("b", 1), message("c", 1)
	b.ClientID = "b"
	mustAppend(t, store, batch(at, message("before", 1)))
	first := mustAppend(t, store, batch(at, a, b, c))
	again := mustAppend(t, store, batch(at, a, b, c))
	if !again.Replayed || again.FirstSeq != first.FirstSeq || again.LastSeq != first.LastSeq {
		t.Errorf("first %+v, again %+v", first, again)
	}
	if _, _, err := store.Append(t.Context(), batch(at, message("other", 1), b, c)); !errors.Is(err, session.ErrClientIDReused) {
		t.Errorf("with another first message: %v", err)
	}
}

func TestATailThatNoViewCouldHoldIsRefused(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	err := execInTenant(t, store, tenant, `UPDATE sessions SET tail_bytes = $2 WHERE tenant_id = $1`, [16]byte(tenant), session.MaxTailBytes-10)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.Append(t.Context(), batch(at, message("more than ten bytes", 1))); !errors.Is(err, session.ErrTooManyMessages) {
		t.Errorf("an append over the limit: %v", err)
	}
}

func TestAnIdempotencyKeyHasOneEffect(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	a := batch(at, message("a", 10))
	a.Idempotency = &session.Idempotency{Key: "k", Route: "append", Digest: sha256.Sum256([]byte("a"))}
	answers := make([]session.Appended, 32)
	replays := make([]bool, len(answers))
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() {
			var err error
			if answers[i], replays[i], err = store.Append(t.Context(), a); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	first := 0
	for i := range answers {
		if !replays[i] {
			first++
		}
		if diff := cmp.Diff(answers[0], answers[i]); diff != "" {
			t.Error(diff)
		}
	}
	if first != 1 {
		t.Errorf("%d of %d requests were not replays, want 1", first, len(answers))
	}
	a.Idempotency = &session.Idempotency{Key: "k", Route: "append", Digest: sha256.Sum256([]byte("b"))}
	if _, _, err := store.Append(t.Context(), a); !errors.Is(err, session.ErrIdempotencyReused) {
		t.Errorf("the key with another request: %v", err)
	}
}

func TestARefusedAppendDoesNotUseUpItsIdempotencyKey(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	wrong := int64(9)
	a := batch(at, message("a", 10))
	a.ExpectedSeq, a.Idempotency = &wrong, &session.Idempotency{Key: "k", Route: "append", Digest: sha256.Sum256([]byte("a"))}
	if _, _, err := store.Append(t.Context(), a); err == nil {
		t.Fatal("a stale append was accepted")
	}
	a.ExpectedSeq = nil
	if done, replayed, err := store.Append(t.Context(), a); err != nil || replayed || done.LastSeq != 1 {
		t.Errorf("%+v, replayed %v, %v", done, replayed, err)
	}
}

func TestManyWritersOnOneSessionLeaveNoGapAndNoDouble(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	const writers, each = 8, 40
	seqs := make([][]int64, writers)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				done, _, err := store.Append(t.Context(), batch(at, message(fmt.Sprint(w, i), 1), message(fmt.Sprint(w, i), 1)))
				if err != nil {
					t.Error(err)
					return
				}
				seqs[w] = append(seqs[w], done.FirstSeq, done.LastSeq)
			}
		})
	}
	group.Wait()
	all := slices.Concat(seqs...)
	slices.Sort(all)
	for i, seq := range all {
		if seq != int64(i+1) {
			t.Fatalf("seq %d stands at %d", seq, i+1)
		}
	}
}

func TestOfWritersWithTheSameExpectedSeqOneWins(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	for round := range int64(20) {
		var won, lost sync.Map
		var group sync.WaitGroup
		for w := range 8 {
			group.Go(func() {
				a := batch(at, message(fmt.Sprint(round, w), 1))
				a.ExpectedSeq = &round
				var stale *session.StaleError
				if _, _, err := store.Append(t.Context(), a); err == nil {
					won.Store(w, true)
				} else if errors.As(err, &stale) {
					lost.Store(w, true)
				} else {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if n := size(&won); n != 1 || size(&lost) != 7 {
			t.Fatalf("round %d: %d winners, %d losers", round, n, size(&lost))
		}
	}
}

func size(m *sync.Map) (n int) {
	m.Range(func(any, any) bool { n++; return true })
	return n
}

func TestTheAppendThatCrossesTheTriggerInsertsTheOneJob(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	var got []session.Compaction
	for _, tokens := range []int{700, 99, 1, 100, 49, 1, 500} { // 700 799 | 800 900 949 | 950 1450
		got = append(got, mustAppend(t, store, batch(at, message("x", tokens))).Compaction)
	}
	want := []session.Compaction{"none", "none", "queued", "none", "none", "already_queued", "none"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := liveJobs(t, store); n != 1 {
		t.Errorf("%d live jobs, want 1", n)
	}
	runs, err := store.Runs(t.Context(), at, session.Page{Limit: 10})
	if err != nil || len(runs) != 1 || runs[0].Cause != "threshold" || runs[0].State != session.RunQueued {
		t.Errorf("runs %+v, %v", runs, err)
	}
}

func TestManyWritersAcrossTheTriggerInsertTheOneJob(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				mustAppend(t, store, batch(at, message("x", 10)))
			}
		})
	}
	group.Wait()
	if n := liveJobs(t, store); n != 1 {
		t.Errorf("%d live jobs, want 1", n)
	}
}

func TestAMessageThatCrossedTheTriggerBySQLDoesSoInGo(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	for i, tokens := range []int{799, 800, 801, 949, 950, 951, 5000} {
		at := newSession(t, store, tenant, fmt.Sprint("s", i))
		done := mustAppend(t, store, batch(at, message("x", tokens)))
		if due := tokens >= 800; due != (done.Compaction == session.CompactionQueued) {
			t.Errorf("%d tokens: %s", tokens, done.Compaction)
		}
	}
}

func TestBytesComeBackAsTheyCameIn(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	bodies := []string{
		`{"role":"tool","tool_call_id":"c","content":"a\u0000b"}`, `{"role":"tool","tool_call_id":"c","content":"\ud800 lone"}`,
		`{"role":"user","content":"x","n":1e400}`, `{"role":"user","role":"user","content":"twice"}`, "{ \"role\" :\t\"user\",\n \"content\":\"spaces\" }",
		`{"role":"tool","tool_call_id":"c","content":""}`, `{"role":"tool","tool_call_id":"c","content":[]}`, `{"role":"tool","content":null}`,
	}
	var messages []session.NewMessage
	for _, body := range bodies {
		messages = append(messages, session.NewMessage{Body: []byte(body), Role: "to\x00ol", Calls: []string{"a\x00", "\xff"}, Answers: []string{"c", "c"}, Tokens: 1})
	}
	mustAppend(t, store, batch(at, messages...))
	_, found, err := store.Messages(t.Context(), at, postgres.Range{Removed: true, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found {
		got = append(got, string(m.Body))
	}
	if diff := cmp.Diff(bodies, got); diff != "" {
		t.Error(diff)
	}
}

func TestOneEmptyCallIDIsNotTheSameAsNone(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	with, without := message("a", 1), message("b", 1)
	with.Calls, with.Answers = []string{""}, []string{"x", "", "y"}
	mustAppend(t, store, batch(at, with, without))
	var got [][]string
	err := postgres.Query(t.Context(), store, tenant, `SELECT calls, answers FROM messages ORDER BY seq`, nil, func(rows pgx.Rows) error {
		for rows.Next() {
			var calls, answers []string
			if err := rows.Scan(&calls, &answers); err != nil {
				return err
			}
			got = append(got, calls, answers)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{""}, {"x", "", "y"}, nil, nil}, got); diff != "" {
		t.Error(diff)
	}
}

// Ids of calls are what a client has sent, whatever an array of PostgreSQL would read in them.
func TestIDsOfCallsAreStoredAsTheyAre(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	m := message("a", 1)
	m.Calls = []string{``, `NULL`, `a"b`, `\`, `{x,y}`, ` z `, `ü`}
	m.Answers = []string{``}
	mustAppend(t, store, batch(at, m))
	var calls, answers []string
	inTenant(t, store, tenant, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT calls, answers FROM messages WHERE tenant_id = $1`, tenant).Scan(&calls, &answers)
	})
	if !slices.Equal(calls, m.Calls) || !slices.Equal(answers, m.Answers) {
		t.Errorf("stored %q and %q", calls, answers)
	}
}

// One statement does appends with a usage, with an exact count and with neither, each as it would be alone.
func TestAppendsOfOneStatementAreMeasuredEachInItsWay(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	appends := func(prefix string) (all []session.Append) {
		for _, id := range []string{"neither", "usage", "exact"} {
			a := batch(newSession(t, store, tenant, prefix+id), message("a", 100))
			switch id {
			case "usage":
				a.Usage = &session.Usage{InputTokens: 170}
			case "exact":
				a.ExactTokens = new(int64(150))
			}
			all = append(all, a)
		}
		return all
	}
	for _, a := range appends("alone ") {
		mustAppend(t, store, a)
	}
	type row struct {
		ID                     string
		Calibration            float32
		Unseen, Counted, Exact int64
		Usage                  bool
	}
	var rows []row
	sql, args := postgres.ManyStatement(appends("group ")...)
	inTenant(t, store, tenant, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), sql, args...); err != nil {
			return err
		}
		found, err := tx.Query(t.Context(), `
			SELECT id, calibration, unseen_tokens, counted_tokens, exact_tokens, last_usage IS NOT NULL
			  FROM sessions
			 WHERE tenant_id = $1 AND last_seq = 1
			 ORDER BY id`, tenant)
		if err != nil {
			return err
		}
		rows, err = pgx.CollectRows(found, pgx.RowToStructByPos[row])
		return err
	})
	want := []row{
		{"exact", 1.5, 0, 100, 150, false},
		{"neither", 1, 0, 0, 0, false},
		{"usage", 1, 170, 0, 0, true},
	}
	for i, prefix := range []string{"alone ", "group "} {
		for j, w := range want {
			w.ID = prefix + w.ID
			if at := i*len(want) + j; at >= len(rows) || rows[at] != w {
				t.Errorf("%s: want %+v of %+v", w.ID, w, rows)
			}
		}
	}
}
