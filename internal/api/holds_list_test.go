package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// TestTheHoldsOfATenantAreListed reads them in pages, with the tenant's key and an operator's.
func TestTheHoldsOfATenantAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hold := func(path, reason string) {
		w.must(http.StatusOK, "PUT", path, `{"reason":"`+reason+`"}`)
	}
	for _, id := range []string{"a", "b", "c"} {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, "")
	}
	hold("/v1/sessions/a/hold", "case 1")
	hold("/v1/sessions/b/hold", "case 2")
	hold("/v1/admin/tenants/"+w.tenant.String()+"/hold", "case 3")
	hold("/v1/sessions/c/hold", "case 4")
	w.must(http.StatusNoContent, "DELETE", "/v1/sessions/b/hold", "")
	for _, path := range []string{"/v1/holds", "/v1/admin/tenants/" + w.tenant.String() + "/holds"} {
		var got []string
		cursor := ""
		for {
			page := decoded[protocol.List[session.ListedHold]](w.must(http.StatusOK, "GET", path+"?limit=1"+cursor, ""))
			for _, h := range page.Data {
				on := "the tenant"
				if h.Session != nil {
					on = *h.Session
				}
				got = append(got, on+": "+h.Reason)
			}
			if !page.HasMore {
				break
			}
			cursor = "&cursor=" + *page.NextCursor
		}
		if want := "c: case 4, the tenant: case 3, a: case 1"; strings.Join(got, ", ") != want {
			t.Errorf("%s lists %q", path, got)
		}
	}
	_, other := w.newTenant("other")
	if list := w.must(http.StatusOK, "GET", "/v1/holds", "", "Authorization", "Bearer "+other); !strings.Contains(list.Body.String(), `"data":[]`) {
		t.Errorf("another tenant sees %s", list.Body)
	}
	w.must(http.StatusForbidden, "GET", "/v1/admin/tenants/"+w.tenant.String()+"/holds", "", "Authorization", "Bearer "+other)
}
