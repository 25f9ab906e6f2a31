package replays_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/replays"
	"github.com/varve-dev/varve/internal/session"
)

// longSessions makes sessions of three messages that fill 0.9 of their window.
func longSessions(t *testing.T, store replays.Store, tenant uuid.UUID, ids ...string) {
	t.Helper()
	for _, id := range ids {
		mustAppend(t, store, batch(newSession(t, store, tenant, id), message("a", 300), message("b", 300), message("c", 300)))
	}
}

// twoContenders returns a replay of two contenders without any condition.
func twoContenders() replays.Stored {
	list := []replays.Contender{
		{Name: "default", Source: replays.FromProfile, Policy: json.RawMessage(`{"target":0.5}`)},
		{Name: "never", Source: replays.FromYardstick},
	}
	return replays.Stored{Contenders: list, Sample: 100, Seed: 1, MaxMessages: 1000, MaxBytes: 1 << 20}
}

func newReplay(t *testing.T, store replays.Store, tenant uuid.UUID, r replays.Stored) uuid.UUID {
	t.Helper()
	made, _, err := store.Create(t.Context(), tenant, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made.ID
}

func begin(t *testing.T, store replays.Store, tenant, id uuid.UUID) replays.Stored {
	t.Helper()
	r, err := store.Begin(t.Context(), tenant, id, 0.8)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// endReplay ends a replay as its worker does.
func endReplay(t *testing.T, store replays.Store, tenant, id uuid.UUID) {
	t.Helper()
	if err := store.End(t.Context(), tenant, id, json.RawMessage(`{"equal":[]}`), 0); err != nil {
		t.Fatal(err)
	}
}

func next(t *testing.T, store replays.Store, tenant, id uuid.UUID) replays.Step {
	t.Helper()
	step, err := store.Next(t.Context(), tenant, id)
	if err != nil {
		t.Fatal(err)
	}
	return step
}

func sampled(t *testing.T, store replays.Store, tenant, id uuid.UUID) (ids []string) {
	t.Helper()
	found, err := store.Sessions(t.Context(), tenant, id, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range found {
		ids = append(ids, *s.Session)
	}
	return ids
}

func TestTheSeedDecidesTheSampleOfAReplay(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	for n := range 12 {
		longSessions(t, store, tenant, fmt.Sprint("s", n))
	}
	mustAppend(t, store, batch(newSession(t, store, tenant, "short"), message("a", 799)))
	newSession(t, store, tenant, "empty")
	var samples [][]string
	for _, seed := range []int64{1, 1, 2} {
		r := twoContenders()
		r.Sample, r.Seed = 5, seed
		id := newReplay(t, store, tenant, r)
		if begun := begin(t, store, tenant, id); begun.State != replays.Running || begun.Total != 5 || begun.Matched != 14 || begun.TooShort != 2 {
			t.Errorf("%+v", begun)
		}
		begin(t, store, tenant, id) // a second worker takes no other sample
		samples = append(samples, sampled(t, store, tenant, id))
		endReplay(t, store, tenant, id)
	}
	if !slices.Equal(samples[0], samples[1]) || slices.Equal(samples[0], samples[2]) || len(samples[0]) != 5 {
		t.Errorf("%q", samples)
	}
}

func TestTheWindowsOfAReplayDecideWhichSessionsAreLongEnough(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	longSessions(t, store, tenant, "s")
	for _, windows := range [][]int{{5000, 1100}, {5000, 1200}} {
		r := twoContenders()
		r.Windows = windows
		id := newReplay(t, store, tenant, r)
		longSessions(t, store, tenant, fmt.Sprint("young", windows)) // it does not belong to this replay
		begun := begin(t, store, tenant, id)
		if _, err := store.Delete(t.Context(), session.Address{Tenant: tenant, ID: fmt.Sprint("young", windows)}, nil); err != nil {
			t.Fatal(err)
		}
		if long := windows[1] == 1100; (begun.Total == 1) != long || begun.Matched != 1 || !slices.Equal(begun.Windows, windows) {
			t.Errorf("%+v", begun)
		}
		endReplay(t, store, tenant, id)
	}
}

func TestATenantHasOneReplayAtATime(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	key := &session.Idempotency{Key: "k", Route: "POST /v1/admin/replays"}
	first, _, err := store.Create(t.Context(), tenant, twoContenders(), key)
	if err != nil {
		t.Fatal(err)
	}
	if again, replayed, err := store.Create(t.Context(), tenant, twoContenders(), key); err != nil || !replayed || again.ID != first.ID {
		t.Errorf("%+v, %v, %v", again, replayed, err)
	}
	if _, _, err := store.Create(t.Context(), tenant, twoContenders(), nil); !errors.Is(err, replays.ErrLive) {
		t.Errorf("a second one: %v", err)
	}
	newReplay(t, store, newTenant(t, store, "other"), twoContenders())
	begin(t, store, tenant, first.ID)
	endReplay(t, store, tenant, first.ID)
	newReplay(t, store, tenant, twoContenders())
	if n := countJobs(t, store); n != 3 {
		t.Errorf("%d jobs", n)
	}
}

func TestAnOutcomeOfAReplayIsStoredOnce(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	longSessions(t, store, tenant, "s", "t")
	id := newReplay(t, store, tenant, twoContenders())
	begin(t, store, tenant, id)
	step := next(t, store, tenant, id)
	if step = next(t, store, tenant, id); step.Attempts != 2 || step.Measured != nil || step.Window != 1000 || step.LastSeq != 3 {
		t.Fatalf("%+v", step)
	}
	for _, text := range []string{`{"far":1}`, `{"far":2}`} {
		if err := store.PutOutcome(t.Context(), step, replays.Pair{Contender: 1, Window: 1000}, json.RawMessage(text), "default"); err != nil {
			t.Fatal(err)
		}
	}
	again := next(t, store, tenant, id)
	if again.Key != step.Key || again.Attempts != 1 || !slices.Equal(again.Measured, []replays.Pair{{Contender: 1, Window: 1000}}) {
		t.Errorf("%+v", again)
	}
	if outcomes, err := store.OutcomesOf(t.Context(), tenant, id); err != nil || len(outcomes) != 0 {
		t.Errorf("%s of a session that is not measured yet; %v", outcomes, err)
	}
	if err := store.EndSession(t.Context(), step, "measured", ""); err != nil {
		t.Fatal(err)
	}
	outcomes, err := store.OutcomesOf(t.Context(), tenant, id)
	if err != nil || len(outcomes) != 1 || string(outcomes[0]) != `{"far": 1}` {
		t.Errorf("%s, %v", outcomes, err)
	}
	if other := next(t, store, tenant, id); other.Key == step.Key {
		t.Errorf("%+v was measured", other)
	}
	found, err := store.Read(t.Context(), tenant, id)
	if err != nil || found.Measured != 1 || found.Done() != 1 || found.Total != 2 || found.Outcomes != 1 || *found.Contender != "default" {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestACancelledReplayStoresNoOutcome(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	longSessions(t, store, tenant, "s")
	id := newReplay(t, store, tenant, twoContenders())
	begin(t, store, tenant, id)
	step := next(t, store, tenant, id)
	for range 2 {
		if r, _, err := store.Cancel(t.Context(), tenant, id, nil); err != nil || r.State != replays.Cancelling {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if err := store.PutOutcome(t.Context(), step, replays.Pair{Window: 1000}, json.RawMessage(`{}`), ""); !errors.Is(err, session.ErrEnded) {
		t.Errorf("%v", err)
	}
	if _, err := store.Next(t.Context(), tenant, id); !errors.Is(err, session.ErrEnded) {
		t.Errorf("%v", err)
	}
	endReplay(t, store, tenant, id)
	found, err := store.Read(t.Context(), tenant, id)
	if err != nil || found.State != replays.Cancelled || found.Outcomes != 0 {
		t.Errorf("%+v, %v", found, err)
	}
	if report, err := store.Report(t.Context(), tenant, id); err != nil || string(report) != `{"equal":[]}` {
		t.Errorf("%s, %v", report, err)
	}
	if _, err := store.Begin(t.Context(), tenant, id, 0.8); !errors.Is(err, session.ErrEnded) {
		t.Errorf("%v", err)
	}
}

func TestAnErasedSessionLeavesNothingInAReplay(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	longSessions(t, store, tenant, "s", "t")
	r := twoContenders()
	r.Filter.Sessions = []string{"s", "t", "late"}
	id := newReplay(t, store, tenant, r)
	newSession(t, store, tenant, "late") // it is not in the sample
	begin(t, store, tenant, id)
	step := next(t, store, tenant, id)
	if err := store.PutOutcome(t.Context(), step, replays.Pair{Window: 1000}, json.RawMessage(`{}`), ""); err != nil {
		t.Fatal(err)
	}
	for _, erased := range []string{sampled(t, store, tenant, id)[0], "late"} {
		if _, err := store.Delete(t.Context(), session.Address{Tenant: tenant, ID: erased}, nil); err != nil {
			t.Fatal(err)
		}
	}
	found, err := store.Read(t.Context(), tenant, id)
	if err != nil || found.Outcomes != 0 || found.Done() != 1 || !slices.Equal(found.Skipped, []replays.ReplaySkip{{Reason: "erased", Sessions: 1}}) {
		t.Errorf("%+v, %v", found, err)
	}
	if left := sampled(t, store, tenant, id); !slices.Equal(found.Filter.Sessions, left) || len(left) != 1 {
		t.Errorf("the filter knows %q, of the sample %q are left", found.Filter.Sessions, left)
	}
	if err := store.PutOutcome(t.Context(), step, replays.Pair{Window: 2000}, json.RawMessage(`{}`), ""); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("an outcome of an erased session: %v", err)
	}
	if _, err := store.Log(t.Context(), step, r); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("the log of an erased session: %v", err)
	}
}

func TestALogIsMeasuredAsTheSampleFoundIt(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	longSessions(t, store, tenant, "s")
	at := session.Address{Tenant: tenant, ID: "s"}
	id := newReplay(t, store, tenant, twoContenders())
	r := begin(t, store, tenant, id)
	if _, _, err := store.Remove(t.Context(), at, 2, nil); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, store, batch(at, message("late", 10)))
	step := next(t, store, tenant, id)
	log, err := store.Log(t.Context(), step, r)
	if err != nil || log.Format != session.OpenAIChat || len(log.Messages) != 2 || log.Messages[1].Seq != 3 || log.Messages[1].Tokens != 300 || log.Messages[1].CreatedAt.IsZero() {
		t.Errorf("%+v, %v", log, err)
	}
	for reason, limited := range map[string]func(r *replays.Stored){
		replays.SkippedMessages: func(r *replays.Stored) { r.MaxMessages = 1 },
		replays.SkippedBytes:    func(r *replays.Stored) { r.MaxBytes = 50 },
	} {
		small := r
		limited(&small)
		if log, err := store.Log(t.Context(), step, small); err != nil || log.Skipped != reason || log.Messages != nil {
			t.Errorf("%s: %+v, %v", reason, log, err)
		}
	}
	foreign := session.Append{Session: at, Format: session.Anthropic, Messages: []session.NewMessage{message("other", 10)}}
	mustAppend(t, store, foreign)
	step.LastSeq = 1000
	if log, err := store.Log(t.Context(), step, r); err != nil || log.Skipped != replays.SkippedFormats {
		t.Errorf("%+v, %v", log, err)
	}
}

func TestAReplayIsForgottenAMonthAfterItsEnd(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	longSessions(t, store, tenant, "s")
	ids := map[string]uuid.UUID{}
	for _, age := range []string{"31 days", "29 days"} {
		id := newReplay(t, store, tenant, twoContenders())
		ids[age] = id
		begin(t, store, tenant, id)
		if err := store.PutOutcome(t.Context(), next(t, store, tenant, id), replays.Pair{Window: 1000}, json.RawMessage(`{}`), ""); err != nil {
			t.Fatal(err)
		}
		endReplay(t, store, tenant, id)
		execInTenant(t, store, tenant, `
			UPDATE replays
			   SET created_at = now() - $3::text::interval, finished_at = now() - $3::text::interval
			 WHERE tenant_id = $1 AND id = $2`, [16]byte(tenant), [16]byte(id), age)
	}
	if err := store.Prune(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Read(t.Context(), tenant, ids["31 days"]); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("it is still there: %v", err)
	}
	found, err := store.Read(t.Context(), tenant, ids["29 days"])
	if err != nil || found.Outcomes != 1 || found.Total != 1 {
		t.Errorf("%+v, %v", found, err)
	}
	list, err := store.List(t.Context(), tenant, session.Page{Limit: 10})
	if err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestOneTenantCannotReachAnothersReplay(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	longSessions(t, store, tenant, "s")
	id := newReplay(t, store, tenant, twoContenders())
	begin(t, store, tenant, id)
	step := next(t, store, tenant, id)
	other := newTenant(t, store, "other")
	longSessions(t, store, other, "s")
	_, read := store.Read(t.Context(), other, id)
	_, report := store.Report(t.Context(), other, id)
	_, sessions := store.Sessions(t.Context(), other, id, 0, 10)
	_, begun := store.Begin(t.Context(), other, id, 0.8)
	_, _, cancelled := store.Cancel(t.Context(), other, id, nil)
	for i, err := range []error{read, report, sessions, begun, cancelled} {
		if !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%d: %v", i, err)
		}
	}
	step.Tenant = other
	if err := store.PutOutcome(t.Context(), step, replays.Pair{Window: 1000}, json.RawMessage(`{}`), ""); !errors.Is(err, session.ErrEnded) {
		t.Errorf("%v", err)
	}
	if list, err := store.List(t.Context(), other, session.Page{Limit: 10}); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	endReplay(t, store, other, id)
	if err := store.Fail(t.Context(), other, id, "why"); err != nil {
		t.Error(err)
	}
	if found, err := store.Read(t.Context(), tenant, id); err != nil || found.State != replays.Running {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestALostJobOfAReplayIsInsertedAgain(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	id := newReplay(t, store, tenant, twoContenders())
	for _, want := range []int{0, 1, 0} {
		if lost, err := store.Requeue(t.Context(), tenant); err != nil || lost != want {
			t.Errorf("%d jobs were lost, want %d; %v", lost, want, err)
		}
		if want == 0 && countJobs(t, store) == 1 {
			if _, err := store.Pool().Exec(t.Context(), `DELETE FROM river_job WHERE kind = 'replay'`); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := store.Fail(t.Context(), tenant, id, "the disk\x00is full"); err != nil {
		t.Fatal(err)
	}
	found, err := store.Read(t.Context(), tenant, id)
	if err != nil || found.State != replays.Failed || !strings.Contains(*found.Error, "is full") {
		t.Errorf("%+v, %v", found, err)
	}
	if lost, err := store.Requeue(t.Context(), tenant); err != nil || lost != 0 {
		t.Errorf("%d, %v", lost, err)
	}
}

// TestAListOfManyReplaysReadsOnlyItsPage counts the pages of the tables and indexes that are read among many replays.
func TestAListOfManyReplaysReadsOnlyItsPage(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	execInTenant(t, store, tenant, `
		INSERT INTO replays (tenant_id, id, state, filter, contenders, windows, sample, seed, max_messages, max_bytes,
		                     total, progress, created_at, finished_at)
		SELECT $1, gen_random_uuid(), 'done', '{}', '[]', '{}', 1000, 1, 1, 1, 1000,
		       '{"measured": 7, "failed": 0, "outcomes": 7, "skipped": []}', now() - i * interval '1 min', now()
		  FROM generate_series(1, 5000) i`, tenant)
	list, err := store.List(t.Context(), tenant, session.Page{Limit: 20})
	if err != nil || len(list) != 20 {
		t.Fatalf("%d replays, %v", len(list), err)
	}
	last := list[len(list)-1]
	for sql, args := range map[string][]any{
		replays.ReadSQL: {tenant, last.ID},
		replays.ListSQL: postgres.PageArgs(tenant, session.Page{Time: last.CreatedAt, ID: last.ID, Limit: 20}),
	} {
		var plan []struct {
			Plan struct {
				Hit  int `json:"Shared Hit Blocks"`
				Read int `json:"Shared Read Blocks"`
			}
		}
		err := store.InTenant(t.Context(), tenant, func(tx pgx.Tx) error {
			// There are no statistics yet.
			if err := postgres.Exec(t.Context(), tx, `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true)`); err != nil {
				return err
			}
			text, err := postgres.RowIn(t.Context(), tx, pgx.RowTo[[]byte], `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+sql, args...)
			if err != nil {
				return err
			}
			return json.Unmarshal(text, &plan)
		})
		if pages := plan[0].Plan.Hit + plan[0].Plan.Read; err != nil || pages > 60 {
			t.Errorf("%d pages, %v:\n%s", pages, err, sql)
		}
	}
}
