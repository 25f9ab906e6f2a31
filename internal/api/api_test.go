package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/features"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// world is the API on an empty database, with a tenant and its key.
type world struct {
	testing.TB
	dsn    string
	store  *postgres.Store // the API's
	admin  *postgres.Store // may do what the worker and the operator's commands do, too
	server *api.Server
	tenant uuid.UUID
	key    string

	operator string // the key of one
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldLogging(t, io.Discard)
}

func newWorldLogging(t testing.TB, log io.Writer) *world {
	t.Helper()
	return newWorldSharing(t, log, admit.NewConnections(connections, patience))
}

// patience is how long tests wait for what must come: a machine may have much else to do.
const patience = 10 * time.Minute

// until waits until something is so.
func (w *world) until(what string, isSo func() bool) {
	w.Helper()
	for end := time.Now().Add(patience); !isSo(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("not after %v: %s", patience, what)
		}
	}
}

// connections is how many a world's store has to the database.
const connections = 10

// newWorldSharing returns what newWorldLogging does, with another gate than one that turns nobody away for being slow.
func newWorldSharing(t testing.TB, log io.Writer, gate *admit.Connections) *world {
	t.Helper()
	return newWorldAt(t, pgtest.NewWarm(t), log, gate)
}

// newWorldAt makes a world of a migrated database without tenants.
func newWorldAt(t testing.TB, dsn string, log io.Writer, gate *admit.Connections) *world {
	t.Helper()
	w := &world{TB: t, dsn: dsn}
	w.store = openStore(t, pgtest.API(w.dsn))
	w.admin = openStore(t, pgtest.Admin(w.dsn))
	log = io.MultiWriter(log, faultLog{t})
	logger := slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.server = api.New(api.Config{
		Store: w.store, Operators: w.admin, Log: logger, Gate: gate, Features: features.All(),
	})
	w.tenant, w.key = w.newTenant("acme")
	w.operator = w.newOperator()
	return w
}

// faultLog shows the lines of a server's log that tell of a fault of the server, as long as its test runs.
type faultLog struct{ testing.TB }

func (l faultLog) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(`"level":"ERROR"`)) && l.Context().Err() == nil {
		_, _ = l.Output().Write(line)
	}
	return len(line), nil
}

func openStore(t testing.TB, dsn string) *postgres.Store {
	t.Helper()
	pool := pgtest.Pool(t, dsn, connections)
	inserts, err := queue.New(pool)
	if err != nil {
		t.Fatal(err)
	}
	return postgres.New(pool, inserts, compactor.CapAtIngest)
}

// limit gives the API so much memory for its requests, and so much patience with them.
func (w *world) limit(bytes int64, patience time.Duration) {
	w.server.Memory = admit.New(admit.Config{Name: "memory", Size: bytes, Each: bytes, Patience: patience})
}

// newTenant makes a tenant with the default policy, and a key of it.
func (w *world) newTenant(name string) (uuid.UUID, string) {
	w.Helper()
	policy := policy.Default()
	stored := session.Policy{Trigger: policy.Trigger, Hard: policy.Hard, CacheTTL: time.Duration(policy.Cache.TTLSeconds) * time.Second, Document: policy.Document(), Patch: []byte(`{}`)}
	tenant, err := w.admin.CreateTenant(w.Context(), name, stored)
	if err != nil {
		w.Fatal(err)
	}
	text := session.NewAPIKey(tenant.ID)
	if _, err := w.admin.CreateKey(w.Context(), tenant.ID, session.NewKey{Text: text, Scopes: session.KeyScopes()}); err != nil {
		w.Fatal(err)
	}
	return tenant.ID, text
}

// answer is what came back.
type answer struct {
	testing.TB
	*httptest.ResponseRecorder
}

// ofOperators matches the paths that take an operator's key.
var ofOperators = regexp.MustCompile(`^/v1/admin/(key|keys|usage|tenants|receipts|erasures|sessions|audit|jobs)\b`)

