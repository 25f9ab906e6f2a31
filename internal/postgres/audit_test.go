package postgres_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/session"
)

// breaks returns the rows of a tenant's trail at which its chain is not as it was written, and its head.
func breaks(t testing.TB, store *postgres.Store, tenant uuid.UUID, expected *audit.Head) (rows []int64, head audit.Head) {
	t.Helper()
	chain := audit.Behind(audit.Head{})
	chain.Expected = expected
	note := func(found []audit.Break) {
		for _, b := range found {
			rows = append(rows, b.N)
		}
	}
	head, err := audit.Each(0, func(after int64, limit int) (audit.Page, error) {
		return store.TrailPage(t.Context(), tenant, after, limit)
	}, func(page *audit.Page) error {
		note(chain.Page(page))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	note(chain.End(head))
	return rows, head
}

// owner returns a connection of the tables' owner, who may do everything with the trail when its triggers are off.
func owner(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(t.Context()) })
	return conn
}

func execOwner(t testing.TB, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// act does what is audited n times, many at once.
func act(t testing.TB, store *postgres.Store, tenant uuid.UUID, n int) {
	t.Helper()
	at := newSession(t, store, tenant, "s ü")
	var next atomic.Int64
	next.Add(1) // that was the first
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				ctx := audit.With(t.Context(), &audit.Actor{Kind: audit.ByCommand, Request: fmt.Sprint("r", i), Address: "here"})
				if err := store.RecordExport(ctx, at); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestEveryColumnOfTheTrailIsHashed changes one column after the other.
func TestEveryColumnOfTheTrailIsHashed(t *testing.T) {
	t.Parallel()
	store, dsn := newStoreAt(t)
	tenant := newTenant(t, store, "a")
	for _, limits := range []string{`{"sessions":1}`, `{"sessions":2,"é <&>":"\u2028"}`} {
		if err := store.SetQuotas(t.Context(), tenant, []byte(limits)); err != nil {
			t.Fatal(err)
		}
	}
	if err := execInTenant(t, store, tenant, `
		INSERT INTO audit_trail (tenant_id, actor, actor_id, request, address, action, object, object_id, detail, before, after)
		VALUES ($1, 'token', $1, 'r', 'here', 'export', 'session', 'ü', '{"a":1}', '{"b":1}', '{"c":1}')`, tenant); err != nil {
		t.Fatal(err)
	}
	if found, head := breaks(t, store, tenant, nil); len(found) > 0 || head.N != 3 {
		t.Fatalf("the chain breaks at %v, and has %d rows", found, head.N)
	}
	conn := owner(t, dsn)
	execOwner(t, conn, `ALTER TABLE audit_trail DISABLE TRIGGER USER; CREATE TABLE kept AS TABLE audit_trail`)
	rows, err := conn.Query(t.Context(), `
		SELECT attname::text, format_type(atttypid, NULL), attnotnull FROM pg_attribute
		 WHERE attrelid = 'audit_trail'::regclass AND attnum > 0 AND attname NOT IN ('tenant_id', 'n', 'blanked_by')`)
	if err != nil {
		t.Fatal(err)
	}
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
		Name, Type string
		Required   bool
	}])
	if err != nil || len(columns) != 15 {
		t.Fatalf("%v, %v", columns, err)
	}
	other := map[string][]string{
		"timestamp with time zone": {`at + interval '1 microsecond'`}, "text": {`'x'`, `''`}, "uuid": {`gen_random_uuid()`},
		"json": {`'{"x":1}'`, `'null'`}, "bytea": {`sha256('')`, `''`},
	}
	for _, c := range columns {
		values := other[c.Type]
		if !c.Required {
			values = append(slices.Clone(values), `NULL`)
		}
		for _, value := range values {
			if value == `''` && strings.Contains("actor action object", c.Name) {
				continue // a check refuses it
			}
			execOwner(t, conn, fmt.Sprintf(`UPDATE audit_trail SET %s = %s WHERE tenant_id = '%s' AND n = 3`, c.Name, value, tenant))
			if found, _ := breaks(t, store, tenant, nil); !slices.Contains(found, 3) {
				t.Errorf("%s = %s: found at rows %v", c.Name, value, found)
			}
			execOwner(t, conn, `DELETE FROM audit_trail; INSERT INTO audit_trail TABLE kept`)
		}
	}
}

