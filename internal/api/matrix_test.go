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
