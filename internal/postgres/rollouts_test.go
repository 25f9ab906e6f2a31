package postgres_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/session"
)

// trying starts a rollout of a layer.
func trying(layer string, perMille int) session.RolloutStart {
	start := session.RolloutStart{PerMille: perMille}
	start.Rebase = rebased
	start.Edit = func(_, _ json.RawMessage) (session.Policy, error) { return rebased(json.RawMessage(layer), nil) }
	return start
}

func mustStart(t testing.TB, store *postgres.Store, tenant uuid.UUID, start session.RolloutStart) session.Rollout {
	t.Helper()
	r, _, err := store.StartRollout(t.Context(), tenant, start)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// isTried computes whether a session has the version of a rollout, without the store.
func isTried(r session.Rollout, key uuid.UUID) bool {
	sum := sha256.Sum256(append(r.ID[:], key[:]...))
	return int(binary.BigEndian.Uint32(sum[:])%session.MaxShare) < r.PerMille
}

func insertSessions(t testing.TB, store *postgres.Store, tenant uuid.UUID, n int) {
	t.Helper()
	err := execInTenant(t, store, tenant, `
		INSERT INTO sessions (tenant_id, key, id, window_tokens, policy_id)
		SELECT $1, gen_random_uuid(), 's' || i, 1000, '00000000-0000-0000-0000-000000000000'
		  FROM generate_series(1, $2) i`, tenant, n)
	if err != nil {
		t.Fatal(err)
	}
}

// triedBy returns which sessions a store shows with a version.
func triedBy(t testing.TB, store *postgres.Store, tenant uuid.UUID, version int) map[uuid.UUID]bool {
	t.Helper()
	found := map[uuid.UUID]bool{}
	all, err := store.Sessions(t.Context(), tenant, session.Page{Limit: 2000})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		found[all[i].Key] = all[i].Policy.Version.Tenant == version
	}
	return found
}

func TestASharesSessionsAreChosenByAHashAndOnlyGrow(t *testing.T) {
	t.Parallel()
	store, dsn := newStoreAt(t)
	tenant := newTenant(t, store, "acme")
	others := newTenant(t, store, "others")
	const sessions = 1000
	insertSessions(t, store, tenant, sessions)
	insertSessions(t, store, others, 20)
	r := mustStart(t, store, tenant, trying(`{"target":0.2}`, 10))
	before := map[uuid.UUID]bool{}
	for _, share := range []int{50, 200, 500, 1000} {
		var err error
		if r, _, err = store.ChangeRollout(t.Context(), tenant, r.ID, session.RolloutChange{PerMille: share}); err != nil {
			t.Fatal(err)
		}
		now, n := triedBy(t, openStore(t, pgtest.Admin(dsn)), tenant, r.Version), 0
		for key, tried := range now {
			if tried {
				n++
			}
			if tried != isTried(r, key) {
				t.Errorf("at %d session %s has the version: %t", share, key, tried)
			}
			if before[key] && !tried {
				t.Errorf("at %d session %s lost the version", share, key)
			}
		}
		p := float64(share) / session.MaxShare
		if want, off := p*sessions, 5*math.Sqrt(sessions*p*(1-p)); math.Abs(float64(n)-want) > off {
			t.Errorf("%d of %d sessions at %d of 1,000, want %.0f within %.0f", n, sessions, share, want, off)
		}
		before = now
	}
	for key, tried := range triedBy(t, store, others, r.Version) {
		if tried {
			t.Errorf("session %s of another tenant has the version", key)
		}
	}
}