// TestWhoServesCannotChangeTheTrail asks with the logins that processes have, and as the owner of the tables.
func TestWhoServesCannotChangeTheTrail(t *testing.T) {
	t.Parallel()
	store, dsn := newStoreAt(t)
	tenant := newTenant(t, store, "a")
	newSession(t, store, tenant, "s")
	statements := []string{
		`UPDATE audit_trail SET action = 'x'`, `DELETE FROM audit_trail`, `TRUNCATE audit_trail`,
		`UPDATE audit_heads SET n = n + 1`, `UPDATE audit_heads SET n = 0`, `DELETE FROM audit_heads`, `TRUNCATE audit_heads`,
		`INSERT INTO audit_heads VALUES (gen_random_uuid(), 1, now(), '')`,
		`INSERT INTO audit_trail (tenant_id, n, actor, action, object) VALUES (app.tenant, 7, 'key', 'x', 'x')`,
		`INSERT INTO audit_trail (tenant_id, at, actor, action, object) VALUES (app.tenant, now(), 'key', 'x', 'x')`,
		`INSERT INTO audit_trail (tenant_id, hash, actor, action, object) VALUES (app.tenant, '', 'key', 'x', 'x')`,
		`ALTER TABLE audit_trail DISABLE TRIGGER USER`, `SET session_replication_role = replica`,
	}
	for name, url := range map[string]string{"api": pgtest.API(dsn), "worker": pgtest.Worker(dsn), "admin": pgtest.Admin(dsn)} {
		as := openStore(t, url)
		for _, sql := range statements {
			err := execInTenant(t, as, tenant, strings.ReplaceAll(sql, "app.tenant", "'"+tenant.String()+"'"))
			if err == nil || !strings.Contains(err.Error(), "permission denied") && !strings.Contains(err.Error(), "must be owner") {
				t.Errorf("%s: %s: %v", name, sql, err)
			}
		}
		if err := execInTenant(t, as, tenant, `INSERT INTO audit_trail (tenant_id, actor, action, object) VALUES (gen_random_uuid(), 'key', 'x', 'x')`); err == nil || !strings.Contains(err.Error(), "row-level security") {
			t.Errorf("%s writes another tenant's trail: %v", name, err)
		}
	}
	conn := owner(t, dsn)
	for _, sql := range statements[:3] {
		if _, err := conn.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "only grows") {
			t.Errorf("the owner: %s: %v", sql, err)
		}
	}
	for _, sql := range statements[4:7] {
		if _, err := conn.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "only grows") {
			t.Errorf("the owner: %s: %v", sql, err)
		}
	}
	if found, head := breaks(t, store, tenant, nil); len(found) > 0 || head.N != 1 {
		t.Errorf("the chain breaks at %v, and has %d rows", found, head.N)
	}
}

// TestAnActionAndItsRowAreThereOrNeither kills an erasure while it waits to write its row, and lets one fail there.
func TestAnActionAndItsRowAreThereOrNeither(t *testing.T) {
	t.Parallel()
	store, dsn := newStoreAt(t)
	tenant := newTenant(t, store, "a")
	at := newSession(t, store, tenant, "s")
	state := func() string {
		_, err := store.Session(t.Context(), at)
		rows, failed := store.Trail(t.Context(), tenant, postgres.TrailFilter{Action: audit.SessionErase, Limit: 10})
		if failed != nil {
			t.Fatal(failed)
		}
		return fmt.Sprintf("gone %v, %d rows", errors.Is(err, session.ErrNotFound), len(rows))
	}
	conn := owner(t, dsn)
	execOwner(t, conn, `BEGIN; SELECT FROM audit_heads WHERE tenant_id = '`+tenant.String()+`' FOR UPDATE`)
	erased := make(chan error, 1)
	go func() {
		_, err := store.Delete(t.Context(), at, nil)
		erased <- err
	}()
	killer := owner(t, dsn)
	for end := time.Now().Add(10 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		var killed bool
		err := killer.QueryRow(t.Context(), `
			SELECT coalesce(bool_or(pg_terminate_backend(pid)), false) FROM pg_stat_activity
			 WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%audit_blank(%'`).Scan(&killed)
		if err != nil || time.Now().After(end) {
			t.Fatalf("the erasure does not wait for the head: %v", err)
		}
		if killed {
			break
		}
	}
	if err := <-erased; err == nil {
		t.Error("the erasure survived its backend")
	}
	execOwner(t, conn, `ROLLBACK`)
	if got := state(); got != "gone false, 0 rows" {
		t.Errorf("killed: %s", got)
	}
	execOwner(t, conn, `ALTER TABLE audit_trail ADD CONSTRAINT none CHECK (action <> 'session.erase')`)
	if _, err := store.Delete(t.Context(), at, nil); err == nil {
		t.Error("an erasure without a row")
	}
	if got := state(); got != "gone false, 0 rows" {
		t.Errorf("refused: %s", got)
	}
	execOwner(t, conn, `ALTER TABLE audit_trail DROP CONSTRAINT none`)
	if _, err := store.Delete(t.Context(), at, nil); err != nil {
		t.Fatal(err)
	}
	if got := state(); got != "gone true, 1 rows" {
		t.Errorf("erased: %s", got)
	}
}

