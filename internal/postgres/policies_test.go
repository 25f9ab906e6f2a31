package postgres_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/migrations"
)

// layered returns the policy of these layers, a number each: what the tenant's sets is not what the session's does.
func layered(tenant, own json.RawMessage) session.Policy {
	p, err := rebased(tenant, own)
	if err != nil {
		panic(err)
	}
	return p
}

func rebased(tenant, own json.RawMessage) (session.Policy, error) {
	return policy.ResolveStored(tenant, own, "")
}

// defaultLayer and ownLayer are layers of a tenant and of a session.
func defaultLayer(n int) json.RawMessage { return fmt.Appendf(nil, `{"protect":{"last_units":%d}}`, n) }
func ownLayer(n int) json.RawMessage {
	return fmt.Appendf(nil, `{"trim":{"hot_zone_min_tokens":%d}}`, n)
}

// toOwn changes a session's own layer.
func toOwn(layer int) session.Change {
	return session.Change{EditPolicy: func(tenant, _ json.RawMessage) (session.Policy, error) {
		return layered(tenant, ownLayer(layer)), nil
	}}
}

// toDefault changes a tenant's layer.
func toDefault(layer int) session.TenantPolicy {
	return session.TenantPolicy{Rebase: rebased, Edit: func(_, _ json.RawMessage) (session.Policy, error) {
		return layered(defaultLayer(layer), nil), nil
	}}
}

func mustChangeDefault(t testing.TB, store *postgres.Store, tenant uuid.UUID, layer int) {
	t.Helper()
	if _, _, err := store.ChangeTenantPolicy(t.Context(), tenant, toDefault(layer)); err != nil {
		t.Fatal(err)
	}
}

func TestADefaultAndAnOwnPolicyThatChangeAtOnceBothHold(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			if _, _, err := store.ChangeTenantPolicy(t.Context(), tenant, toDefault(i)); err != nil {
				t.Error(err)
			}
		})
		group.Go(func() {
			if _, _, err := store.Update(t.Context(), at, toOwn(i), nil); err != nil {
				t.Error(err)
			}
		})
		group.Go(func() { mustAppend(t, store, batch(at, message("x", 1))) })
	}
	group.Wait()
	found, err := store.SessionPolicy(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if want := layered(found.Tenant, found.Own); string(found.Document) != string(want.Document) || found.Version != (session.PolicyVersion{Tenant: 21, Session: 20}) {
		t.Errorf("%s under %+v, want %s", found.Document, found.Version, want.Document)
	}
	of, err := store.PolicyVersions(t.Context(), tenant, 0, 100)
	if err != nil || len(of) != 21 {
		t.Errorf("%d versions of the default, %v", len(of), err)
	}
	own, err := store.SessionPolicyVersions(t.Context(), at, 0, 100)
	if err != nil || len(own) != 20 {
		t.Errorf("%d versions of the session's, %v", len(own), err)
	}
}

func TestADefaultThatASessionDoesNotFitOnChangesNothing(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	for i := range 7 {
		if _, _, err := store.Update(t.Context(), newSession(t, store, tenant, fmt.Sprint("s", i)), toOwn(1), nil); err != nil {
			t.Fatal(err)
		}
	}
	change := toDefault(7)
	change.Rebase = func(_, _ json.RawMessage) (session.Policy, error) {
		return session.Policy{}, session.Invalid("/target", "contradiction", "it is too high")
	}
	_, _, err := store.ChangeTenantPolicy(t.Context(), tenant, change)
	var invalid *session.InvalidError
	if !errors.As(err, &invalid) || len(invalid.Problems) != 5 || !strings.Contains(err.Error(), `session "s`) || !strings.Contains(err.Error(), "/target: it is too high") {
		t.Errorf("got %v", err)
	}
	if now, err := store.TenantPolicy(t.Context(), tenant); err != nil || now.Version.Tenant != 1 || string(now.Document) != `{}` {
		t.Errorf("the default is %+v, %v", now, err)
	}
	if versions, err := store.PolicyVersions(t.Context(), tenant, 0, 10); err != nil || len(versions) != 1 {
		t.Errorf("%d versions, %v", len(versions), err)
	}
}

