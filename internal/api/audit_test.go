package api_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/audit"
)

// unaudited are the operations that write no row of the audit trail although they are no reads, by their ids, and why. A
// feature's has that in its description, as x-unaudited.
var unaudited = map[string]string{
	"appendMessages":   "it adds to a log, and nothing else",
	"createItems":      "it is an append",
	"checkPolicy":      "it changes nothing",
	"countTokens":      "it changes nothing",
	"nameTools":        "it changes nothing",
	"previewSession":   "it changes nothing",
	"compactMessages":  "it stores nothing",
	"compactResponses": "it stores nothing",
	"callTool":         "it reads",
	"mcp":              "it reads",
}

// audited are the operations that write more than one row to a chain.
var audited = map[string]int{"changeTenant": 2} // quotas have their own

// idle are operations whose examples change nothing, so that they write no row, and what shows that they write one
// otherwise. An {id} in a path is what the request before it made.
var idle = map[string][]struct{ method, path, body string }{
	"putSession":      {{"PUT", "/v1/sessions/new", ""}},
	"archiveSession":  {{"PUT", "/v1/sessions/put-away", ""}, {"POST", "/v1/sessions/put-away/archive", ""}},
	"putTenantPolicy": {{"PUT", "/v1/policy", `{"target":0.45}`}},
	"operatorPutTenantPolicy": {
		{"POST", "/v1/admin/tenants", `{"name":"audited"}`},
		{"PUT", "/v1/admin/tenants/{id}/policy", `{"target":0.45}`},
	},
	"updateConversation": {
		{"POST", "/v1/conversations", ""}, {"POST", "/v1/conversations/{id}", `{"metadata":{"k":"v"}}`},
	},
}

func (w *world) audited() int {
	w.Helper()
	return w.count(`SELECT count(*) FROM audit_trail WHERE action <> 'erasure.finish'`) // which a job writes
}

// moment returns the database's time.
func (w *world) moment() int {
	return w.count(`SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`)
}

// audited holds an operation that was done since a moment to the audit trail: everything that is no read has written one
// row to the tenant's chain, the operators', or both, with who did it, or is in the list of those that write none.
func (e *examples) audited(op apitest.Operation, since int, got answer) {
	e.Helper()
	id := op.Value["operationId"].(string)
	_, listed := unaudited[id]
	_, described := op.Value["x-unaudited"]
	_, nothing := idle[id]
	want := max(1, audited[id])
	if listed || described || nothing || op.Method == http.MethodGet && id != "exportTenant" && id != "exportSession" {
		want = 0
	}
	rows := e.count(fmt.Sprintf(`
		SELECT coalesce(max(n), 0)
		  FROM (SELECT count(*) n
		          FROM audit_trail
		         WHERE action <> 'erasure.finish' AND at > to_timestamp(%d / 1000000.0)
		         GROUP BY tenant_id) chains`, since))
	if rows != want {
		e.Errorf("%s %s (%s) wrote %d rows of the audit trail, want %d: the method of the store ends with "+
			"postgres.Record, or x-unaudited in the description says why it writes none", op.Method, op.Path, id, rows, want)
		return
	}
	if want > 0 {
		e.signed(got)
	}
}

// signed requires that a row of a request says who did it.
func (w *world) signed(got answer) {
	w.Helper()
	found := w.count(`
		SELECT count(*)
		  FROM audit_trail t
		 WHERE (actor, actor_id) IN (SELECT 'key', id
		                               FROM api_keys k
		                              WHERE digest = '` + digestOf(w.key) + `' AND k.tenant_id = t.tenant_id
		                              UNION ALL
		                             SELECT 'operator', id
		                               FROM operator_keys
		                              WHERE digest = '` + digestOf(w.operator) + `')
		   AND address <> '' AND request = '` + got.Header().Get("X-Request-Id") + `'`)
	if found < 1 {
		w.Errorf("the row does not say who did it: %s", got.Body)
	}
}

// digestOf returns the digest of a key as PostgreSQL reads it.
func digestOf(key string) string { return fmt.Sprintf(`\x%x`, sha256.Sum256([]byte(key))) }

