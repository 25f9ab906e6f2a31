package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// newToken makes a session token.
func (w *world) newToken(id, body string) protocol.NewToken {
	w.Helper()
	return decoded[protocol.NewToken](w.must(http.StatusCreated, "POST", "/v1/sessions/"+id+"/tokens", body))
}

const compactBody = `{"scopes":["read","compact"]}`

// secret is in every session that a caller of the matrix must not see.
const secret = "canary-51c2"

// callers returns who asks in the matrix, and of each what a route says that takes what: 0 for whatever the route
// answers to those whom it lets in.
func (w *world) callers() []struct {
	name, text      string
	open            int // a route of the session that takes tokens with the scope read
	compact, keyFor int // one that needs compact, and one that takes keys alone
} {
	w.Helper()
	const denied, refused = http.StatusForbidden, http.StatusUnauthorized
	other, otherKey := w.newTenant("other")
	their := *w
	their.tenant, their.key = other, otherKey
	their.must(http.StatusCreated, "PUT", "/v1/sessions/s2", "")
	foreign := their.newToken("s2", "").Text
	revoked, ended, orphan := w.newToken("s", ""), w.newToken("s", ""), w.newToken("s3", "")
	w.must(http.StatusNoContent, "DELETE", "/v1/sessions/s/tokens/"+revoked.ID.String(), "")
	w.exec(`UPDATE session_tokens SET created_at = now() - interval '2 h', expires_at = now() WHERE id = '` + ended.ID.String() + `'`)
	w.must(http.StatusNoContent, "DELETE", "/v1/sessions/s3", "")
	text := revoked.Text
	return []struct {
		name, text      string
		open            int
		compact, keyFor int
	}{
		{"a token that reads", w.newToken("s", "").Text, 0, denied, denied},
		{"a token that compacts", w.newToken("s", compactBody).Text, 0, 0, denied},
		{"a token of another session", w.newToken("s2", compactBody).Text, denied, denied, denied},
		{"another tenant's token", foreign, denied, denied, denied},
		{"a revoked token", revoked.Text, refused, refused, refused},
		{"an expired token", ended.Text, refused, refused, refused},
		{"a token of an erased session", orphan.Text, refused, refused, refused},
		{"an unknown token", session.NewTokenText(w.tenant), refused, refused, refused},
		{"a token with a wrong checksum", text[:len(text)-1] + "!", refused, refused, refused},
		{"a token as a key", "vk_" + text[3:], refused, refused, refused},
		{"a key as a token", "st_" + w.key[3:], refused, refused, refused},
		{"nothing", "", refused, refused, refused},
		{"the key of another tenant", otherKey, 0, 0, 0},
		{"the tenant's key", w.key, 0, 0, 0},
	}
}

// TestWhoMayUseWhichRoute asks every route as every kind of caller. What it expects is in the description.
func TestWhoMayUseWhichRoute(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := newWorldLogging(t, &log)
	for _, id := range []string{"s", "s2", "s3"} {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, "")
		w.must(http.StatusCreated, "POST", "/v1/sessions/"+id+"/messages", batch("openai-chat", user(secret)))
	}
	callers, cells := w.callers(), 0
	for _, caller := range callers {
		for route, access := range describedAccess() {
			want := caller.keyFor
			switch {
			case access.kind == "":
				want = 0
			case access.kind == "operator" && want == 0:
				want = http.StatusForbidden
			case caller.open == http.StatusForbidden && (strings.HasSuffix(route, " /mcp") || strings.HasSuffix(route, " /v1/tools")):
				want = 0 // they name no session: the token's own is meant
			case access.token == string(session.ScopeRead):
				want = caller.open
			case access.token == string(session.ScopeCompact):
				want = caller.compact
			}
			got := w.knock(route, "s", caller.text)
			let := got.Code != http.StatusUnauthorized && got.Code != http.StatusForbidden
			if want == 0 && !let || want != 0 && got.Code != want {
				t.Errorf("%s, %s (%v): %d %s", route, caller.name, access, got.Code, got.Body)
			}
			if want == http.StatusForbidden && !strings.Contains(got.Body.String(), "_not_allowed") {
				t.Errorf("%s, %s: %s", route, caller.name, got.Body)
			}
			if caller.name != "the tenant's key" && want != 0 && strings.Contains(got.Body.String(), secret) {
				t.Errorf("%s, %s: %s", route, caller.name, got.Body)
			}
			cells++
		}
	}
	if cells < 1200 {
		t.Errorf("the matrix has %d cells", cells)
	}
	for _, caller := range callers {
		if caller.text != "" && strings.Contains(log.String(), caller.text) {
			t.Errorf("the log holds %s", caller.name)
		}
	}
}

// accessFor returns what a caller needs for an operation.
func accessFor(op *apitest.Operation) access {
	found := access{}
	for _, scheme := range op.Value["security"].([]any) {
		for kind, scopes := range scheme.(map[string]any) {
			names := []string{}
			for _, scope := range scopes.([]any) {
				names = append(names, scope.(string))
			}
			switch kind {
			case "token":
				found.token = names[0]
			default:
				found.kind, found.scopes = kind, names
			}
		}
	}
	return found
}