// TestEveryPlaceGivesASessionTheSamePolicy compares what each reader of a policy has with what GET shows. The version
// alone makes a session due with 300 tokens.
func TestEveryPlaceGivesASessionTheSamePolicy(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	start := trying(`{"trigger":0.2,"target":0.1,"media_bytes":1048576}`, 500)
	r := mustStart(t, store, tenant, start)
	tried := 0
	for i := range 24 {
		at := newSession(t, store, tenant, fmt.Sprint("s", i))
		found, err := store.Session(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		in := isTried(r, found.Key)
		if in {
			tried++
		}
		requireVersion(t, store, at, found.Key, r, in)
		jobs := liveJobs(t, store)
		mustAppend(t, store, batch(at, message("x", 300)))
		if asked := liveJobs(t, store) - jobs; asked == 1 != in {
			t.Errorf("%s, in the share %t: the append asked for %d compactions", at.ID, in, asked)
		}
		made, _, err := store.Fork(t.Context(), session.Fork{From: at, ID: "fork of " + at.ID})
		if err != nil {
			t.Fatal(err)
		}
		requireVersion(t, store, session.Address{Tenant: tenant, ID: made.ID}, made.Key, r, isTried(r, made.Key))
	}
	if tried == 0 || tried == 24 {
		t.Fatalf("%d of 24 sessions have the version: this shows nothing", tried)
	}
}

func requireVersion(t *testing.T, store *postgres.Store, at session.Address, key uuid.UUID, r session.Rollout, in bool) {
	t.Helper()
	want, media := r.BaseVersion, int64(8<<20)
	if in {
		want, media = r.Version, 1<<20
	}
	of := session.Key{Tenant: at.Tenant, Key: key}
	s, err1 := store.Session(t.Context(), at)
	layers, err2 := store.SessionPolicy(t.Context(), at)
	byKey, err3 := store.PolicyOf(t.Context(), of)
	snap, err4 := store.Snapshot(t.Context(), of)
	weight, err5 := store.Weight(t.Context(), of)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	for place, version := range map[string]session.PolicyVersion{
		"GET": s.Policy.Version, "GET policy": layers.Version, "summaries": byKey.Version, "the worker": snap.Policy.Version,
	} {
		if version != (session.PolicyVersion{Tenant: want}) {
			t.Errorf("%s: %s has version %+v, want %d", at.ID, place, version, want)
		}
	}
	for place, document := range map[string]json.RawMessage{
		"GET policy": layers.Document, "summaries": byKey.Document, "the worker": snap.Policy.Document,
	} {
		if !bytes.Equal(document, s.Policy.Document) {
			t.Errorf("%s: %s has another policy than GET", at.ID, place)
		}
	}
	if weight.Media != media && string(s.Policy.Document) != `{}` {
		t.Errorf("%s: views keep %d bytes of pictures, want %d", at.ID, weight.Media, media)
	}
	if in == bytes.Equal(layers.Tenant, []byte(`{}`)) {
		t.Errorf("%s: the tenant's layer is %s", at.ID, layers.Tenant)
	}
}

// TestEndsOfARolloutUnderLoadLeaveEachSessionOnePolicy starts, changes and ends rollouts, each twice at once, while
// others append and read: one of the two ends it, and nobody ever finds a session without a policy.
func TestEndsOfARolloutUnderLoadLeaveEachSessionOnePolicy(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	var ats []session.Address
	for i := range 8 {
		ats = append(ats, newSession(t, store, tenant, fmt.Sprint("s", i)))
	}
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for _, at := range ats {
		load.Go(func() {
			for ctx.Err() == nil {
				_, _, err := store.Append(t.Context(), batch(at, message("x", 1)))
				if err == nil {
					_, err = store.Session(t.Context(), at)
				}
				if err != nil {
					t.Errorf("%s: %v", at.ID, err)
					return
				}
			}
		})
	}
	for round := range 12 {
		r := mustStart(t, store, tenant, trying(string(defaultLayer(round+1)), 500))
		var ended sync.WaitGroup
		results := make([]error, 2)
		for i, end := range []func(context.Context, uuid.UUID, uuid.UUID, session.RolloutChange) (session.Rollout, bool, error){store.PromoteRollout, store.EndRolloutBack} {
			ended.Go(func() { _, _, results[i] = end(t.Context(), tenant, r.ID, session.RolloutChange{Rebase: rebased}) })
		}
		ended.Wait()
		if (results[0] == nil) == (results[1] == nil) || !errors.Is(errors.Join(results...), session.ErrRolloutEnded) {
			t.Errorf("promote: %v, back: %v", results[0], results[1])
		}
		p, err := store.TenantPolicy(t.Context(), tenant)
		want := r.BaseVersion
		if results[0] == nil {
			want = r.Version
		}
		if err != nil || p.Version.Tenant != want {
			t.Errorf("the default is version %d, want %d, %v", p.Version.Tenant, want, err)
		}
	}
	stop()
	load.Wait()
	var policies int
	err := postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT count(*) FROM policies`).Scan(&policies)
	})
	if err != nil || policies != 1 {
		t.Errorf("%d policies are left, %v", policies, err)
	}
}

func TestVersionsThatARolloutNamesAreKept(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	r := mustStart(t, store, tenant, trying(string(defaultLayer(1)), 500))
	if _, _, err := store.EndRolloutBack(t.Context(), tenant, r.ID, session.RolloutChange{}); err != nil {
		t.Fatal(err)
	}
	err := execInTenant(t, store, tenant, `
		INSERT INTO policy_versions (tenant_id, session_key, version, tenant_version, patch, document)
		SELECT $1, '00000000-0000-0000-0000-000000000000', v, v, '{}', '{}'
		  FROM generate_series(3, 1500) v`, tenant)
	if err != nil {
		t.Fatal(err)
	}
	mustChangeDefault(t, store, tenant, 2)
	oldest, err := store.PolicyVersions(t.Context(), tenant, 600, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var kept []int
	for _, v := range oldest {
		if v.Version < 500 {
			kept = append(kept, v.Version)
		}
	}
	if fmt.Sprint(kept) != "[2 1]" {
		t.Errorf("of the oldest versions %v are kept, want those of the rollout", kept)
	}
}

// TestAGuardGoesBackWhenTheVersionIsWorse makes runs under both versions as if workers had.
func TestAGuardGoesBackWhenTheVersionIsWorse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		runs, failures int // of the version
		back           bool
	}{
		"as good":        {runs: 10, failures: 1},
		"fails more":     {runs: 10, failures: 9, back: true},
		"too few to say": {runs: 3, failures: 3},
	} {
		store, tenant := newStore(t)
		insertSessions(t, store, tenant, 1)
		start := trying(string(defaultLayer(1)), 500)
		start.Guard = &session.RolloutGuard{Factor: 2, MinCompactions: 8}
		r := mustStart(t, store, tenant, start)
		for version, of := range map[int][2]int{r.BaseVersion: {10, 1}, r.Version: {c.runs, c.failures}} {
			err := execInTenant(t, store, tenant, `
				INSERT INTO runs (tenant_id, id, session_key, cause, state, job_id, base_n, checkpoint_n, tokens_before,
				                  tokens_after, finished_at, tenant_version, session_version, failures)
				SELECT s.tenant_id, gen_random_uuid(), s.key, 'threshold', 'done', 0, i, i + 1, 1000, 500, now(), $2, 0,
				       CASE WHEN i < $4 THEN 1 ELSE 0 END
				  FROM sessions s, generate_series(0, $3 - 1) i
				 WHERE s.tenant_id = $1`, tenant, version, of[0], of[1])
			if err != nil {
				t.Fatal(err)
			}
		}
		ended, err := store.GuardRollout(t.Context(), tenant)
		if err != nil || (ended != nil) != c.back {
			t.Fatalf("%s: %+v, %v", name, ended, err)
		}
		found, err := store.Rollout(t.Context(), tenant, r.ID)
		if err != nil || (found.State == session.RolloutBack) != c.back || (found.Reason != nil) != c.back {
			t.Errorf("%s: %+v, %v", name, found.Rollout, err)
		}
		var by string
		err = postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `SELECT coalesce(max(actor), '') FROM audit_trail WHERE action = 'rollout.back'`).Scan(&by)
		})
		if want := map[bool]string{true: "varve"}[c.back]; err != nil || by != want {
			t.Errorf("%s: %q went back, want %q, %v", name, by, want, err)
		}
		err = postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `SELECT string_agg(type, ' ' ORDER BY n) FROM events`).Scan(&by)
		})
		if err != nil {
			t.Fatal(err)
		}
		told := "rollout.started" + map[bool]string{true: " rollout.stopped"}[c.back]
		if by != told {
			t.Errorf("%s: it is told %q, not %q", name, by, told)
		}
	}
}

// TestAnEndThatIsCutOffEndsNothing cuts a promotion off after it has written the default, while it waits for the row of
// the version.
func TestAnEndThatIsCutOffEndsNothing(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	insertSessions(t, store, tenant, 40)
	r := mustStart(t, store, tenant, trying(`{"target":0.2}`, 500))
	before := triedBy(t, store, tenant, r.Version)
	err := postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SELECT FROM policies WHERE id = $1 FOR UPDATE`, r.ID); err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			_, _, err := store.PromoteRollout(ctx, tenant, r.ID, session.RolloutChange{Rebase: rebased})
			ended <- err
		}()
		for waiting := false; !waiting; {
			err := store.Pool().QueryRow(t.Context(), `
				SELECT EXISTS (
				       SELECT
				         FROM pg_stat_activity
				        WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%DELETE FROM policies%')`).Scan(&waiting)
			if err != nil {
				return err
			}
		}
		cancel()
		if err := <-ended; err == nil {
			t.Error("the promotion ended although it was cut off")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	found, err := store.Rollout(t.Context(), tenant, r.ID)
	if err != nil || found.State != session.RolloutRunning {
		t.Errorf("%+v, %v", found.Rollout, err)
	}
	after := triedBy(t, store, tenant, r.Version)
	for key, tried := range before {
		if after[key] != tried {
			t.Errorf("session %s has the version: %t, before %t", key, after[key], tried)
		}
	}
	if p, err := store.TenantPolicy(t.Context(), tenant); err != nil || p.Version.Tenant != 1 {
		t.Errorf("the default is version %d, %v", p.Version.Tenant, err)
	}
}
