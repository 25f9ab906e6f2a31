package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

// holders returns keys of every kind, by what they may do: one for each scope, one that lacks each, and one with none
// of a tenant's scopes.
func (w *world) holders() map[string][]session.Scope {
	holders := map[string][]session.Scope{"all": session.KeyScopes()}
	for _, scope := range session.KeyScopes() {
		holders["only "+string(scope)] = []session.Scope{scope}
		holders["all but "+string(scope)] = slices.DeleteFunc(session.KeyScopes(), func(s session.Scope) bool { return s == scope })
	}
	return holders
}

// TestEveryCellOfTheTableOfRoutes asks every route with keys of every scope and without each, about the tenant's own
// session, another tenant's and a missing one, and holds each answer to the scopes of the description.
func TestEveryCellOfTheTableOfRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := *w
	other.tenant, other.key = w.newTenant("other")
	other.must(http.StatusCreated, "PUT", "/v1/sessions/theirs", "")
	other.must(http.StatusCreated, "POST", "/v1/sessions/theirs/messages", batch("openai-chat", user(secret)))
	full, cells := w.key, 0
	for name, scopes := range w.holders() {
		key := w.newKey(scopes...)
		for route, access := range describedAccess() {
			missing := ""
			for _, scope := range access.scopes {
				if missing == "" && !slices.Contains(scopes, session.Scope(scope)) {
					missing = scope
				}
			}
			for _, id := range []string{"own", "theirs", "none"} {
				if testing.Short() && id != "own" && name != "all" && (missing == "" || strings.HasPrefix(name, "only ")) {
					continue // for whom it would be what it is for a key with all scopes, or with all but one
				}
				if id == "own" {
					w.must2xx("PUT", "/v1/sessions/own", full)
				}
				got := w.knock(route, id, key)
				if route == "POST /v1/sessions/{id}/archive" && got.Code == http.StatusAccepted {
					w.must2xx("POST", "/v1/sessions/"+id+"/unarchive", full)
				}
				p := problem{}
				if got.Code == http.StatusForbidden {
					p = decoded[problem](got)
				}
				if strings.Contains(p.Error.Message, "lacks the scope "+missing+":") {
					p.Code, p.Scope = p.Error.Code, missing // OpenAI's dialect has the text alone
				}
				switch want := cellOf(access, missing); {
				case want == "" && (got.Code == http.StatusForbidden || got.Code == http.StatusUnauthorized):
					t.Errorf("%s of %s, %s: %d %s", route, id, name, got.Code, got.Body)
				case want != "" && (got.Code != http.StatusForbidden || p.Code != want || p.Scope != missing):
					t.Errorf("%s of %s, %s: %d %s, want %s of %s", route, id, name, got.Code, got.Body, want, missing)
				case strings.Contains(got.Body.String(), secret):
					t.Errorf("%s of %s, %s shows another tenant's message: %s", route, id, name, got.Body)
				}
				cells++
			}
		}
	}
	if cells < 3000 {
		t.Errorf("the matrix has %d cells", cells)
	}
}

// cellOf returns the code that a tenant's key which lacks a scope gets from a route, "" for being let in.
func cellOf(a access, missing string) string {
	switch {
	case a.kind == "operator":
		return "key_not_allowed"
	case missing != "":
		return "scope_missing"
	}
	return ""
}

// must2xx sends a request with a key that must succeed.
func (w *world) must2xx(method, path, key string) {
	w.Helper()
	if got := w.ask(method, path, "", "Authorization", "Bearer "+key); got.Code/100 != 2 {
		w.Fatalf("%s %s: %d %s", method, path, got.Code, got.Body)
	}
}
