package jobs_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/erasure"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/verify"
)

// plantTenant leaves traces of the subject in what a tenant has beside its sessions.
func (w *world) plantTenant() {
	w.Helper()
	ctx := w.Context()
	must := func(err error) {
		w.Helper()
		if err != nil {
			w.Fatal(err)
		}
	}
	_, err := w.store.ChangeTenant(ctx, w.tenant, session.TenantChange{Quotas: []byte(`{"sessions":1000}`)})
	must(err)
	_, err = w.store.CreateKey(ctx, w.tenant, session.NewKey{
		Name: "key of " + subject, Text: session.NewAPIKey(w.tenant), Scopes: session.KeyScopes(),
	})
	must(err)
	w.inTenant(`INSERT INTO webhooks (tenant_id, id, name, url, types) VALUES ($1, gen_random_uuid(), $2::text, 'https://' || $2 || '.example/', '{}')`, w.tenant, subject)
	for _, table := range []string{"webhook_turns (tenant_id, webhook_id, through_n) SELECT $1, id, 0", "webhook_secrets (tenant_id, webhook_id, id, secret) SELECT $1, id, id, sha256('s')"} {
		w.inTenant(`INSERT INTO `+table+` FROM webhooks WHERE tenant_id = $1`, w.tenant)
	}
	w.inTenant(`INSERT INTO search_settings (tenant_id, language) VALUES ($1, 'english')`, w.tenant)
	must(w.store.RecordExport(audit.With(ctx, &audit.Actor{Kind: audit.ByKey, Request: "req of " + subject}), session.Address{Tenant: w.tenant}))
	w.inTenant(`INSERT INTO verifications (tenant_id) VALUES ($1)`, w.tenant)
	w.inTenant(`INSERT INTO model_spending (tenant_id, day, model, calls, input_tokens, output_tokens, cost_micros) VALUES ($1, now(), $2, 1, 1, 1, 1) ON CONFLICT DO NOTHING`, w.tenant, subject)
	w.inTenant(`INSERT INTO import_lines (tenant_id, import_id, n, lines, line, outcome, detail) SELECT tenant_id, id, 1, 1, 1, 'rejected', $2 FROM imports WHERE tenant_id = $1`, w.tenant, "line of "+subject)
	_, _, err = erasure.OfSubject(ctx, w.store, w.tenant, []byte(`{"user_id":"nobody"}`), nil)
	must(err)
}

// rowsOf returns what each table has of a tenant, those aside that jobs write meanwhile.
func (w *world) rowsOf(tenant uuid.UUID) map[string]string {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.dsn)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close(w.Context())
	rows, _ := conn.Query(w.Context(), `
		SELECT table_name::text
		  FROM information_schema.columns
		 WHERE table_schema = 'public' AND column_name = 'tenant_id'
		   AND table_name NOT IN ('tenant_tasks', 'due_sessions', 'search_sessions', 'search_blocks', 'usage_days',
		                          'usage_sessions')`)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.Fatal(err)
	}
	found := map[string]string{}
	for _, table := range tables {
		var said string
		err := conn.QueryRow(w.Context(), `
			SELECT count(*) || ' rows ' || coalesce(md5(string_agg(to_jsonb(t)::text, '' ORDER BY to_jsonb(t)::text)), '')
			  FROM `+table+` t
			 WHERE tenant_id = $1`, tenant).Scan(&said)
		if err != nil {
			w.Fatal(err)
		}
		found[table] = said
	}
	return found
}

// deleted begins the deletion of the tenant, and waits for its end.
func (w *world) deleted() session.Erasure {
	w.Helper()
	begun, err := erasure.DeleteTenant(w.Context(), w.store, w.tenant)
	if err != nil {
		w.Fatal(err)
	}
	done, said := w.ended(audit.Operator, begun.ID)
	if said.Tenant != w.tenant || said.Kind != "tenant" || said.Ended == nil || said.Audit.N == 0 || done.ErasedTenant == nil {
		w.Errorf("the receipt says %+v", said)
	}
	return done
}

