package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/protocol"
)

// TestOperatorsReadTheirOwnTrail makes two tenants and looks for the rows of that with an operator's key, which sees
// nothing of a tenant's trail.
func TestOperatorsReadTheirOwnTrail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/private", "")
	w.must(http.StatusCreated, "POST", "/v1/admin/tenants", `{"name":"first"}`)
	second := w.must(http.StatusCreated, "POST", "/v1/admin/tenants", `{"name":"second"}`)
	id := decoded[struct{ ID string }](second).ID
	const trail = "/v1/admin/audit"
	all := w.must(http.StatusOK, "GET", trail, "")
	rows := decoded[protocol.List[audit.Entry]](all).Data
	if first := rows[0]; *first.ObjectID != id || first.Action != audit.TenantCreate || first.Actor != "operator" {
		t.Errorf("the newest row is %+v", first)
	}
	if strings.Contains(all.Body.String(), "private") {
		t.Errorf("a tenant's row is there: %s", all.Body)
	}
	for query, want := range map[string]int{
		"action=tenant.create&object=" + id: 1, "limit=1&order=asc": 1, "actor=" + rows[0].ActorID.String(): 2,
		"until=2020-01-01T00:00:00Z": 0, "action=session.create": 0,
	} {
		found := decoded[protocol.List[audit.Entry]](w.must(http.StatusOK, "GET", trail+"?"+query, ""))
		if len(found.Data) != want {
			t.Errorf("%s finds %+v", query, found.Data)
		}
	}
	typo := w.must(http.StatusUnprocessableEntity, "GET", trail+"?action=session.erased", "").Body.String()
	if !strings.Contains(typo, "there is no action") || !strings.Contains(typo, "session.erase,") {
		t.Errorf("an action that is none: %s", typo)
	}
	for _, action := range audit.Actions() {
		w.must(http.StatusOK, "GET", trail+"?action="+string(action), "")
	}
	exported := w.must(http.StatusOK, "GET", trail+"/export", "").Body.String()
	var broken []audit.Break
	head, err := audit.Behind(audit.Head{}).Read(strings.NewReader(exported), func(b audit.Break) error {
		broken = append(broken, b)
		return nil
	})
	if err != nil || len(broken) > 0 || head.N != rows[0].N || strings.Contains(exported, "private") {
		t.Errorf("the export: %v, %v, head %+v\n%s", err, broken, head, exported)
	}
	for _, path := range []string{trail, trail + "/export"} {
		w.must(http.StatusForbidden, "GET", path, "", "Authorization", "Bearer "+w.key)
	}
}
