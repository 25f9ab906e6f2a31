package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/session"
)

func TestNoContentGetsIntoTheLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := newWorldLogging(t, &log)
	const canary = "canary-7f3a"
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"model":"`+canary+`","window_tokens":128000,"metadata":{"k":"`+canary+`"}}`)
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", `{"format":"openai-chat","messages":[`+user(canary)+`],"client_ids":["`+canary+`"]}`, "Idempotency-Key", canary)
	w.must(http.StatusBadRequest, "POST", "/v1/sessions/s/messages", `{"`+canary+`":1}`)
	w.must(http.StatusBadRequest, "GET", "/v1/sessions/s/context?"+canary+"="+canary, "")
	w.must(http.StatusOK, "GET", "/v1/sessions/s/context", "", "X-Request-Id", "trace:1.a-b_c")
	w.must(http.StatusOK, "GET", "/v1/sessions/s", "", "X-Request-Id", canary+"\r\nlevel=ERROR")
	w.must(http.StatusUnauthorized, "GET", "/v1/sessions/s", "", "Authorization", "Bearer "+canary)
	w.exec(`ALTER TABLE runs RENAME TO walks`)
	failed := w.must(http.StatusInternalServerError, "GET", "/v1/sessions/s/runs", "")
	if strings.Contains(failed.Body.String(), "relation") {
		t.Errorf("the client sees %s", failed.Body)
	}
	if strings.Contains(log.String(), canary) || strings.Contains(log.String(), w.key) {
		t.Errorf("the log holds contents:\n%s", &log)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 8 {
		t.Errorf("%d lines for 8 requests:\n%s", len(lines), &log)
	}
	for _, want := range []string{
		`"client_request_id":"trace:1.a-b_c"`, `"route":"/v1/sessions/:id/messages"`, `"tenant":"` + w.tenant.String() + `"`, `"session":"s"`,
		failed.Header().Get("X-Request-Id"), `"level":"ERROR"`, `relation \"runs\" does not exist`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, &log)
		}
	}
}

func TestHeadIsGetWithoutABody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("hello")))
	server := httptest.NewServer(w.server)
	t.Cleanup(server.Close)
	for _, path := range []string{"/v1/sessions/s/context", "/v1/sessions/s/context?view=full", "/v1/sessions/s", "/v1/sessions", "/livez"} {
		var tags [2]string
		for i, method := range []string{http.MethodGet, http.MethodHead} {
			r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+w.key)
			res, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != http.StatusOK || res.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s %s: %d %v", method, path, res.StatusCode, res.Header)
			}
			tags[i] = res.Header.Get("Etag")
		}
		if tags[0] != tags[1] {
			t.Errorf("%s: ETags %v", path, tags)
		}
	}
}

func TestADrainingProcessIsNotReadyButServes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusOK, "GET", "/readyz", "", "Authorization", "")
	w.server.Drain()
	got := w.must(http.StatusServiceUnavailable, "GET", "/readyz", "", "Authorization", "")
	checkProblem(t, got, decoded[problem](got))
	w.must(http.StatusOK, "GET", "/livez", "", "Authorization", "")
	w.must(http.StatusOK, "GET", "/v1/sessions", "")
}

func TestAProcessIsNotReadyWithoutItsDatabaseOrSchema(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`UPDATE schema_migrations SET version = 1`)
	if got := w.must(http.StatusServiceUnavailable, "GET", "/readyz", "", "Authorization", ""); !strings.Contains(got.Body.String(), "varve migrate") {
		t.Errorf("an old schema: %s", got.Body)
	}
	standby := newWorld(t)
	standby.elsewhere(`ALTER DATABASE %s SET default_transaction_read_only = on`)
	if got := standby.must(http.StatusServiceUnavailable, "GET", "/readyz", "", "Authorization", ""); !strings.Contains(got.Body.String(), "takes no writes") {
		t.Errorf("a database that is read-only: %s", got.Body)
	}
	full := newWorld(t)
	for range full.store.Pool().Config().MaxConns {
		if conn, err := full.store.Pool().Acquire(t.Context()); err != nil {
			t.Fatal(err)
		} else {
			defer conn.Release()
		}
	}
	full.must(http.StatusOK, "GET", "/readyz", "", "Authorization", "")
	closed := newWorld(t)
	closed.elsewhere(`ALTER DATABASE %s ALLOW_CONNECTIONS false`)
	if got := closed.must(http.StatusServiceUnavailable, "GET", "/readyz", "", "Authorization", ""); !strings.Contains(got.Body.String(), "does not answer") {
		t.Errorf("no database: %s", got.Body)
	}
	closed.must(http.StatusOK, "GET", "/livez", "", "Authorization", "")
}