// TestNothingIsLeftOfATenant plants traces of one wherever it can have data, deletes it, and searches everything, for
// its id, too. Another tenant has lost nothing, and one with the same id can be made.
func TestNothingIsLeftOfATenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.tenant
	made, err := w.store.CreateTenant(t.Context(), "tenant of "+subject, settledPolicy())
	if err != nil {
		t.Fatal(err)
	}
	first := made.ID
	w.tenant = first
	dir := w.inFiles()
	w.plant()
	w.plantTenant()
	w.tenant = other
	kept := named("somebody else", 40)
	at := w.of("other", "somebody else")
	w.appendLog(at, session.OpenAIChat, kept)
	w.offloaded()
	w.tenant = first
	planted := w.traces(subject, dir)
	for _, place := range []string{
		"files", "api_keys.name", "audit_trail.request", "events.data", "import_lines.detail", "model_spending.model", "tenants.name",
		"webhooks.url",
	} {
		if !slices.Contains(planted, place) {
			t.Errorf("the search does not find what is in %s: %q", place, planted)
		}
	}
	before := w.rowsOf(other)
	sessions := w.count("sessions WHERE tenant_id = '" + first.String() + "'")
	done := w.deleted()
	if left := w.traces(subject, dir); len(left) > 0 {
		t.Errorf("the tenant is still in %q", left)
	}
	if diff := cmp.Diff([]string{"audit_trail.detail", "audit_trail.object_id", "erasures.erased_tenant", "erasures.receipt"}, w.traces(first.String(), dir)); diff != "" {
		t.Errorf("what is to prove the deletion (-) and what has the id (+) differ:\n%s", diff)
	}
	if done.Sessions != int64(sessions) || *done.TotalSessions != done.Sessions || done.Objects == 0 || done.Messages < 200 {
		t.Errorf("%d sessions were deleted: %+v", sessions, done)
	}
	if diff := cmp.Diff(before, w.rowsOf(other)); diff != "" {
		t.Errorf("another tenant has lost something:\n%s", diff)
	}
	w.same(at, session.OpenAIChat, kept)
	w.receiptHolds(done.Receipt)
	again := session.NewTenant{ID: first, Name: "tenant of " + subject, Policy: settledPolicy()}
	if _, _, err := w.store.ProvisionTenant(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	w.appendLog(w.session("new"), session.OpenAIChat, turn(1, 100))
	w.verified()
	w.receiptHolds(done.Receipt)
}

// receiptHolds requires that nothing is left of what a receipt names.
func (w *world) receiptHolds(said *session.Receipt) {
	w.Helper()
	v := verify.Verifier{Store: w.store}
	if left, err := v.Receipt(w.Context(), said); err != nil || len(left) > 0 {
		w.Errorf("the receipt %+v: %q is left, %v", said, left, err)
	}
}

// TestTheDeletionOfATenantIsFinishedWhereverItIsKilled kills a worker after each step, and lets another go on.
func TestTheDeletionOfATenantIsFinishedWhereverItIsKilled(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"session erased", "rows of a tenant erased", "erasure finished"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for n := range 3 {
				w.append(w.session(fmt.Sprint(subject, n)), turn(n, 100)...)
			}
			begun, err := erasure.DeleteTenant(t.Context(), w.store, w.tenant)
			if err != nil {
				t.Fatal(err)
			}
			w.kill(step)
			w.work(jobs.Config{Beat: beat, Settle: time.Nanosecond})
			if _, said := w.ended(audit.Operator, begun.ID); said.Erased.Sessions != 3 || said.Erased.Messages != 6 {
				t.Errorf("the receipt says %+v", said)
			}
			if left := w.traces(subject, w.TempDir()); len(left) > 0 {
				t.Errorf("the tenant is still in %q", left)
			}
			w.verified()
		})
	}
}