// ask sends a request with the world's key, or an operator's where the path takes one, and holds the answer to the API's description; headers come in pairs.
func (w *world) ask(method, path, body string, headers ...string) answer {
	w.Helper()
	r := httptest.NewRequestWithContext(w.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+w.key)
	if ofOperators.MatchString(path) {
		r.Header.Set("Authorization", "Bearer "+w.operator)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	recorder := httptest.NewRecorder()
	w.server.ServeHTTP(recorder, r)
	if _, measured := w.TB.(*testing.B); !measured {
		apitest.Described().Check(w, r, body, recorder)
	}
	return answer{w.TB, recorder}
}

// must calls ask for a request that must be answered with this status.
func (w *world) must(status int, method, path, body string, headers ...string) answer {
	w.Helper()
	a := w.ask(method, path, body, headers...)
	if a.Code != status {
		w.Fatalf("%s %s: %d %s", method, path, a.Code, a.Body)
	}
	return a
}

// into decodes the answer's JSON.
func (a answer) into(value any) {
	a.Helper()
	if err := json.Unmarshal(a.Body.Bytes(), value); err != nil {
		a.Fatalf("%v: %s", err, a.Body)
	}
}

// decoded returns the answer's JSON as a value.
func decoded[T any](a answer) (value T) {
	a.Helper()
	a.into(&value)
	return value
}

// batch returns the body of an append.
func batch(format string, messages ...string) string {
	return `{"format":"` + format + `","messages":[` + strings.Join(messages, ",") + `]}`
}

func user(text string) string {
	quoted, _ := json.Marshal(text)
	return `{"role":"user","content":` + string(quoted) + `}`
}

// problem is an error as callers decode it.
type problem struct {
	Type      string
	Title     string
	Status    int
	Detail    string
	Instance  string
	Code      string
	RequestID string `json:"request_id"`
	Retryable bool
	Current   *int64 `json:"current_seq"`
	Minimum   *int64 `json:"minimum_tokens"`
	Scope     string `json:"missing_scope"`
	Errors    []session.Problem
	Error     struct {
		Message, Type, Code string
		Param               *string
	}
}

func TestASessionFromItsFirstMessageToItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.must(http.StatusCreated, "PUT", "/v1/sessions/chat-42", `{"model":"gpt-4o","metadata":{"user":"u1"}}`)
	if made.Header().Get("Location") != "/v1/sessions/chat-42" {
		t.Errorf("headers %v", made.Header())
	}
	w.must(http.StatusOK, "PUT", "/v1/sessions/chat-42", ``)
	done := decoded[session.Appended](w.must(http.StatusCreated, "POST", "/v1/sessions/chat-42/messages", batch("openai-chat", user("hi"), user("there"))))
	if done.FirstSeq != 1 || done.LastSeq != 2 || done.Compaction != "none" || done.Tokens == 0 {
		t.Errorf("appended %+v", done)
	}
	view := w.must(http.StatusOK, "GET", "/v1/sessions/chat-42/context", "")
	want := `"messages":[` + user("hi") + "," + user("there") + `]}`
	if !strings.HasSuffix(view.Body.String(), want) {
		t.Errorf("view %s, want …%s", view.Body, want)
	}
	w.must(http.StatusNotModified, "GET", "/v1/sessions/chat-42/context", "", "If-None-Match", view.Header().Get("Etag"))
	log := w.must(http.StatusOK, "GET", "/v1/sessions/chat-42/messages?limit=1", "")
	if !strings.Contains(log.Body.String(), `"message":`+user("hi")+`}],"has_more":true,"next_seq":2}`) {
		t.Errorf("log %s", log.Body)
	}
	full := w.must(http.StatusOK, "GET", "/v1/sessions/chat-42/context?view=full", "")
	if !strings.HasSuffix(full.Body.String(), want) {
		t.Errorf("full view %s", full.Body)
	}
	w.must(http.StatusOK, "PATCH", "/v1/sessions/chat-42", `{"window_tokens":2000,"policy":{"target":0.3,"trigger":0.5}}`)
	w.must(http.StatusOK, "GET", "/v1/sessions?limit=5", "")
	run := w.must(http.StatusAccepted, "POST", "/v1/sessions/chat-42/compact", "")
	w.must(http.StatusOK, "GET", run.Header().Get("Location"), "")
	w.must(http.StatusOK, "GET", "/v1/sessions/chat-42/runs", "")
	w.must(http.StatusOK, "GET", "/v1/sessions/chat-42/results", "")
	w.must(http.StatusNotFound, "GET", "/v1/sessions/chat-42/results/r1.0-abcd", "")
	w.must(http.StatusNoContent, "DELETE", "/v1/sessions/chat-42", "")
	w.must(http.StatusNotFound, "GET", "/v1/sessions/chat-42", "")
	w.must(http.StatusOK, "GET", "/livez", "", "Authorization", "")
	w.must(http.StatusOK, "GET", "/readyz", "", "Authorization", "")
}
