package postgres_test

import (
	"fmt"
	"slices"
	"testing"
)

// TestEachDamageToATrailIsFound damages a trail in every way that the tables' owner can. Some of them show
// only to those who kept the head elsewhere.
func TestEachDamageToATrailIsFound(t *testing.T) {
	t.Parallel()
	store, dsn := newStoreAt(t)
	tenant, other := newTenant(t, store, "a"), newTenant(t, store, "b")
	act(t, store, tenant, 2000)
	act(t, store, other, 100)
	whole, kept := breaks(t, store, tenant, nil)
	if len(whole) > 0 || kept.N != 2000 {
		t.Fatalf("the chain breaks at %v, and has %d rows", whole, kept.N)
	}
	conn := owner(t, dsn)
	execOwner(t, conn, `ALTER TABLE audit_trail DISABLE TRIGGER USER; ALTER TABLE audit_heads DISABLE TRIGGER USER;
		CREATE TABLE kept_trail AS TABLE audit_trail; CREATE TABLE kept_heads AS TABLE audit_heads`)
	const mine = ` WHERE tenant_id = '%s'`
	row := func(n int) string { return fmt.Sprintf(mine+` AND n = %d`, tenant, n) }
	copied := func(n int, values string) string {
		return fmt.Sprintf(`INSERT INTO audit_trail SELECT tenant_id, %s, at, login, actor, actor_id, request, address, action, object,
			object_id, detail, before, after, content, previous, hash FROM audit_trail`, values) + row(n)
	}
	chained := func(from int) string { // all rows from one on, written anew with their head
		return fmt.Sprintf(`
			DO $$ DECLARE r audit_trail; last bytea := (SELECT previous FROM audit_trail%[1]s); BEGIN
				FOR r IN SELECT * FROM audit_trail%[2]s AND n >= %[3]d ORDER BY n LOOP
					r.content := audit_content(r); r.previous := last; last := audit_hash(r);
					UPDATE audit_trail SET content = r.content, previous = r.previous, hash = last WHERE tenant_id = r.tenant_id AND n = r.n;
				END LOOP;
				UPDATE audit_heads SET hash = last%[2]s;
			END $$`, row(from), fmt.Sprintf(mine, tenant), from)
	}
	for name, test := range map[string]struct {
		sql          string
		want, byKept []int64 // without and with the kept head
	}{
		"changed":                 {`UPDATE audit_trail SET object_id = 'other'` + row(1000), []int64{1000}, []int64{1000}},
		"changed, with its hash":  {`UPDATE audit_trail t SET object_id = 'other'` + row(1000) + `; UPDATE audit_trail t SET content = audit_content(t)` + row(1000) + `; UPDATE audit_trail t SET hash = audit_hash(t)` + row(1000), []int64{1001}, []int64{1001}},
		"the last, with its hash": {`UPDATE audit_trail t SET object_id = 'other'` + row(2000) + `; UPDATE audit_trail t SET content = audit_content(t)` + row(2000) + `; UPDATE audit_trail t SET hash = audit_hash(t)` + row(2000), []int64{2000}, []int64{2000, 2000}},
		"deleted":                 {`DELETE FROM audit_trail` + row(1000), []int64{1000}, []int64{1000}},
		"the first deleted":       {`DELETE FROM audit_trail` + row(1), []int64{1}, []int64{1}},
		"the last deleted":        {`DELETE FROM audit_trail` + row(2000), []int64{2000}, []int64{2000, 2000}},
		"two swapped":             {`UPDATE audit_trail SET n = 99999` + row(1000) + `; UPDATE audit_trail SET n = 1000` + row(1001) + `; UPDATE audit_trail SET n = 1001` + row(99_999), []int64{1000, 1000, 1001, 1001, 1002}, nil},
		"put in behind the end":   {copied(2000, `n + 1`), []int64{2001, 2001, 2001}, nil},
		"put in in the middle":    {`UPDATE audit_trail SET n = 90000 + n` + fmt.Sprintf(mine, tenant) + ` AND n > 1998; ` + copied(1998, `n + 1`) + `; UPDATE audit_trail SET n = n - 89999` + fmt.Sprintf(mine, tenant) + ` AND n > 90000`, []int64{1999, 1999, 2000, 2001, 2001}, nil},
		"cut at the end":          {`DELETE FROM audit_trail` + fmt.Sprintf(mine, tenant) + ` AND n > 1990`, []int64{1991}, []int64{1991, 2000}},
		"cut, with its head":      {`DELETE FROM audit_trail` + fmt.Sprintf(mine, tenant) + ` AND n > 1990; UPDATE audit_heads h SET n = 1990, hash = (SELECT hash FROM audit_trail` + row(1990) + `)` + fmt.Sprintf(mine, tenant), nil, []int64{2000}},
		"the head deleted":        {`DELETE FROM audit_heads` + fmt.Sprintf(mine, tenant), []int64{1}, []int64{1}},
		"all deleted":             {`DELETE FROM audit_trail` + fmt.Sprintf(mine, tenant), []int64{1}, []int64{1, 2000}},
		"all deleted, and head":   {`DELETE FROM audit_trail` + fmt.Sprintf(mine, tenant) + `; DELETE FROM audit_heads` + fmt.Sprintf(mine, tenant), nil, []int64{2000}},
		"all written anew":        {`UPDATE audit_trail SET object_id = 'other'` + row(1800) + `; ` + chained(1800), nil, []int64{2000}},
		"another tenant's row":    {fmt.Sprintf(`DELETE FROM audit_trail%s; UPDATE audit_trail SET tenant_id = '%s' WHERE tenant_id = '%s' AND n = 50`, row(50), tenant, other), []int64{50, 50, 51}, nil},
	} {
		execOwner(t, conn, test.sql)
		if found, _ := breaks(t, store, tenant, nil); !slices.Equal(found, test.want) {
			t.Errorf("%s: found at rows %v, want %v", name, found, test.want)
		}
		if found, _ := breaks(t, store, tenant, &kept); test.byKept != nil && !slices.Equal(found, test.byKept) {
			t.Errorf("%s: with the kept head found at rows %v, want %v", name, found, test.byKept)
		}
		execOwner(t, conn, `DELETE FROM audit_trail; DELETE FROM audit_heads; INSERT INTO audit_trail TABLE kept_trail; INSERT INTO audit_heads TABLE kept_heads`)
	}
}