// told returns what the rows of a trail say, oldest first.
func told(t testing.TB, store *postgres.Store, tenant uuid.UUID) (text []string) {
	t.Helper()
	rows, err := store.Trail(t.Context(), tenant, postgres.TrailFilter{Oldest: true, Limit: 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		text = append(text, fmt.Sprintf("%s %s %s %s %s", r.Actor, *r.Address, r.Action, *r.ObjectID, r.After))
	}
	return text
}

// TestWhatOperatorsDoIsAudited does each thing twice that can be repeated.
func TestWhatOperatorsDoIsAudited(t *testing.T) {
	t.Parallel()
	store, _ := newStoreAt(t)
	ctx := audit.With(t.Context(), &audit.Actor{Kind: audit.ByOperator, ID: uuid.New(), Address: "there"})
	operator, err := store.CreateOperatorKey(ctx, "ops", session.NewOperatorKey(), nil)
	if err != nil {
		t.Fatal(err)
	}
	id := uuid.Must(uuid.NewV7())
	_, first, err := store.ProvisionTenant(ctx, session.NewTenant{
		ID: id, Name: "acme", Policy: session.Policy{Trigger: 0.8, Hard: 0.95, Document: []byte(`{}`)},
		Key: &session.NewKey{Text: session.NewAPIKey(id), Scopes: session.KeyScopes()},
	})
	if err != nil {
		t.Fatal(err)
	}
	second, err := store.RotateKey(ctx, id, first.ID, session.NewAPIKey(id), time.Hour, func([]session.Scope) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	change := session.TenantChange{Name: new("acme 2"), Suspended: new(session.SuspendWrites), Quotas: []byte(`{"sessions":6}`)}
	for range 2 {
		_, err := store.ChangeTenant(ctx, id, change)
		if err := errors.Join(err, store.RevokeKey(ctx, id, second.ID), store.RevokeOperatorKey(ctx, operator.ID)); err != nil {
			t.Fatal(err)
		}
	}
	for trail, want := range map[uuid.UUID][]string{
		audit.Operator: {"key.create " + operator.ID.String() + " ", "tenant.create " + id.String() + " ", "key.revoke " + operator.ID.String() + " "},
		id: {
			"key.create " + first.ID.String() + " ", "key.rotate " + first.ID.String() + " ",
			"tenant.change " + id.String() + ` {"name":"acme 2","suspended":"writes"}`,
			"limits.change " + id.String() + ` {"sessions":6}`, "key.revoke " + second.ID.String() + " ",
		},
	} {
		for i := range want {
			want[i] = "operator there " + want[i]
		}
		if got := told(t, store, trail); !slices.Equal(got, want) {
			t.Errorf("the trail %s: %q, want %q", trail, got, want)
		}
		if found, head := breaks(t, store, trail, nil); len(found) > 0 || head.N != int64(len(want)) {
			t.Errorf("the chain of %s breaks at %v, and has %d rows", trail, found, head.N)
		}
	}
}

// TestTenantsAreMadeInTheOperatorsTrail also looks at what is done to keys and limits.
func TestTenantsAreMadeInTheOperatorsTrail(t *testing.T) {
	t.Parallel()
	store, _ := newStoreAt(t)
	ctx := audit.With(t.Context(), &audit.Actor{Kind: audit.ByCommand, Address: "root@host"})
	policy := session.Policy{Trigger: 0.8, Hard: 0.95, Document: []byte(`{}`)}
	made, err := store.CreateTenant(ctx, "acme", policy)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.CreateTenant(ctx, "acme", policy); !errors.Is(err, session.ErrTenantExists) {
		t.Fatal(err)
	}
	key, err := store.CreateKey(ctx, made.ID, session.NewKey{Name: "first", Text: session.NewAPIKey(made.ID), Scopes: session.KeyScopes()})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := errors.Join(store.RevokeKey(ctx, made.ID, key.ID), store.SetQuotas(ctx, made.ID, []byte(`{"sessions":5}`))); err != nil {
			t.Fatal(err)
		}
	}
	told := func(tenant uuid.UUID) []string { return told(t, store, tenant) }
	by := "command root@host "
	if got := told(audit.Operator); !slices.Equal(got, []string{by + "tenant.create " + made.ID.String() + " "}) {
		t.Errorf("the operators' trail: %q", got)
	}
	want := []string{by + "key.create " + key.ID.String() + " ", by + "key.revoke " + key.ID.String() + " ", by + "limits.change " + made.ID.String() + ` {"sessions":5}`}
	if got := told(made.ID); !slices.Equal(got, want) {
		t.Errorf("the tenant's trail: %q, want %q", got, want)
	}
	if found, head := breaks(t, store, audit.Operator, nil); len(found) > 0 || head.N != 1 {
		t.Errorf("the operators' chain breaks at %v, and has %d rows", found, head.N)
	}
}