// TestWhatTheExamplesDoNotChangeIsAuditedToo runs the operations of which TestEveryExampleRuns cannot show a row.
func TestWhatTheExamplesDoNotChangeIsAuditedToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for operation, requests := range idle {
		made := ""
		for _, r := range requests {
			before := w.audited()
			got := w.ask(r.method, strings.ReplaceAll(r.path, "{id}", made), r.body)
			if rows := w.audited() - before; got.Code >= http.StatusBadRequest || rows != 1 {
				t.Fatalf("%s: %s %s: %d %s, with %d rows", operation, r.method, r.path, got.Code, got.Body, rows)
			}
			w.signed(got)
			var answer struct{ ID string }
			_ = json.Unmarshal(got.Body.Bytes(), &answer)
			made = answer.ID
		}
	}
}

// TestARepeatedRequestIsAuditedOnce repeats requests with an Idempotency-Key, and those that change nothing twice.
func TestARepeatedRequestIsAuditedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill("s")
	token := w.newToken("s", "").ID.String()
	for _, r := range [][]string{
		{"PATCH", "/v1/sessions/s", `{"model":"gpt-4o"}`, "Idempotency-Key", "k1"},
		{"PATCH", "/v1/sessions/s", `{"model":"gpt-4o"}`},
		{"PUT", "/v1/sessions/s", ""},
		{"PUT", "/v1/policy", `{"target":0.4}`},
		{"PATCH", "/v1/sessions/s/policy", `{"target":0.35}`},
		{"PUT", "/v1/sessions/s/pins/m1", ""},
		{"DELETE", "/v1/sessions/s/tokens/" + token, ""},
		{"POST", "/v1/sessions/s/compact", "", "Idempotency-Key", "k2"},
		{"DELETE", "/v1/sessions/s", "", "Idempotency-Key", "k3"},
	} {
		var rows []int
		for range 3 {
			before := w.audited()
			if got := w.ask(r[0], r[1], r[2], r[3:]...); got.Code >= http.StatusBadRequest {
				t.Fatalf("%v: %d %s", r, got.Code, got.Body)
			}
			rows = append(rows, w.audited()-before)
		}
		if rows[0] > 1 || rows[1] != 0 || rows[2] != 0 {
			t.Errorf("%v wrote %v rows", r, rows)
		}
	}
}

// TestAPolicyIsAuditedWithWhatItWasBefore also asks for the trail by its filters.
func TestAPolicyIsAuditedWithWhatItWasBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	began := time.Now()
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	w.must(http.StatusOK, "PUT", "/v1/policy", `{"target":0.4}`)
	w.must(http.StatusOK, "PATCH", "/v1/policy", `{"target":0.3}`)
	w.must(http.StatusOK, "PUT", "/v1/sessions/s/policy", `{"trigger":0.9}`)
	w.must(http.StatusOK, "DELETE", "/v1/sessions/s/policy", "")
	w.must(http.StatusOK, "PATCH", "/v1/sessions/s", `{"model":"gpt-4o","policy":{"trigger":0.8}}`)
	var told []string
	for _, row := range w.trail("order=asc&since=" + began.UTC().Format(time.RFC3339Nano)) {
		told = append(told, string(row.Action)+" "+string(row.Before)+" "+string(row.After))
	}
	want := []string{
		"session.create null null", `policy.change {} {"target":0.4}`, `policy.change {"target":0.4} {"target":0.3}`,
		`policy.change null {"trigger":0.9}`, `policy.change {"trigger":0.9} null`, `session.change null {"trigger":0.8}`,
	}
	if !slices.Equal(told, want) {
		t.Errorf("the trail has\n%q, want\n%q", told, want)
	}
	actor := w.trail("limit=1")[0].ActorID.String()
	for query, want := range map[string]int{
		"action=policy.change": 4, "object=s": 4, "object=other": 0, "actor=" + actor: 6, "action=policy.change&object=s&actor=" + actor: 2,
		"until=" + began.UTC().Format(time.RFC3339Nano): 1, "since=2999-01-01T00:00:00Z": 0, "until=2020-01-01T00:00:00Z": 0, "": 7,
	} {
		if found := w.trail(query + "&limit=100"); len(found) != want {
			t.Errorf("%s: %d rows, want %d", query, len(found), want)
		}
	}
	w.must(http.StatusUnprocessableEntity, "GET", "/v1/audit?actor=me", "")
}

