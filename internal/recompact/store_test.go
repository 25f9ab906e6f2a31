package recompact_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/recompact"
	"github.com/varve-dev/varve/internal/session"
)

// manySessions makes sessions that nothing was ever appended to.
func manySessions(t *testing.T, store recompact.Store, tenant uuid.UUID, n int) {
	t.Helper()
	err := execInTenant(t, store, tenant, `
		INSERT INTO sessions (tenant_id, key, id, window_tokens, policy_id)
		SELECT $1, gen_random_uuid(), gen_random_uuid()::text, 1000, $2
		  FROM generate_series(1, $3)`, [16]byte(tenant), [16]byte(uuid.Nil), n)
	if err != nil {
		t.Fatal(err)
	}
}

func newRecompaction(t *testing.T, store recompact.Store, tenant uuid.UUID) uuid.UUID {
	t.Helper()
	made, _, err := store.Create(t.Context(), tenant, recompact.Stored{Pace: recompact.Pace{MaxRunning: 3}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// fill works the job that looks for the next sessions of a recompaction.
func fill(t *testing.T, store recompact.Store, tenant, id uuid.UUID) error {
	t.Helper()
	var job int64
	err := store.Pool().QueryRow(t.Context(), `
		SELECT id
		  FROM river_job
		 WHERE kind = 'recompaction_fill' AND finalized_at IS NULL AND args ->> 'recompaction' = $1::text`, id).Scan(&job)
	if err != nil {
		t.Fatal(err)
	}
	return store.Fill(t.Context(), tenant, id, job)
}

// whileNoJobCanBeCompleted calls do on a database that refuses to complete jobs.
func whileNoJobCanBeCompleted(t *testing.T, dsn string, do func()) {
	t.Helper()
	owner, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(t.Context())
	_, err = owner.Exec(t.Context(), `
		CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no job can be completed'; END $$;
		CREATE TRIGGER refuse BEFORE UPDATE ON river_job EXECUTE FUNCTION refuse()`)
	if err != nil {
		t.Fatal(err)
	}
	do()
	if _, err := owner.Exec(t.Context(), `DROP TRIGGER refuse ON river_job`); err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Exec(t.Context(), `DROP FUNCTION refuse`); err != nil {
		t.Fatal(err)
	}
}

// countJobs counts the live jobs of a kind.
func countJobs(t *testing.T, store recompact.Store, kind string) (n int) {
	t.Helper()
	err := store.Pool().QueryRow(t.Context(), `SELECT count(*) FROM river_job WHERE kind = $1 AND finalized_at IS NULL`, kind).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTheSessionsOfARecompactionAreFoundInBatches(t *testing.T) {
	t.Parallel()
	store, dsn := newStoreAt(t)
	tenant := newTenant(t, store, "acme")
	manySessions(t, store, tenant, 2500)
	id := newRecompaction(t, store, tenant)
	manySessions(t, store, tenant, 100) // they are too young
	total := int64(0)
	for batch := 1; batch <= 3; batch++ {
		if fills, sessions := countJobs(t, store, "recompaction_fill"), countJobs(t, store, "recompact"); fills != 1 || sessions != 0 {
			t.Errorf("before batch %d: %d jobs look for sessions, %d compact one", batch, fills, sessions)
		}
		whileNoJobCanBeCompleted(t, dsn, func() {
			if err := fill(t, store, tenant, id); err == nil || !strings.Contains(err.Error(), "no job can be completed") {
				t.Error(err)
			}
		})
		if err := fill(t, store, tenant, id); err != nil {
			t.Fatal(err)
		}
		found, err := store.Read(t.Context(), tenant, id)
		if err != nil || found.Total <= total || (found.State == recompact.Running) != (batch == 3) {
			t.Errorf("after batch %d: %+v, %v", batch, found, err)
		}
		total = found.Total
	}
	if fills, sessions := countJobs(t, store, "recompaction_fill"), countJobs(t, store, "recompact"); fills != 0 || sessions != 3 || total != 2500 {
		t.Errorf("%d jobs look for sessions, %d compact one of %d", fills, sessions, total)
	}
}

func TestTheSampleOfARecompactionIsSpreadEvenly(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	for _, sessions := range []int{0, 19, 20, 21, 190} {
		manySessions(t, store, tenant, sessions)
		found, err := store.Count(t.Context(), tenant, session.SessionFilter{}, 20)
		if err != nil || len(found.Sample) != int(min(found.Sessions, 20)) {
			t.Fatalf("a sample of %d of %d sessions, %v", len(found.Sample), found.Sessions, err)
		}
		seen := map[uuid.UUID]bool{}
		for _, s := range found.Sample {
			seen[s.Key.Key] = true
		}
		if len(seen) != len(found.Sample) {
			t.Errorf("a session is in the sample twice: %v", found.Sample)
		}
	}
}

func TestARecompactionIsForgottenAMonthAfterItsEnd(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	manySessions(t, store, tenant, 2)
	old, recent, live := newRecompaction(t, store, tenant), newRecompaction(t, store, tenant), newRecompaction(t, store, tenant)
	for id, age := range map[uuid.UUID]string{old: "31 days", recent: "29 days"} {
		if err := fill(t, store, tenant, id); err != nil {
			t.Fatal(err)
		}
		err := execInTenant(t, store, tenant, `
			UPDATE recompactions
			   SET state = 'done', created_at = now() - $3::text::interval, finished_at = now() - $3::text::interval
			 WHERE tenant_id = $1 AND id = $2`, [16]byte(tenant), [16]byte(id), age)
		if err != nil {
			t.Fatal(err)
		}
	}
	late := &session.Idempotency{Route: "POST /v1/admin/recompactions/:recompaction/cancel", Key: "k"}
	if _, _, err := store.Control(t.Context(), tenant, old, recompact.Cancel, late); err != nil {
		t.Fatal(err)
	}
	if err := store.Prune(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.Control(t.Context(), tenant, old, recompact.Cancel, late); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("its last answer is still there: %v", err)
	}
	if _, err := store.Read(t.Context(), tenant, old); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("it is still there: %v", err)
	}
	for _, id := range []uuid.UUID{recent, live} {
		if _, err := store.Read(t.Context(), tenant, id); err != nil {
			t.Error(err)
		}
	}
	if found, err := store.Sessions(t.Context(), tenant, recent, session.Page{Limit: 10}); err != nil || len(found) != 2 {
		t.Errorf("%+v, %v", found, err)
	}
}

// What pause, resume, cancel and rollback have answered may name a session that failed, whatever the filter says.
func TestAnErasedSessionIsInNoAnswerToTheControlsOfARecompaction(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "somebody")
	newSession(t, store, tenant, "other")
	id := newRecompaction(t, store, tenant)
	if err := fill(t, store, tenant, id); err != nil {
		t.Fatal(err)
	}
	err := execInTenant(t, store, tenant, `
		UPDATE recompaction_sessions
		   SET state = 'failed', finished_at = now(), error = 'the policy of ' || s.id || ' is wrong'
		  FROM sessions s
		 WHERE s.tenant_id = $1 AND s.key = session_key AND recompaction_id = $2`, tenant, id)
	if err != nil {
		t.Fatal(err)
	}
	answers := func(name string) (n int) {
		t.Helper()
		err := postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `SELECT count(*) FROM idempotency WHERE strpos(answer, $1) > 0`, name).Scan(&n)
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, what := range []recompact.Control{recompact.Pause, recompact.Resume, recompact.Cancel, recompact.RollBack} {
		key := &session.Idempotency{Route: "POST /v1/admin/recompactions/:recompaction/" + string(what), Key: "k"}
		if _, _, err := store.Control(t.Context(), tenant, id, what, key); err != nil {
			t.Fatal(err)
		}
	}
	if n := answers("somebody"); n != 4 {
		t.Fatalf("%d answers name the session before, want 4", n)
	}
	if _, err := store.Delete(t.Context(), at, nil); err != nil {
		t.Fatal(err)
	}
	if n := answers("somebody"); n > 0 {
		t.Errorf("%d answers still name the session", n)
	}
}

func TestASearchThatCannotSucceedEndsItsRecompaction(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	id := newRecompaction(t, store, tenant)
	if err := store.Fail(t.Context(), tenant, id, "the disk is full"); err != nil {
		t.Fatal(err)
	}
	found, err := store.Read(t.Context(), tenant, id)
	if err != nil || found.State != recompact.Failed || found.Error == nil || *found.Error != "the disk is full" || found.FinishedAt == nil {
		t.Errorf("%+v, %v", found, err)
	}
	if err := fill(t, store, tenant, id); err != nil || countJobs(t, store, "recompact") != 0 {
		t.Errorf("it continues: %v", err)
	}
}

// Of several tenths that come at once, only the last is told. The work on one session may end twice.
func TestOnlyTheLastOfSeveralTenthsIsTold(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	manySessions(t, store, tenant, 20)
	id := newRecompaction(t, store, tenant)
	if err := fill(t, store, tenant, id); err != nil {
		t.Fatal(err)
	}
	found, err := store.Sessions(t.Context(), tenant, id, session.Page{Limit: 20})
	if err != nil || len(found) != 20 {
		t.Fatalf("%d sessions, %v", len(found), err)
	}
	for _, erased := range found[13:] {
		if _, err := store.Delete(t.Context(), session.Address{Tenant: tenant, ID: *erased.Session}, nil); err != nil {
			t.Fatal(err)
		}
	}
	job := recompact.Job{Key: session.Key{Tenant: tenant, Key: found[0].Key}, Recompaction: id}
	for range 2 {
		if err := store.End(t.Context(), job, session.ErrLogTooLarge, 0); err != nil {
			t.Fatal(err)
		}
	}
	told, err := store.Events(t.Context(), tenant, postgres.EventFilter{
		Types: []session.EventType{session.EventRecompactionProgress}, Limit: 100,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(told.Page) != 1 {
		t.Fatalf("events %v", told.Page)
	}
	var got struct{ Percent, Total, Failed, Skipped int }
	if err := json.Unmarshal(told.Page[0].Data, &got); err != nil || got.Percent != 40 || got.Total != 20 || got.Failed != 1 || got.Skipped != 7 {
		t.Errorf("told %s, %v", told.Page[0].Data, err)
	}
}

// A share has those sessions whose hash is below it, whatever else they are, and a larger share adds some.
func TestAShareOfTheSessionsIsChosenByAHash(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	manySessions(t, store, tenant, 1000)
	all := sharedBy(t, store, tenant, 0)
	for _, percent := range []int{1, 20, 100} {
		found := sharedBy(t, store, tenant, percent)
		for key := range all {
			sum := sha256.Sum256(key[:])
			if in := int(binary.BigEndian.Uint32(sum[:])%100) < percent; found[key] != in {
				t.Errorf("at %d percent session %s is selected: %t", percent, key, found[key])
			}
		}
	}
	made, _, err := store.Create(t.Context(), tenant, recompact.Stored{
		Filter: session.SessionFilter{Percent: 20}, Pace: recompact.Pace{MaxRunning: 1},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for made.State == recompact.Queued {
		if err := fill(t, store, tenant, made.ID); err != nil {
			t.Fatal(err)
		}
		if made, err = store.Read(t.Context(), tenant, made.ID); err != nil {
			t.Fatal(err)
		}
	}
	if want := len(sharedBy(t, store, tenant, 20)); len(all) != 1000 || made.Total != int64(want) {
		t.Errorf("the recompaction has %d sessions, its dry run %d", made.Total, want)
	}
}

// sharedBy returns the sessions that a dry run of a share selects.
func sharedBy(t *testing.T, store recompact.Store, tenant uuid.UUID, percent int) map[uuid.UUID]bool {
	t.Helper()
	count, err := store.Count(t.Context(), tenant, session.SessionFilter{Percent: percent}, 2000)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[uuid.UUID]bool{}
	for _, s := range count.Sample {
		keys[s.Key.Key] = true
	}
	return keys
}

// TestARecompactionIsFilledByMetadata fills recompactions with filters of every variant.
func TestARecompactionIsFilledByMetadata(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	err := execInTenant(t, store, tenant, `
		INSERT INTO sessions (tenant_id, key, id, window_tokens, window_source, policy_id, created_at, metadata)
		SELECT $1, gen_random_uuid(), 's' || i, 1000, 'default', $2, '2026-01-01', jsonb_build_object('n', (i % 2)::text)
		  FROM generate_series(1, 2500) i`, tenant, uuid.Nil)
	if err != nil {
		t.Fatal(err)
	}
	for metadata, want := range map[string]int64{`{"n":"1"}`: 1250, `{"n":"2"}`: 0, `{}`: 2500} {
		filter := session.SessionFilter{Metadata: []byte(metadata)}
		made, _, err := store.Create(t.Context(), tenant, recompact.Stored{
			Filter: filter, Pace: recompact.Pace{MaxRunning: 1},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for made.State == recompact.Queued {
			if err := store.Fill(t.Context(), tenant, made.ID, 0); err != nil {
				t.Fatal(err)
			}
			if made, err = store.Read(t.Context(), tenant, made.ID); err != nil {
				t.Fatal(err)
			}
		}
		if made.Total != want {
			t.Errorf("%s: %d sessions, not %d", metadata, made.Total, want)
		}
		filter.Failing = true
		if found, err := store.Count(t.Context(), tenant, filter, 5); err != nil || found.Sessions != 0 {
			t.Errorf("%s: %+v %v", metadata, found, err)
		}
	}
}

// TestAListOfManyRecompactionsReadsOnlyItsPage counts the pages of tables and indexes that are read among many.
func TestAListOfManyRecompactionsReadsOnlyItsPage(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	err := execInTenant(t, store, tenant, `
		INSERT INTO recompactions (tenant_id, id, state, filter, max_running, ask, created_at, finished_at)
		SELECT $1, gen_random_uuid(), 'done', '{}', 2, false, now() - i * interval '1 min', now()
		  FROM generate_series(1, 5000) i`, tenant)
	if err != nil {
		t.Fatal(err)
	}
	list, err := store.List(t.Context(), tenant, session.Page{Limit: 20})
	if err != nil || len(list) != 20 {
		t.Fatalf("%d recompactions, %v", len(list), err)
	}
	last := list[len(list)-1]
	var plan []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	err = store.InTenant(t.Context(), tenant, func(tx pgx.Tx) error {
		// There are no statistics yet.
		err := postgres.Exec(t.Context(), tx, `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true)`)
		if err != nil {
			return err
		}
		text, err := postgres.RowIn(t.Context(), tx, pgx.RowTo[[]byte], `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+recompact.ListSQL,
			postgres.PageArgs(tenant, session.Page{Time: last.CreatedAt, ID: last.ID, Limit: 20})...)
		if err != nil {
			return err
		}
		return json.Unmarshal(text, &plan)
	})
	if err != nil || plan[0].Plan.Hit+plan[0].Plan.Read > 150 {
		t.Errorf("%+v, %v", plan, err)
	}
}
