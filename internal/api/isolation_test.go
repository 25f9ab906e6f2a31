package api_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/session"
)

var requestID = regexp.MustCompile(`req_[0-9a-f]{32}`)

func TestAnotherTenantsSessionIsLikeAMissingOne(t *testing.T) {
	t.Parallel()
	keepsTenantsSeparate(t, newWorld(t))
}

// keepsTenantsSeparate asks every route that names a session, with the key of one tenant, for the session of another and for none.
func keepsTenantsSeparate(t *testing.T, w *world) {
	t.Helper()
	_, stranger := w.newTenant("stranger")
	w.must(http.StatusCreated, "PUT", "/v1/sessions/theirs", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/theirs/messages", batch("openai-chat", user("secret")))
	ref := w.putResult("theirs", []byte("secret"))
	run := decoded[session.Run](w.must(http.StatusAccepted, "POST", "/v1/sessions/theirs/compact", "")).ID
	token := w.newToken("theirs", "").ID.String()
	tag := w.must(http.StatusOK, "GET", "/v1/sessions/theirs/context", "").Header().Get("Etag")
	bodies := map[string]string{"POST /v1/sessions/:id/messages": batch("openai-chat", user("x")), "PATCH /v1/sessions/:id": `{"model":"gpt-4o"}`, "PATCH /v1/sessions/:id/policy": `{"target":0.3}`,
		"PATCH /v1/sessions/:id/messages/:message": `{"message":` + user("x") + `}`,
		"POST /v1/conversations/:id":               `{"metadata":{}}`, "POST /v1/conversations/:id/items": `{"items":[` + user("x") + `]}`}
	queries := map[string]string{"/v1/sessions/:id/results/grep": "?pattern=x", "/v1/sessions/:id/results/:ref/grep": "?pattern=x", "/v1/sessions/:id/search": "?q=x"}
	checked := 0
	for _, route := range w.server.Routes() {
		method, path, _ := strings.Cut(route, " ")
		if !strings.Contains(path, ":id") || method == "PUT" { // PUT makes the session, see below
			continue
		}
		path += queries[path]
		path = strings.NewReplacer(":run", run.String(), ":ref", ref, ":n", "1", ":token", token).Replace(path)
		ask := func(id string) string {
			got := w.ask(method, strings.Replace(path, ":id", id, 1), bodies[route], "Authorization", "Bearer "+stranger, "If-None-Match", tag)
			if got.Code != http.StatusNotFound {
				t.Errorf("%s of %s: %d %s", route, id, got.Code, got.Body)
			}
			return strings.ReplaceAll(requestID.ReplaceAllString(got.Body.String(), "req"), id, "ID")
		}
		if theirs, missing := ask("theirs"), ask("absent"); theirs != missing {
			t.Errorf("%s: another's\n%s\nmissing\n%s", route, theirs, missing)
		}
		checked++
	}
	if checked < 12 {
		t.Errorf("%d routes were checked: %v", checked, w.server.Routes())
	}
	own := w.must(http.StatusCreated, "PUT", "/v1/sessions/theirs", "", "Authorization", "Bearer "+stranger)
	if strings.Contains(own.Body.String(), `"last_seq":1`) {
		t.Errorf("the stranger's own session: %s", own.Body)
	}
	list := w.must(http.StatusOK, "GET", "/v1/sessions", "", "Authorization", "Bearer "+stranger)
	if n := strings.Count(list.Body.String(), `"id"`); n != 1 {
		t.Errorf("the stranger sees %d sessions: %s", n, list.Body)
	}
}

func TestEveryRefusalOfAKeyLooksTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	expired := session.NewAPIKey(w.tenant)
	_, digest, _ := session.ParseKey(expired)
	w.exec(`INSERT INTO api_keys (tenant_id, id, digest, last4, expires_at) VALUES ('` + w.tenant.String() + `', '` + uuid.NewString() + `', '\x` + hexadecimal(digest[:]) + `', '', now())`)
	stale := w.key
	keys, err := w.store.Keys(t.Context(), w.tenant, session.Page{Limit: 10})
	if err != nil || len(keys) != 2 {
		t.Fatalf("%v, %v", keys, err)
	}
	want := ""
	if err := w.admin.RevokeKey(t.Context(), w.tenant, keys[1].ID); err != nil {
		t.Fatal(err)
	}
	for name, header := range map[string]string{
		"none":                 "",
		"another scheme":       "Basic " + w.key,
		"no scheme":            w.key,
		"nonsense":             "Bearer nonsense",
		"a wrong checksum":     "Bearer " + w.key[:len(w.key)-1] + "!",
		"an unknown key":       "Bearer " + session.NewAPIKey(w.tenant),
		"an unknown tenant":    "Bearer " + session.NewAPIKey(uuid.New()),
		"a key that expired":   "Bearer " + expired,
		"a key that's revoked": "Bearer " + stale,
	} {
		got := w.ask("GET", "/v1/sessions", "", "Authorization", header)
		text := requestID.ReplaceAllString(got.Body.String(), "req")
		if want == "" {
			want = text
		}
		if got.Code != http.StatusUnauthorized || text != want || got.Header().Get("Www-Authenticate") == "" {
			t.Errorf("%s: %d %s, want %s", name, got.Code, text, want)
		}
	}
}

func hexadecimal(b []byte) string {
	const digits = "0123456789abcdef"
	var text strings.Builder
	for _, c := range b {
		text.WriteByte(digits[c>>4])
		text.WriteByte(digits[c&15])
	}
	return text.String()
}

func TestWhatCannotBeAKeyIsRefusedWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store.Pool().Close()
	broken := strings.Map(func(r rune) rune {
		if r == '0' {
			return '1'
		}
		return r
	}, w.key)
	for _, key := range []string{broken, "", strings.Repeat("a", len(w.key)), w.key + "0", "st_" + w.key[3:]} {
		w.must(http.StatusUnauthorized, "GET", "/v1/sessions", "", "Authorization", "Bearer "+key)
	}
	read := w.must(http.StatusServiceUnavailable, "GET", "/v1/sessions", "")
	if said := read.Body.String(); strings.Contains(said, "Whether a write happened") {
		t.Errorf("of a read: %s", said)
	}
}

func TestAKeyIsBelievedForTwoSecondsAtMost(t *testing.T) {
	t.Parallel()
	var cache api.KeyCache
	now := time.Now()
	cache.Add([32]byte{1}, now)
	if !cache.Has([32]byte{1}, now.Add(1999*time.Millisecond)) || cache.Has([32]byte{1}, now.Add(2*time.Second)) || cache.Has([32]byte{2}, now) {
		t.Error("a key is believed for another time than 2 s")
	}
	for i := range 3 * api.MaxCachedKeys {
		cache.Add([32]byte{byte(i), byte(i >> 8), byte(i >> 16)}, now)
	}
	if cache.Len() > api.MaxCachedKeys {
		t.Errorf("the cache has %d keys", cache.Len())
	}
}

func TestAKeyIsLookedUpOnceAndThenBelieved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusOK, "GET", "/v1/sessions", "")
	w.exec(`DELETE FROM api_keys`)
	w.must(http.StatusOK, "GET", "/v1/sessions", "")
}
