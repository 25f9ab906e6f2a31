package api_test

import (
	"net/http"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/session"
)

// access is what a route needs.
type access struct {
	kind   string   // of key: "key", "operator", or "" for none
	scopes []string // that a tenant's key needs, all of them
	token  string   // the scope that a session token needs; "" if none will do
}

// accessOf returns what a route needs by the table of the API.
func accessOf(r request.Route) access {
	found := access{kind: string(r.Kind)}
	if r.Kind != "" {
		found.scopes = []string{}
	}
	for _, scope := range r.Scopes {
		found.scopes = append(found.scopes, string(scope))
	}
	if r.Tokens {
		found.token = string(session.ScopeRead)
		if slices.Contains(r.Scopes, session.ScopeCompact) {
			found.token = string(session.ScopeCompact)
		}
	}
	return found
}

// describedAccess returns what routes need by the description: "GET /v1/sessions/{id}".
func describedAccess() map[string]access {
	found := map[string]access{}
	for _, op := range apitest.Described().Operations {
		found[op.Method+" "+op.Path] = accessFor(&op)
	}
	return found
}

func TestTheDescriptionSaysWhoMayUseEachRoute(t *testing.T) {
	t.Parallel()
	described := describedAccess()
	for _, r := range newWorld(t).server.Table() {
		path := regexp.MustCompile(`:([a-z]+)`).ReplaceAllString(r.Path, "{$1}")
		if diff := cmp.Diff(accessOf(r), described[r.Method+" "+path], cmp.AllowUnexported(access{})); diff != "" {
			t.Errorf("%s %s: the route (-) and the description (+) differ:\n%s", r.Method, r.Path, diff)
		}
	}
}

// newKey makes a key of the world's tenant.
func (w *world) newKey(scopes ...session.Scope) string {
	w.Helper()
	text := session.NewAPIKey(w.tenant)
	if _, err := w.admin.CreateKey(w.Context(), w.tenant, session.NewKey{Text: text, Scopes: scopes}); err != nil {
		w.Fatal(err)
	}
	return text
}

// newOperator makes a key of an operator.
func (w *world) newOperator() string {
	w.Helper()
	text := session.NewOperatorKey()
	if _, err := w.admin.CreateOperatorKey(w.Context(), "", text, nil); err != nil {
		w.Fatal(err)
	}
	return text
}

func TestAnOperatorsKeyReachesTheRoutesOfOperatorsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	for route, access := range describedAccess() {
		got := w.knock(route, "s", w.operator)
		let := got.Code != http.StatusUnauthorized && got.Code != http.StatusForbidden
		if want := access.kind != "key"; let != want || !want && decoded[problem](got).Error.Code != "key_not_allowed" {
			t.Errorf("%s (%v): %d %s", route, access, got.Code, got.Body)
		}
	}
	ended := w.newOperator()
	w.exec(`UPDATE operator_keys SET revoked_at = now() WHERE last4 = '` + ended[len(ended)-4:] + `'`)
	for _, text := range []string{ended, session.NewOperatorKey(), w.operator + "0", "vk_" + w.operator[4:]} {
		w.must(http.StatusUnauthorized, "GET", "/v1/admin/keys", "", "Authorization", "Bearer "+text)
		w.must(http.StatusUnauthorized, "GET", "/v1/sessions", "", "Authorization", "Bearer "+text)
	}
}
