package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// erasureEnded waits for the end of an erasure.
func (w *world) erasureEnded(location string) session.Erasure {
	w.Helper()
	var found session.Erasure
	w.until("the erasure has ended", func() bool {
		found = decoded[session.Erasure](w.must(http.StatusOK, "GET", location, ""))
		return found.State == session.ErasureDone
	})
	return found
}

// TestASubjectIsErasedOverHTTP erases by metadata and by id, and reads the receipts.
func TestASubjectIsErasedOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for id, user := range map[string]string{"a": "u1", "b": "u1", "c": "u2"} {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, `{"metadata":{"user_id":"`+user+`"}}`)
	}
	for _, body := range []string{`{}`, `{"metadata":{}}`, `{"metadata":{ }}`, `{"metadata":{"a":1}}`, `{"metadata":"u1"}`, `{"sessions":["a"]}`, ``} {
		if got := w.ask("POST", "/v1/erasures", body); got.Code < 400 || got.Code >= 500 {
			t.Errorf("%s: %d %s", body, got.Code, got.Body)
		}
	}
	begun := w.must(http.StatusAccepted, "POST", "/v1/erasures", `{"metadata":{"user_id":"u1"}}`, "Idempotency-Key", "k")
	deleted := w.must(http.StatusNoContent, "DELETE", "/v1/sessions/c", "")
	w.must(http.StatusNotFound, "GET", "/v1/erasures/0198f0c1-7c1e-7000-8000-0000000000ff", "")
	other := *w
	other.tenant, other.key = w.newTenant("other")
	other.must(http.StatusNotFound, "GET", begun.Header().Get("Location"), "")
	w.work()
	done := w.erasureEnded(begun.Header().Get("Location"))
	again := decoded[session.Erasure](w.must(http.StatusOK, "POST", "/v1/erasures", `{"metadata":{"user_id":"u1"}}`, "Idempotency-Key", "k"))
	if again.ID != done.ID || done.Sessions != 2 || string(done.Metadata) != "null" {
		t.Errorf("the erasure has ended as %+v; repeated, it is %s", done, again.ID)
	}
	for _, e := range []session.Erasure{done, w.erasureEnded(deleted.Header().Get("Location"))} {
		said := e.Receipt
		if said == nil || said.ID != e.ID || said.Tenant != w.tenant || int64(len(said.Sessions)) != e.Sessions || said.Audit.N == 0 {
			t.Errorf("the receipt says %+v", said)
		}
	}
	if list := decoded[protocol.List[session.Erasure]](w.must(http.StatusOK, "GET", "/v1/erasures?limit=1", "")); len(list.Data) != 1 || !list.HasMore {
		t.Errorf("the list %+v", list)
	}
	for _, row := range w.trail("limit=100") {
		if row.ObjectID != nil && len(*row.ObjectID) == 1 {
			t.Errorf("the trail still names session %s: %+v", *row.ObjectID, row)
		}
	}
}

// TestNothingPassesALegalHold holds a session, and then the tenant, and tries what erases.
func TestNothingPassesALegalHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	for id, user := range map[string]string{"a": "u1", "b": "u1"} {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, `{"metadata":{"user_id":"`+user+`"}}`)
	}
	w.must(http.StatusNotFound, "GET", "/v1/sessions/a/hold", "")
	w.must(http.StatusUnprocessableEntity, "PUT", "/v1/sessions/a/hold", `{}`)
	w.must(http.StatusNotFound, "PUT", "/v1/sessions/none/hold", `{"reason":"case 7"}`)
	placed := decoded[session.Hold](w.must(http.StatusOK, "PUT", "/v1/sessions/a/hold", `{"reason":"case 7"}`))
	again := decoded[session.Hold](w.must(http.StatusOK, "PUT", "/v1/sessions/a/hold", `{"reason":"case 7"}`))
	if placed.Reason != "case 7" || placed.PlacedBy == nil || !placed.PlacedAt.Equal(again.PlacedAt) {
		t.Errorf("placed as %+v, and again %+v", placed, again)
	}
	problem := w.must(http.StatusConflict, "DELETE", "/v1/sessions/a", "").Body.String()
	if !strings.Contains(problem, "legal_hold") {
		t.Errorf("the deletion is refused with %s", problem)
	}
	w.must(http.StatusConflict, "DELETE", "/v1/conversations/a", "")
	erase := func() session.Erasure {
		begun := w.must(http.StatusAccepted, "POST", "/v1/erasures", `{"metadata":{"user_id":"u1"}}`)
		return w.erasureEnded(begun.Header().Get("Location"))
	}
	if done := erase(); done.Sessions != 1 || !slices.Equal(done.Held, []string{"a"}) {
		t.Errorf("the erasure has erased %d sessions, and held are %q", done.Sessions, done.Held)
	}
	w.must(http.StatusOK, "GET", "/v1/sessions/a", "")
	w.must(http.StatusNotFound, "GET", "/v1/sessions/b", "")
	w.must(http.StatusNoContent, "DELETE", "/v1/sessions/a/hold", "")
	w.must(http.StatusNoContent, "DELETE", "/v1/sessions/a/hold", "")

	tenant := "/v1/admin/tenants/" + w.tenant.String() + "/hold"
	w.must(http.StatusOK, "PUT", tenant, `{"reason":"case 8"}`)
	w.must(http.StatusConflict, "DELETE", "/v1/sessions/a", "")
	if done := erase(); done.Sessions != 0 || !slices.Equal(done.Held, []string{"a"}) {
		t.Errorf("under a hold on the tenant, %d sessions were erased, and held are %q", done.Sessions, done.Held)
	}
	w.must(http.StatusNoContent, "DELETE", tenant, "")
	w.must(http.StatusNotFound, "GET", tenant, "")
	if done := erase(); done.Sessions != 1 || len(done.Held) > 0 {
		t.Errorf("without a hold, %d sessions were erased, and held are %q", done.Sessions, done.Held)
	}
}
