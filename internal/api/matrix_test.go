package api_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/session"
)

var update = flag.Bool("update", false, "write the table of routes of docs/api.md instead of comparing")

const (
	apiDocs    = "../../docs/api.md"
	tableBegin = "<!-- the table of routes: go test ./internal/api -run TestTheTableOfRoutes -update -->\n"
	tableEnd   = "<!-- end of the table of routes -->\n"
)

// access is what a route needs.
type access struct {
	kind   string   // of key: "key", "operator", or "" for none
	scopes []string // that a tenant's key needs, all of them
	token  string   // the scope that a session token needs; "" if none will do
}

// accessOf returns what a route needs by the table of the API.
func accessOf(r api.Route) access {
	found := access{kind: string(r.Kind)}
	if r.Kind == session.OperatorCaller {
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

// row writes a route as a line of the table.
func row(r api.Route) string {
	path := regexp.MustCompile(`:([a-z]+)`).ReplaceAllString(r.Path, "{$1}")
	a := accessOf(r)
	scopes, token := strings.Join(a.scopes, ", "), a.token
	if a.kind == "" {
		scopes = "open"
	}
	if a.kind == "operator" {
		scopes = "operator"
	}
	return fmt.Sprintf("| `%s %s` | %s | %s |\n", r.Method, path, scopes, token)
}

// documentedAccess returns the table of docs/api.md by its routes: "GET /v1/sessions/{id}".
func documentedAccess(t testing.TB) map[string]access {
	t.Helper()
	_, table, _ := docsTable(t)
	found := map[string]access{}
	for _, line := range regexp.MustCompile("(?m)^\\| `([A-Z]+ [^`]+)` \\| ([^|]*) \\| ([^|]*) \\|$").FindAllStringSubmatch(table, -1) {
		a := access{kind: "key", scopes: strings.Split(line[2], ", "), token: strings.TrimSpace(line[3])}
		switch line[2] {
		case "open":
			a = access{}
		case "operator":
			a = access{kind: "operator", scopes: []string{}}
		}
		found[line[1]] = a
	}
	return found
}

// docsTable returns docs/api.md in three pieces, of which the second is the table.
func docsTable(t testing.TB) (before, table, after string) {
	t.Helper()
	text, err := os.ReadFile(apiDocs)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), tableBegin)
	table, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		t.Fatal("docs/api.md has no table of routes")
	}
	return before, table, after
}

func TestTheTableOfRoutesIsThatOfTheDocumentation(t *testing.T) {
	t.Parallel()
	want := "| route | scopes of a key | scope of a session token |\n| --- | --- | --- |\n"
	for _, r := range newWorld(t).server.Table() {
		want += row(r)
		if diff := cmp.Diff(accessOf(r), described().access(r), cmp.AllowUnexported(access{})); diff != "" {
			t.Errorf("%s %s: the route (-) and the description (+) differ:\n%s", r.Method, r.Path, diff)
		}
	}
	before, table, after := docsTable(t)
	if *update {
		if err := os.WriteFile(apiDocs, []byte(before+tableBegin+want+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(table, want); diff != "" {
		t.Errorf("docs/api.md (-) is not what the routes say (+); run this test with -update\n%s", diff)
	}
}

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

// TestEveryCellOfTheTableOfRoutes asks every route with keys of every scope and without each, about the tenant's own
// session, another tenant's and a missing one, and holds each answer to the table in docs/api.md.
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
		for route, access := range documentedAccess(t) {
			missing := ""
			for _, scope := range access.scopes {
				if missing == "" && !slices.Contains(scopes, session.Scope(scope)) {
					missing = scope
				}
			}
			for _, id := range []string{"own", "theirs", "none"} {
				if id == "own" {
					w.must2xx("PUT", "/v1/sessions/own", full)
				}
				got := w.knock(route, id, key)
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
	if cells < 5000 {
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

func TestAnOperatorsKeyReachesTheRoutesOfOperatorsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	for route, access := range documentedAccess(t) {
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