// elsewhere runs a statement about the world's database on another one of the same server.
func (w *world) elsewhere(sql string) {
	w.Helper()
	config, err := pgx.ParseConfig(w.dsn)
	if err != nil {
		w.Fatal(err)
	}
	database := config.Database
	config.Database = "postgres"
	conn, err := pgx.ConnectConfig(w.Context(), config)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(w.Context()))
	if _, err := conn.Exec(w.Context(), fmt.Sprintf(sql, database)); err != nil {
		w.Fatal(err)
	}
}

func TestAPanicIsAnInternalErrorAndItsStackIsInTheLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := newWorldLogging(t, &log)
	panics := func(*request.Request) error { panic("it is broken") }
	broken := feature.Feature{Routes: func(*feature.API) []request.Route {
		return []request.Route{request.Tenants(session.SessionsRead).Get("/v1/broken", panics)}
	}}
	w.server = api.New(api.Config{Log: w.server.Log, Store: w.store, Features: []feature.Feature{broken}})
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/broken", nil)
	r.Header.Set("Authorization", "Bearer "+w.key)
	got := answer{t, httptest.NewRecorder()}
	w.server.ServeHTTP(got, r)
	if got.Code != http.StatusInternalServerError {
		t.Errorf("status %d", got.Code)
	}
	checkProblem(t, got, decoded[problem](got))
	if !strings.Contains(log.String(), "goroutine") || strings.Contains(got.Body.String(), "goroutine") {
		t.Errorf("log %s\nbody %s", &log, got.Body)
	}
}

func TestAClientThatIsGoneIsNoError(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := newWorldLogging(t, &log)
	w.must(http.StatusOK, "GET", "/v1/sessions", "")
	log.Reset()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, "GET", "/v1/sessions", nil)
	r.Header.Set("Authorization", "Bearer "+w.key)
	w.server.ServeHTTP(httptest.NewRecorder(), r)
	var line map[string]any
	if err := json.Unmarshal(log.Bytes(), &line); err != nil || line["level"] != "DEBUG" || line["code"] != "client_gone" || line["error"] != nil {
		t.Errorf("%v: %s", err, &log)
	}
}

func TestTheServerHasTimeouts(t *testing.T) {
	t.Parallel()
	s := api.NewServer(http.NotFoundHandler())
	if s.ReadHeaderTimeout == 0 || s.ReadTimeout == 0 || s.WriteTimeout == 0 || s.IdleTimeout == 0 || s.Handler == nil {
		t.Errorf("%+v", s)
	}
}

func TestIDsOfSessionsMayBeAnyText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for path, id := range map[string]string{
		"a%2Fb": "a/b", "a%2fb%2F": "a/b/", "%25": "%", "%2541": "%41", "a%20b+c": "a b+c", "%E2%82%AC": "€", "€": "€", "%C3%A4:1": "ä:1", "..%2F..": "../..", "*": "*", "%3A": ":",
		"a%3Fb%23c": "a?b#c", strings.Repeat("x", 255): strings.Repeat("x", 255), "%0A": "\n",
	} {
		w.ask("DELETE", "/v1/sessions/"+path, "")
		made := w.must(http.StatusCreated, "PUT", "/v1/sessions/"+path, "")
		if got := decoded[struct{ ID string }](made).ID; got != id {
			t.Errorf("%s made %q, want %q", path, got, id)
		}
		w.must(http.StatusOK, "GET", made.Header().Get("Location"), "")
		w.must(http.StatusCreated, "POST", "/v1/sessions/"+path+"/messages", batch("openai-chat", user("x")))
		view := w.must(http.StatusOK, "GET", "/v1/sessions/"+path+"/context", "")
		if got := decoded[struct{ Session string }](view).Session; got != id {
			t.Errorf("the view of %s is of %q, want %q", path, got, id)
		}
	}
	for path, status := range map[string]int{
		"%00": 422, "a%00b": 422, "%FF": 422, strings.Repeat("x", 256): 422,
	} {
		got := w.must(status, "PUT", "/v1/sessions/"+path, "")
		checkProblem(t, got, decoded[problem](got))
	}
	for _, id := range []string{`""`, `"a\u0000"`, `"\ud800"`, `"` + strings.Repeat("x", 256) + `"`, `1`, `null`} {
		w.must(http.StatusUnprocessableEntity, "POST", "/v1/sessions", `{"id":`+id+`}`)
	}
}