// TestAHoldStopsTheDeletionOfATenant refuses it, and later stops one that has begun, which continues without the hold.
func TestAHoldStopsTheDeletionOfATenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("held")
	w.append(at, turn(1, 100)...)
	hold := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		_, err = erasure.DeleteTenant(t.Context(), w.store, w.tenant)
		if !errors.Is(err, session.ErrTenantHeld) || !strings.Contains(err.Error(), "case 7") {
			t.Errorf("the deletion of what is held: %v", err)
		}
	}
	_, err := erasure.HoldSession(t.Context(), w.store, at, "case 7")
	hold(err)
	_, err = erasure.HoldTenant(t.Context(), w.store, w.tenant, "case 7 of all")
	hold(err)
	if err := errors.Join(erasure.ReleaseTenant(t.Context(), w.store, w.tenant), erasure.ReleaseSession(t.Context(), w.store, at)); err != nil {
		t.Fatal(err)
	}
	begun, err := erasure.DeleteTenant(t.Context(), w.store, w.tenant)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := erasure.DeleteTenant(t.Context(), w.store, w.tenant); err != nil || again.ID != begun.ID {
		t.Errorf("the deletion is %s again, not %s: %v", again.ID, begun.ID, err)
	}
	if _, err := w.store.ChangeTenant(t.Context(), w.tenant, session.TenantChange{Suspended: new(session.Suspension(""))}); !errors.Is(err, session.ErrTenantDeleted) {
		t.Errorf("the tenant is served again: %v", err)
	}
	if _, err := erasure.HoldTenant(t.Context(), w.store, w.tenant, "case 8"); err != nil {
		t.Fatal(err)
	}
	w.work(jobs.Config{Settle: time.Nanosecond})
	w.awaits(`EXISTS (SELECT FROM river_job WHERE kind = 'erasure' AND attempted_at IS NOT NULL AND state <> 'running')`)
	stopped, err := erasure.Read(t.Context(), w.store, audit.Operator, begun.ID)
	if err != nil || stopped.StoppedBy == nil || stopped.StoppedBy.Reason != "case 8" || stopped.Sessions != 0 || *stopped.TotalSessions != 1 {
		t.Errorf("the deletion is %+v: %v", stopped, err)
	}
	if err := erasure.ReleaseTenant(t.Context(), w.store, w.tenant); err != nil {
		t.Fatal(err)
	}
	w.ended(audit.Operator, begun.ID)
}

// TestAnotherProgramDoesNotEndTheDeletionOfATenant does what a worker from before there was such an erasure would do.
func TestAnotherProgramDoesNotEndTheDeletionOfATenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begun, err := erasure.DeleteTenant(t.Context(), w.store, w.tenant)
	if err != nil {
		t.Fatal(err)
	}
	err = postgres.InTenant(t.Context(), w.store.Pool(), audit.Operator, pgx.TxOptions{}, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE erasures SET state = 'done', receipt = '{}', finished_at = now() WHERE id = $1`, begun.ID)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "the tenant is there") {
		t.Errorf("the erasure has ended: %v", err)
	}
}

// TestTheSweepFindsErasuresWithoutAJob deletes the jobs of a subject's erasure and of a tenant's, as an operator might.
func TestTheSweepFindsErasuresWithoutAJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other, err := w.store.CreateTenant(t.Context(), "other", settledPolicy())
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = erasure.OfSubject(t.Context(), w.store, other.ID, []byte(`{"user_id":"u1"}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	at := w.session("s")
	deleted, err := w.store.Delete(t.Context(), at, nil)
	if err != nil {
		t.Fatal(err)
	}
	tenants, err := erasure.DeleteTenant(t.Context(), w.store, other.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Pool().Exec(t.Context(), `DELETE FROM river_job WHERE kind = 'erasure'`); err != nil {
		t.Fatal(err)
	}
	w.work(jobs.Config{Settle: time.Nanosecond, SweepEvery: 200 * time.Millisecond})
	w.ended(w.tenant, deleted.Erasure)
	w.ended(audit.Operator, tenants.ID)
	w.awaits(`NOT EXISTS (SELECT FROM tenant_tasks WHERE kind = 'erasure')`)
}

// TestEveryTableOfATenantIsErased looks for tables that have a tenant and that its deletion forgets.
func TestEveryTableOfATenantIsErased(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rows, _ := w.store.Pool().Query(t.Context(), `
		SELECT c.relname::text
		  FROM pg_class c
		  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
		 WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND NOT a.attisdropped
		   AND NOT EXISTS ( -- a row of a session goes with it
		       SELECT
		         FROM pg_constraint f
		        WHERE f.conrelid = c.oid AND f.contype = 'f'
		          AND f.confrelid IN ('sessions'::regclass, 'session_archives'::regclass, 'checkpoints'::regclass, 'result_bodies'::regclass, 'results'::regclass)
		          AND NOT EXISTS (
		              SELECT
		                FROM pg_attribute k
		               WHERE k.attrelid = c.oid AND k.attname = 'session_key' AND NOT k.attnotnull))`)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	last := []string{"api_keys", "audit_heads", "audit_trail", "erasure_sessions", "erasures", "event_heads", "messages", "sessions"}
	erased := slices.Concat(erasure.TenantTables, last)
	asSets := cmp.Transformer("sorted", func(list []string) []string { return slices.Sorted(slices.Values(list)) })
	if diff := cmp.Diff(tables, erased, asSets); diff != "" {
		t.Errorf("the tables of a tenant (-) and those that its deletion erases (+) differ:\n%s", diff)
	}
}