func (w *world) trail(query string) []audit.Entry {
	w.Helper()
	return decoded[struct{ Data []audit.Entry }](w.must(http.StatusOK, "GET", "/v1/audit?"+strings.TrimPrefix(query, "&"), "")).Data
}

// TestTheTrailIsPagedAndExportedWhole pages through the trail in both orders, and verifies its export.
func TestTheTrailIsPagedAndExportedWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"a", "b", "ü <&>", "d"} {
		w.must(http.StatusCreated, "POST", "/v1/sessions", `{"id":"`+id+`"}`)
	}
	for order, want := range map[string][]int64{"asc": {1, 2, 3, 4, 5}, "desc": {5, 4, 3, 2, 1}} {
		var seen []int64
		for cursor := ""; ; {
			page := decoded[struct {
				Data []audit.Entry
				Next string `json:"next_cursor"`
			}](w.must(http.StatusOK, "GET", "/v1/audit?limit=2&order="+order+cursor, ""))
			for _, row := range page.Data {
				seen = append(seen, row.N)
			}
			if page.Next == "" {
				break
			}
			cursor = "&cursor=" + page.Next
		}
		if !slices.Equal(seen, want) {
			t.Errorf("%s: rows %v", order, seen)
		}
	}
	exported := w.must(http.StatusOK, "GET", "/v1/audit/export", "").Body.String()
	check := func(text string, chain *audit.Chain) (found []audit.Break, head audit.Head, err error) {
		head, err = chain.Read(bufio.NewReader(strings.NewReader(text)), func(b audit.Break) error {
			found = append(found, b)
			return nil
		})
		return found, head, err
	}
	found, head, err := check(exported, audit.Behind(audit.Head{}))
	if err != nil || len(found) > 0 || head.N != 5 {
		t.Errorf("the export: %v, head %v, %v", found, head, err)
	}
	if found, _, _ := check(strings.Replace(exported, "session.create", "session.erase", 1), audit.Behind(audit.Head{})); len(found) != 1 {
		t.Errorf("a changed line: %v", found)
	}
	if _, _, err := check(exported[:strings.LastIndex(exported, "{")], audit.Behind(audit.Head{})); err != audit.ErrCut {
		t.Errorf("an export that is cut off: %v", err)
	}
	w.must(http.StatusNoContent, "DELETE", "/v1/sessions/a", "")
	later := w.must(http.StatusOK, "GET", "/v1/audit/export?after=5", "").Body.String()
	if found, now, err := check(later, audit.Behind(head)); err != nil || len(found) > 0 || now.N != 6 || strings.Count(later, "\n") != 2 {
		t.Errorf("what came later: %v, head %v, %v\n%s", found, now, err, later)
	}
	head.Hash[0]++
	if found, _, _ := check(later, audit.Behind(head)); len(found) != 1 {
		t.Errorf("behind another head: %v", found)
	}
}

// TestATokenIsAuditedAsOne also looks at what another tenant sees.
func TestATokenIsAuditedAsOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	token := w.newToken("s", compactBody)
	w.must(http.StatusAccepted, "POST", "/v1/sessions/s/compact", "", "Authorization", "Bearer "+token.Text)
	if row := w.trail("limit=1")[0]; row.Actor != audit.ByToken || row.ActorID == nil || *row.ActorID != token.ID || row.Action != audit.Compact {
		t.Errorf("the row %+v", row)
	}
	other := *w
	other.tenant, other.key = w.newTenant("other")
	if rows := other.trail(""); len(rows) != 1 || rows[0].Action != audit.KeyCreate {
		t.Errorf("another tenant sees %+v", rows)
	}
}
