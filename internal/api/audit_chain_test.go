package api_test

import (
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
)

var actions = flag.Int("actions", 300, "how many actions TestAChangedADeletedAndASwappedRowAreFound does; 10000 is its full size")

// auditedActions are routes of different areas whose every request is an action. Each has the number of the action.
var auditedActions = []struct{ method, path, body string }{
	{"PUT", "/v1/sessions/s%d", `{"metadata":{"user":"u"}}`},
	{"PUT", "/v1/policy", `{"target":0.3%d}`},
	{"PUT", "/v1/retention", `{"idle_seconds":1%04d}`},
	{"PATCH", "/v1/sessions/base", `{"metadata":{"n":"%d"}}`},
	{"PUT", "/v1/sessions/base/hold", `{"reason":"case %d"}`},
	{"POST", "/v1/sessions/base/tokens", `{"name":"t%d"}`},
	{"PUT", "/v1/sessions/base/pins/m1", `{"note":"note %d"}`},
	{"PATCH", "/v1/sessions/base/policy", `{"target":0.2%d}`},
	{"POST", "/v1/sessions/base/fork", `{"id":"f%d"}`},
}

// TestAChangedADeletedAndASwappedRowAreFound does many actions over HTTP, and lets a superuser change, delete and swap
// rows of the trail.
func TestAChangedADeletedAndASwappedRowAreFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/base", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/base/messages", `{"format":"openai-chat","messages":[{"role":"user","content":"hi"}]}`)
	began, before := time.Now(), w.audited()
	for n := range *actions {
		d := auditedActions[n%len(auditedActions)]
		path, body := d.path, d.body
		if strings.Contains(path, "%d") {
			path = fmt.Sprintf(path, n)
		} else {
			body = fmt.Sprintf(body, n)
		}
		if got := w.ask(d.method, path, body); got.Code >= http.StatusBadRequest {
			t.Fatalf("%s %s: %d %s", d.method, path, got.Code, got.Body)
		}
	}
	if rows := w.audited() - before; rows != *actions {
		t.Fatalf("%d actions wrote %d rows", *actions, rows)
	}
	t.Logf("%d actions in %s", *actions, time.Since(began).Round(time.Millisecond))
	superuser, err := pgx.Connect(t.Context(), w.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer superuser.Close(t.Context())
	w.untouched(superuser)
	half := int64(*actions / 2)
	for name, forged := range map[string]struct {
		sql  string
		rows []int64 // that must be named
	}{
		"changed": {`UPDATE audit_trail SET object_id = 'another' WHERE tenant_id = $1 AND n = $2`, []int64{half}},
		"deleted": {`DELETE FROM audit_trail WHERE tenant_id = $1 AND n = $2`, []int64{half}},
		"swapped": {`
			UPDATE audit_trail
			   SET n = CASE WHEN n = $2 THEN $2::bigint + 7 ELSE $2 END
			 WHERE tenant_id = $1 AND n IN ($2, $2::bigint + 7)`, []int64{half, half + 7}},
	} {
		began := time.Now()
		found := w.forged(superuser, forged.sql, w.tenant, half)
		t.Logf("%s: found in %s: %v", name, time.Since(began).Round(time.Millisecond), found)
		var rows []int64
		for _, b := range found {
			rows = append(rows, b.N)
		}
		for _, n := range forged.rows {
			if !slices.Contains(rows, n) {
				t.Errorf("%s: row %d is not named: %v", name, n, found)
			}
		}
		if beyond := slices.Max(append(rows, 0)); len(found) == 0 || beyond > half+8 || slices.Min(append(rows, beyond)) < half {
			t.Errorf("%s: %v", name, found)
		}
	}
	w.untouched(superuser)
}

// untouched requires that nothing is wrong with the tenant's trail.
func (w *world) untouched(superuser *pgx.Conn) {
	w.Helper()
	if found := w.forged(superuser, `SELECT WHERE $1::uuid IS NULL AND $2::bigint IS NULL`, w.tenant, 0); len(found) > 0 {
		w.Errorf("of an untouched trail: %v", found)
	}
}

// forged forges rows of the trail, reads what is wrong with its export, and puts the rows back.
func (w *world) forged(superuser *pgx.Conn, sql string, args ...any) (found []audit.Break) {
	w.Helper()
	exec := func(sql string, args ...any) {
		w.Helper()
		if _, err := superuser.Exec(w.Context(), sql, args...); err != nil {
			w.Fatal(err)
		}
	}
	exec(`ALTER TABLE audit_trail DISABLE TRIGGER USER`)
	exec(`ALTER TABLE audit_trail DROP CONSTRAINT audit_trail_pkey`) // which a swap of numbers would violate midway
	exec(`CREATE TEMPORARY TABLE kept AS TABLE audit_trail`)
	exec(sql, args...)
	exec(`ALTER TABLE audit_trail ADD CONSTRAINT audit_trail_pkey PRIMARY KEY (tenant_id, n)`)
	exported := w.must(http.StatusOK, "GET", "/v1/audit/export", "").Body
	_, err := audit.Behind(audit.Head{}).Read(exported, func(b audit.Break) error {
		found = append(found, b)
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	exec(`DELETE FROM audit_trail`)
	exec(`INSERT INTO audit_trail SELECT * FROM kept`)
	exec(`DROP TABLE kept`)
	exec(`ALTER TABLE audit_trail ENABLE TRIGGER USER`)
	return found
}
