package postgres_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/erasure"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
)

const day = 24 * time.Hour

// age makes rows of a trail older, and chains all that follow anew.
func age(t testing.TB, conn *pgx.Conn, tenant uuid.UUID, from, to, days int) {
	t.Helper()
	execOwner(t, conn, fmt.Sprintf(`
		SET session_replication_role = replica;
		DO $$
		DECLARE
		    r    audit_trail;
		    last bytea;
		BEGIN
		    FOR r IN SELECT * FROM audit_trail WHERE tenant_id = '%[1]s' AND n >= %[2]d ORDER BY n LOOP
		        r.previous := coalesce(last, r.previous);
		        IF r.n <= %[3]d THEN
		            r.at := now() - interval '%[4]d days';
		        END IF;
		        last := audit_hash(r);
		        UPDATE audit_trail SET at = r.at, previous = r.previous, hash = last WHERE tenant_id = r.tenant_id AND n = r.n;
		    END LOOP;
		    UPDATE audit_heads SET hash = last WHERE tenant_id = '%[1]s';
		END
		$$;
		SET session_replication_role = origin`, tenant, from, to, days))
}

// keepTrails prunes the trail of a tenant as it is done for that time.
func keepTrails(t testing.TB, store *postgres.Store, tenant uuid.UUID, kept time.Duration) {
	t.Helper()
	store.KeepFor(postgres.Retention{Audit: kept})
	if err := store.Prune(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
}

// trailOf says which rows a trail has.
func trailOf(t testing.TB, store *postgres.Store, tenant uuid.UUID) string {
	t.Helper()
	page, err := store.TrailPage(t.Context(), tenant, 0, 10_000)
	if err != nil || len(page.Rows) == 0 {
		t.Fatal(page, err)
	}
	return fmt.Sprintf("%d to %d", page.Rows[0].N, page.Rows[len(page.Rows)-1].N)
}

// exported returns the export of a trail.
func exported(t testing.TB, store *postgres.Store, tenant uuid.UUID) string {
	t.Helper()
	var out bytes.Buffer
	err := audit.Copy(&out, 0, func(after int64, limit int) (audit.Page, error) {
		return store.TrailPage(t.Context(), tenant, after, limit)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// readTrail returns where an exported trail begins, and the rows at which its chain is not as it was written.
func readTrail(t testing.TB, text string, expected *audit.Head) (first audit.Head, rows []int64) {
	t.Helper()
	chain := audit.Behind(audit.Head{})
	chain.Expected = expected
	_, err := chain.Read(strings.NewReader(text), func(b audit.Break) error {
		rows = append(rows, b.N)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return chain.First(), rows
}

// headAt returns the head that the trail had at a row.
func headAt(t testing.TB, store *postgres.Store, tenant uuid.UUID, n int64) *audit.Head {
	t.Helper()
	rows, err := store.Trail(t.Context(), tenant, postgres.TrailFilter{Oldest: true, Place: n - 1, Limit: 1})
	if err != nil || len(rows) != 1 || rows[0].N != n {
		t.Fatalf("row %d: %v, %v", n, rows, err)
	}
	return &audit.Head{N: n, Hash: rows[0].Hash}
}

// TestRowsOfTheTrailGoWhenTheirTimeIsOver removes the older rows of a trail, and then damages what says so.
func TestRowsOfTheTrailGoWhenTheirTimeIsOver(t *testing.T) {
	t.Parallel()
	store, dsn := newStoreAt(t)
	tenant, other := newTenant(t, store, "a"), newTenant(t, store, "b")
	act(t, store, tenant, 2500)
	act(t, store, other, 100)
	conn := owner(t, dsn)
	age(t, conn, tenant, 1, 2200, 40)
	age(t, conn, other, 1, 60, 40)
	before := exported(t, store, tenant)
	early, last, behind := headAt(t, store, tenant, 1500), headAt(t, store, tenant, 2200), headAt(t, store, tenant, 2201)
	for kept, want := range map[time.Duration]string{0: "1 to 2500", 40 * day: "1 to 2500"} {
		if keepTrails(t, store, tenant, kept); trailOf(t, store, tenant) != want {
			t.Errorf("kept for %v: %s, want %s", kept, trailOf(t, store, tenant), want)
		}
	}
	// A page of rows that is read before, and the rest after.
	chain, pages := audit.Behind(audit.Head{}), 0
	head, err := audit.Each(0, func(after int64, limit int) (audit.Page, error) {
		if pages++; pages == 2 {
			keepTrails(t, store, tenant, 31*day)
		}
		return store.TrailPage(t.Context(), tenant, after, limit)
	}, func(page *audit.Page) error {
		if found := chain.Page(page); len(found) > 0 {
			t.Errorf("removed while it is read: %v", found)
		}
		return nil
	})
	if found := chain.End(head); err != nil || len(found) > 0 || chain.First() != (audit.Head{}) {
		t.Errorf("removed while it is read: %v, %v, from %v", found, err, chain.First())
	}
	for range 2 { // nothing is left for the second time
		if got := trailOf(t, store, tenant); got != "2201 to 2503" {
			t.Fatalf("there are rows %s", got)
		}
		keepTrails(t, store, tenant, 31*day)
	}
	if got := trailOf(t, store, other); got != "1 to 100" {
		t.Errorf("another tenant has rows %s", got)
	}
	rows, err := store.Trail(t.Context(), tenant, postgres.TrailFilter{Action: audit.Prune, Oldest: true, Limit: 10})
	if err != nil || len(rows) != 3 || rows[2].Actor != audit.ByVarve || *rows[2].ObjectID != tenant.String() ||
		string(rows[2].Detail) != fmt.Sprintf(`{"through":2200,"hash":"%s","removed":200}`, last.Hash) {
		t.Errorf("the removal says %+v, %v", rows, err)
	}
	after := exported(t, store, tenant)
	for name, test := range map[string]struct {
		text     string
		expected *audit.Head
		first    int64
		want     []int64
	}{
		"an export of before":           {before, nil, 0, nil},
		"one that goes on with it":      {before, last, 0, nil},
		"an export":                     {after, nil, 2200, nil},
		"the last that was removed":     {after, last, 2200, nil},
		"another in its place":          {after, &audit.Head{N: 2200}, 2200, []int64{2200}},
		"the first that is there":       {after, behind, 2200, nil},
		"what was removed":              {after, early, 2200, []int64{1500}},
		"with its first row cut out":    {after[strings.Index(after, "\n")+1:], nil, 0, []int64{2201}},
		"without what says so":          {strings.Replace(after, `"through":2200`, `"through":2199`, 1), nil, 0, []int64{2503, 2001}},
		"with a row of before in front": {before[:strings.Index(before, "\n")+1] + after, nil, 0, nil},
	} {
		if first, found := readTrail(t, test.text, test.expected); first.N != test.first || !slices.Equal(found, test.want) {
			t.Errorf("%s: begins behind %d, found at rows %v, want %v", name, first.N, found, test.want)
		}
	}
	execOwner(t, conn, `ALTER TABLE audit_trail DISABLE TRIGGER USER; CREATE TABLE kept_trail AS TABLE audit_trail`)
	mine := fmt.Sprintf(` WHERE tenant_id = '%s'`, tenant)
	for sql, test := range map[string]struct {
		tenant uuid.UUID
		want   []int64
	}{
		`DELETE FROM audit_trail` + mine + ` AND n = 2201`:                               {tenant, []int64{2201}},
		`DELETE FROM audit_trail` + mine + ` AND n <= 2300`:                              {tenant, []int64{2201}},
		`UPDATE audit_trail SET detail = '{"through":2200}'` + mine + ` AND n = 2503`:    {tenant, []int64{2001, 2503}},
		`UPDATE audit_trail SET previous = sha256('')` + mine + ` AND n = 2201`:          {tenant, []int64{2201}},
		`DELETE FROM audit_trail` + mine + ` AND n = 2503`:                               {tenant, []int64{2001, 2503}},
		`DELETE FROM audit_trail WHERE tenant_id = '` + other.String() + `' AND n <= 50`: {other, []int64{1}},
	} {
		execOwner(t, conn, sql)
		found, _ := breaks(t, store, test.tenant, nil)
		if slices.Sort(found); !slices.Equal(slices.Compact(found), test.want) {
			t.Errorf("%s: found at rows %v, want %v", sql, found, test.want)
		}
		execOwner(t, conn, `DELETE FROM audit_trail; INSERT INTO audit_trail TABLE kept_trail`)
	}
}

// TestWhatShowsAChangeOfTheTrailIsNotRemoved has retention stop before a row that was changed, and wait for a hold.
func TestWhatShowsAChangeOfTheTrailIsNotRemoved(t *testing.T) {
	t.Parallel()
	store, dsn := newStoreAt(t)
	tenant := newTenant(t, store, "a")
	act(t, store, tenant, 50)
	if _, err := erasure.HoldTenant(t.Context(), store, tenant, "a case"); err != nil { // row 51
		t.Fatal(err)
	}
	conn := owner(t, dsn)
	age(t, conn, tenant, 1, 40, 100)
	if keepTrails(t, store, tenant, 30*day); trailOf(t, store, tenant) != "1 to 51" {
		t.Errorf("under a hold there are rows %s", trailOf(t, store, tenant))
	}
	if err := erasure.ReleaseTenant(t.Context(), store, tenant); err != nil { // row 52
		t.Fatal(err)
	}
	for _, sql := range []string{
		`UPDATE audit_trail SET address = 'elsewhere' WHERE n = 11`, `DELETE FROM audit_trail WHERE n = 11`,
		`UPDATE audit_trail t SET address = 'elsewhere', hash = audit_hash(t) WHERE n = 10; UPDATE audit_trail t SET hash = audit_hash(t) WHERE n = 10`,
	} {
		execOwner(t, conn, `CREATE TABLE kept AS TABLE audit_trail; SET session_replication_role = replica;`+sql+`; SET session_replication_role = origin`)
		keepTrails(t, store, tenant, 30*day)
		if got := trailOf(t, store, tenant); got[:2] != "11" && got[:2] != "12" {
			t.Errorf("%s: there are rows %s", sql, got)
		}
		if found, _ := breaks(t, store, tenant, nil); len(found) == 0 || found[0] != 11 {
			t.Errorf("%s: found at rows %v", sql, found)
		}
		execOwner(t, conn, `SET session_replication_role = replica; DELETE FROM audit_trail;
			INSERT INTO audit_trail TABLE kept; DROP TABLE kept;
			UPDATE audit_heads h SET n = 52, hash = (SELECT t.hash FROM audit_trail t WHERE t.tenant_id = h.tenant_id AND t.n = 52)
			 WHERE tenant_id = '`+tenant.String()+`'; SET session_replication_role = origin`)
	}
	if keepTrails(t, store, tenant, 30*day); trailOf(t, store, tenant) != "41 to 53" {
		t.Errorf("there are rows %s", trailOf(t, store, tenant))
	}
	// What only says that rows were removed goes with others.
	age(t, conn, tenant, 41, 53, 35)
	if keepTrails(t, store, tenant, 30*day); trailOf(t, store, tenant) != "54 to 54" {
		t.Errorf("there are rows %s", trailOf(t, store, tenant))
	}
	age(t, conn, tenant, 54, 54, 35)
	if keepTrails(t, store, tenant, 30*day); trailOf(t, store, tenant) != "54 to 54" {
		t.Errorf("there are rows %s", trailOf(t, store, tenant))
	}
	if found, _ := breaks(t, store, tenant, nil); len(found) > 0 {
		t.Errorf("the chain breaks at %v", found)
	}
}

// TestWhatIsBlankedIsProvedWithoutTheRowsThatWereRemoved removes some of the rows that an erasure has blanked, and then
// that of the erasure.
func TestWhatIsBlankedIsProvedWithoutTheRowsThatWereRemoved(t *testing.T) {
	t.Parallel()
	store, dsn := newStoreAt(t)
	tenant := newTenant(t, store, "a")
	at := newSession(t, store, tenant, "s1") // row 1
	for range 3 {                            // rows 2 to 4
		if err := store.RecordExport(t.Context(), at); err != nil {
			t.Fatal(err)
		}
	}
	conn := owner(t, dsn)
	age(t, conn, tenant, 1, 2, 100)
	age(t, conn, tenant, 3, 4, 50)
	if _, err := store.Delete(t.Context(), at, nil); err != nil { // row 5
		t.Fatal(err)
	}
	if keepTrails(t, store, tenant, 60*day); trailOf(t, store, tenant) != "3 to 6" {
		t.Fatalf("there are rows %s", trailOf(t, store, tenant))
	}
	clean := func(name string) {
		t.Helper()
		if found, _ := breaks(t, store, tenant, nil); len(found) > 0 {
			t.Errorf("%s: the chain breaks at %v", name, found)
		}
		if _, found := readTrail(t, exported(t, store, tenant), nil); len(found) > 0 {
			t.Errorf("%s: the export's chain breaks at %v", name, found)
		}
	}
	clean("two blanked rows are removed")
	execOwner(t, conn, `SET session_replication_role = replica; CREATE TABLE kept AS TABLE audit_trail`)
	for _, sql := range []string{
		`UPDATE audit_trail SET address = 'elsewhere' WHERE n = 4`, `UPDATE audit_trail SET object_id = 'another' WHERE n = 4`,
		`UPDATE audit_trail SET blanked_by = 6 WHERE n = 4`, `UPDATE audit_trail SET detail = '{}' WHERE n = 4`,
	} {
		execOwner(t, conn, sql)
		if found, _ := breaks(t, store, tenant, nil); len(found) == 0 {
			t.Errorf("%s is not found", sql)
		}
		execOwner(t, conn, `DELETE FROM audit_trail; INSERT INTO audit_trail TABLE kept`)
	}
	execOwner(t, conn, `SET session_replication_role = origin`)
	age(t, conn, tenant, 5, 5, 45)
	clean("the erasure is older")
	newSession(t, store, tenant, "s2") // row 7
	if keepTrails(t, store, tenant, 30*day); trailOf(t, store, tenant) != "6 to 8" {
		t.Errorf("there are rows %s", trailOf(t, store, tenant))
	}
	clean("the row of the erasure is removed")
}

// TestOnlyWorkersShortenATrail asks with the logins that processes have.
func TestOnlyWorkersShortenATrail(t *testing.T) {
	t.Parallel()
	store, dsn := newStoreAt(t)
	tenant, other := newTenant(t, store, "a"), newTenant(t, store, "b")
	for url, test := range map[string]struct{ sql, want string }{
		pgtest.API(dsn):    {`SELECT audit_prune($1, '30 days', 10)`, "permission denied"},
		pgtest.Worker(dsn): {`SELECT audit_prune('` + other.String() + `', '30 days', 10), $1::uuid`, "the transaction's tenant"},
		pgtest.Admin(dsn):  {`SELECT audit_prune($1, '29 days 23 hours', 10)`, "30 days at least"},
	} {
		as := openStore(t, url)
		if err := execInTenant(t, as, tenant, test.sql, tenant); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.sql, err)
		}
		err := execInTenant(t, as, tenant, `SELECT audit_prune($1, '30 days', 10)`, tenant)
		if refused := err != nil; refused != (url == pgtest.API(dsn)) {
			t.Errorf("%s: %v", url, err)
		}
	}
	act(t, store, tenant, 3)
	conn := owner(t, dsn)
	age(t, conn, tenant, 1, 2, 50)
	keepTrails(t, store, tenant, 30*day)
	for _, sql := range []string{
		`TRUNCATE audit_trail`, `DELETE FROM audit_trail WHERE n = 3`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "only grows") {
			t.Errorf("the owner: %s: %v", sql, err)
		}
	}
}