// knock asks a route of a session, of which nothing else needs to exist. The check against the description is for
// requests that mean something.
func (w *world) knock(route, id, text string) answer {
	w.Helper()
	method, path, _ := strings.Cut(route, " ")
	path = parameter.ReplaceAllString(strings.NewReplacer("{id}", id, "{n}", "1").Replace(path), uuid.NewString())
	return w.ask(method, path, "", "Authorization", "Bearer "+text)
}

func TestATokenTellsNothingAboutOtherSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"mine", "exists"} {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, "")
	}
	token := w.newToken("mine", "").Text
	for _, route := range []string{"GET /v1/sessions/%s", "GET /v1/sessions/%s/context", "POST /v1/sessions/%s/compact", "DELETE /v1/sessions/%s", "GET /v1/sessions/%s/results/r1.0-abcd"} {
		var said []string
		for _, id := range []string{"exists", "absent", "%00", "Mine"} {
			method, path, _ := strings.Cut(fmt.Sprintf(route, id), " ")
			got := w.must(http.StatusForbidden, method, path, "", "Authorization", "Bearer "+token)
			said = append(said, strings.ReplaceAll(requestID.ReplaceAllString(got.Body.String(), "req"), path, "PATH"))
		}
		if len(slices.Compact(said)) != 1 {
			t.Errorf("%s: the answers differ: %q", route, said)
		}
	}
}

func TestATokenEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reads := func(token protocol.NewToken) int {
		return w.ask("GET", "/v1/sessions/s/context", "", "Authorization", "Bearer "+token.Text).Code
	}
	for name, end := range map[string]func(token protocol.NewToken){
		"revoked":      func(p protocol.NewToken) { w.must(204, "DELETE", "/v1/sessions/s/tokens/"+p.ID.String(), "") },
		"expired":      func(p protocol.NewToken) { w.exec(`UPDATE session_tokens SET expires_at = now()`) },
		"its key gone": func(p protocol.NewToken) { w.exec(`UPDATE api_keys SET revoked_at = now()`) },
		"made anew": func(p protocol.NewToken) {
			w.must(204, "DELETE", "/v1/sessions/s", "")
			w.must(201, "PUT", "/v1/sessions/s", "")
		},
	} {
		w.exec(`UPDATE api_keys SET revoked_at = NULL`)
		w.ask("DELETE", "/v1/sessions/s", "")
		w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
		token := w.newToken("s", "")
		if before := reads(token); before != http.StatusOK {
			t.Errorf("%s: before, it answers %d", name, before)
		}
		end(token)
		if after := reads(token); after != http.StatusUnauthorized {
			t.Errorf("%s: after, it answers %d", name, after)
		}
	}
}

func TestATokensTextIsShownOnceAndNotStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	made := w.newToken("s", `{"name":"agent","ttl_seconds":60}`)
	if !regexp.MustCompile(`^`+session.TokenPattern+`$`).MatchString(made.Text) || !strings.HasSuffix(made.Text, made.Last4) {
		t.Errorf("made %+v", made)
	}
	if life := made.ExpiresAt.Sub(made.CreatedAt).Seconds(); life != 60 || len(made.Scopes) != 1 {
		t.Errorf("it lives for %v seconds: %+v", life, made)
	}
	list := w.must(http.StatusOK, "GET", "/v1/sessions/s/tokens", "")
	if entry := decoded[protocol.List[session.Token]](list).Data[0]; entry.ID != made.ID || strings.Contains(list.Body.String(), made.Text) {
		t.Errorf("list %s", list.Body)
	}
	if found := w.count(`SELECT count(*) FROM session_tokens t WHERE t::text LIKE '%` + made.Text[36:] + `%'`); found != 0 {
		t.Error("the database has the token's text")
	}
}

func TestTokensThatCannotBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	for body, advice := range map[string]string{
		`{"ttl_seconds":86401}`:         "from 1 to 86400",
		`{"ttl_seconds":0}`:             "from 1 to 86400",
		`{"scopes":["write"]}`:          "there are read, compact",
		`{"scopes":["compact"]}`:        `every token reads: add \"read\"`,
		`{"scopes":[]}`:                 `every token reads: add \"read\"`,
		`{"scopes":"read"}`:             "must be an array",
		`{"scopes":[1]}`:                "must be a string",
		`{"name":7}`:                    "must be a string",
		`{"tenant":"x"}`:                "is not known",
		`{"name":"a","name":"b"}`:       "twice",
		`{"scopes":["read","read","x"]`: "byte",
	} {
		got := w.ask("POST", "/v1/sessions/s/tokens", body)
		if got.Code/100 != 4 || !strings.Contains(got.Body.String(), advice) {
			t.Errorf("%s: %d %s", body, got.Code, got.Body)
		}
	}
	w.must(http.StatusNotFound, "POST", "/v1/sessions/absent/tokens", "")
	w.must(http.StatusNotFound, "DELETE", "/v1/sessions/s/tokens/"+uuid.NewString(), "")
	w.must(http.StatusNotFound, "DELETE", "/v1/sessions/s/tokens/x", "")
}

func TestARouteThatOpensTheTenantToTokensIsNotRegistered(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a token may list all sessions")
		}
	}()
	api.ListForTokens(newWorld(t).server)
}

// count returns the number that a query finds.
func (w *world) count(sql string) (n int) {
	w.Helper()
	if err := pgtest.Row(w, w.dsn, sql).Scan(&n); err != nil {
		w.Fatal(err)
	}
	return n
}