func TestASessionsVersionsGoOnAfterItWentBackToTheDefault(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	for _, change := range []session.Change{toOwn(1), toOwn(1), toOwn(2), {DefaultPolicy: true}, {DefaultPolicy: true}, toOwn(3)} {
		if _, _, err := store.Update(t.Context(), at, change, nil); err != nil {
			t.Fatal(err)
		}
	}
	versions, err := store.SessionPolicyVersions(t.Context(), at, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range versions {
		got = append(got, fmt.Sprintf("%d %s", v.Version, v.Patch))
	}
	if diff := cmp.Diff([]string{"4 " + string(ownLayer(3)), "3 ", "2 " + string(ownLayer(2)), "1 " + string(ownLayer(1))}, got); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	var policies int
	err = postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT count(*) FROM policies`).Scan(&policies)
	})
	if err != nil || policies != 2 {
		t.Errorf("%d policies are stored, want the default and the session's, %v", policies, err)
	}
}

func TestAnErasedSessionLeavesNoPolicyBehind(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	if _, _, err := store.Update(t.Context(), at, toOwn(1), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Delete(t.Context(), at, nil); err != nil {
		t.Fatal(err)
	}
	var left int
	err := postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM policies) + (SELECT count(*) FROM policy_versions)`).Scan(&left)
	})
	if err != nil || left != 2 {
		t.Errorf("%d rows are left, want those of the tenant's default, %v", left, err)
	}
}

func TestVersionsOfPoliciesCannotBeChanged(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	err := execInTenant(t, store, tenant, `UPDATE policy_versions SET patch = '{}' WHERE tenant_id = $1`, [16]byte(tenant))
	if err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("an UPDATE of policy_versions: %v", err)
	}
}

// TestPoliciesOfAnOlderSchemaBecomeVersionOne migrates as a login that is no superuser: row-level security binds it.
func TestPoliciesOfAnOlderSchemaBecomeVersionOne(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewEmpty(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	name := "owner_" + strings.ToLower(rand.Text())
	ctx := context.WithoutCancel(t.Context())
	defer conn.Close(ctx)
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE ROLE ` + name)
	defer exec(`RESET ROLE; DROP OWNED BY ` + name + `; DROP ROLE ` + name)
	exec(`GRANT ALL ON SCHEMA public TO ` + name + `; SET ROLE ` + name)
	files, err := fs.Glob(migrations.FS, "*.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	const tenant, own, key = `'018f0000-0000-7000-8000-000000000001'`, `'018f0000-0000-7000-8000-000000000002'`, `'018f0000-0000-7000-8000-000000000003'`
	for _, file := range files {
		if strings.HasPrefix(file, "0022") {
			exec(`SET app.tenant_id = ` + tenant)
			exec(`INSERT INTO tenants (id, name) VALUES (` + tenant + `, 'acme')`)
			exec(`INSERT INTO policies (tenant_id, id, trigger_ratio, hard_ratio, document) VALUES (` + tenant + `, '` + uuid.Nil.String() + `', 0.8, 0.9, '{"target":0.5}')`)
			exec(`INSERT INTO policies (tenant_id, id, trigger_ratio, hard_ratio, document) VALUES (` + tenant + `, ` + own + `, 0.8, 0.9, '{"target":0.4}')`)
			exec(`INSERT INTO sessions (tenant_id, key, id, window_tokens, policy_id) VALUES (` + tenant + `, ` + key + `, 's', 1000, ` + own + `)`)
			exec(`RESET app.tenant_id`)
		}
		text, err := fs.ReadFile(migrations.FS, file)
		if err != nil {
			t.Fatal(err)
		}
		exec(string(text))
	}
	exec(`SET app.tenant_id = ` + tenant)
	rows, err := conn.Query(ctx, `
		SELECT concat_ws(' ', v.session_key, v.version, v.patch, p.patch, p.tenant_version, p.session_version)
		  FROM policy_versions v
		  LEFT JOIN sessions s ON s.key = v.session_key
		  JOIN policies p ON p.id = coalesce(s.policy_id, $1)
		 ORDER BY v.session_key`, [16]byte(uuid.Nil))
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	want := []string{
		uuid.Nil.String() + ` 1 {"target":0.5} {"target":0.5} 1 0`, strings.Trim(key, "'") + ` 1 {"target":0.4} {"target":0.4} 1 1`,
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, versions (-want +got):\n%s", err, diff)
	}
}

// TestAnAppendIsJudgedByTheNewDefault lowers the default of a session with its own layer, and appends.
func TestAnAppendIsJudgedByTheNewDefault(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	mustChangeDefault(t, store, tenant, 1)
	at := newSession(t, store, tenant, "s")
	if _, _, err := store.Update(t.Context(), at, toOwn(1), nil); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, store, batch(at, message("x", 300)))
	lower := func(_, own json.RawMessage) (session.Policy, error) {
		return rebased(json.RawMessage(`{"trigger":0.2,"target":0.1}`), own)
	}
	if _, _, err := store.ChangeTenantPolicy(t.Context(), tenant, session.TenantPolicy{Edit: lower, Rebase: rebased}); err != nil {
		t.Fatal(err)
	}
	if done := mustAppend(t, store, batch(at, message("x", 1))); done.Compaction == session.CompactionNone && liveJobs(t, store) == 0 {
		t.Error("the append was judged by the old default")
	}
	if n, err := store.MergePolicies(t.Context(), tenant); err != nil || n != 0 {
		t.Errorf("the append left %d outdated, %v", n, err)
	}
}
