package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// as asks with the key of another tenant.
func (w *world) as(key string, do func()) {
	own := w.key
	w.key = key
	do()
	w.key = own
}

// TestOperatorsSeeSessionsOfAllTenants reads the list with an operator's key, and with a tenant's, which may not.
func TestOperatorsSeeSessionsOfAllTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tell := func(id, text string) {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, `{"window_tokens":1000}`)
		w.must(http.StatusCreated, "POST", "/v1/sessions/"+id+"/messages", batch("openai-chat", user(text)))
	}
	tell("small", "hello")
	_, key := w.newTenant("other")
	w.as(key, func() { tell("large", strings.Repeat("a private word ", 2000)) })
	const all = "/v1/admin/sessions"
	var page protocol.List[session.SessionOfTenant]
	w.until("the ledger has counted both", func() bool {
		page = decoded[protocol.List[session.SessionOfTenant]](w.must(http.StatusOK, "GET", all, ""))
		return len(page.Data) == 2
	})
	if first := page.Data[0]; first.Session != "large" || first.TenantName != "other" || !first.OverWindow || first.Tokens < 4000 {
		t.Errorf("%+v", first)
	}
	one := w.must(http.StatusOK, "GET", all+"?limit=1", "")
	if text := one.Body.String(); strings.Contains(text, "private") {
		t.Errorf("the list has content: %s", text)
	}
	next := "&cursor=" + *decoded[protocol.List[session.SessionOfTenant]](one).NextCursor
	rest := decoded[protocol.List[session.SessionOfTenant]](w.must(http.StatusOK, "GET", all+"?limit=1"+next, ""))
	if len(rest.Data) != 1 || rest.Data[0].Session != "small" || rest.HasMore {
		t.Errorf("the second page is %+v", rest)
	}
	for query, want := range map[string]int{
		"order=over_window": 1, "order=failing": 0, "order=quarantined": 0, "order=idle": 2, "order=bytes": 2,
		"tenant=" + w.tenant.String(): 1, "tenant=0198f0c1-7c1e-7000-8000-00000000000c": 0,
	} {
		found := decoded[protocol.List[session.SessionOfTenant]](w.must(http.StatusOK, "GET", all+"?"+query, ""))
		if len(found.Data) != want || found.HasMore {
			t.Errorf("%s lists %+v", query, found)
		}
	}
	w.must(http.StatusBadRequest, "GET", all+"?limit=1&order=idle"+next, "") // it is of another list
	w.must(http.StatusUnprocessableEntity, "GET", all+"?order=oldest", "")
	w.must(http.StatusUnprocessableEntity, "GET", all+"?tenant=acme", "")
	w.must(http.StatusForbidden, "GET", all, "", "Authorization", "Bearer "+key)
}
