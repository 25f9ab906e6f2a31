package alerts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/embedded"
)

// world is an API and a worker on a private PostgreSQL, with a language model and a receiver of webhooks.
type world struct {
	*prometheus
	dir      string
	key      string
	database *embedded.Server
	sql      *pgx.Conn // the superuser's
	outside  *httptest.Server
	down     atomic.Bool // model and receiver answer 500
	api      string      // URL
	kill     map[string]func()
	sessions int
	tales    atomic.Int64
	asked    sync.WaitGroup // requests under way
}

const (
	window = 8_000 // tokens of a session
	models = `{"models":[{"id":"own","provider":"acme","context_tokens":64000,
		"sources":[{"of":"window","name":"its card","date":"2026-01-31"}]}]}`
)

func newWorld(t *testing.T) *world {
	w := &world{prometheus: newPrometheus(t), dir: t.TempDir(), kill: map[string]func(){}}
	database, err := embedded.Start(t.Context(), embedded.Config{Dir: filepath.Join(w.dir, "db"), Ephemeral: true})
	if err != nil {
		t.Fatal(err)
	}
	w.database = database
	t.Cleanup(func() { _ = database.Crash() }) // nothing of it is needed
	if w.sql, err = pgx.Connect(t.Context(), database.DSN(embedded.Database)); err != nil {
		t.Fatal(err)
	}
	w.outside = httptest.NewServer(http.HandlerFunc(w.serveOutside))
	t.Cleanup(w.outside.Close)
	build := exec.Command("go", "build", "-o", filepath.Join(w.dir, "varve"), "./cmd/varve")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w.prepare()
	return w
}

// serveOutside answers as the language model, and as the receiver of webhooks.
func (w *world) serveOutside(to http.ResponseWriter, _ *http.Request) {
	if w.down.Load() {
		to.WriteHeader(http.StatusInternalServerError)
		return
	}
	to.Header().Set("Content-Type", "application/json")
	fmt.Fprint(to, `{"model":"writer","choices":[{"finish_reason":"stop","message":{"role":"assistant",
		"content":"<retain></retain><summary>They tell a tale, line by line.</summary>"}}],"usage":{"prompt_tokens":5,"completion_tokens":5,"total_tokens":10}}`)
}

// prepare makes the schema and a tenant, and starts the processes.
func (w *world) prepare() {
	w.exec(`SET ROLE ` + embedded.Owner + `; CREATE ROLE alerts_api LOGIN; CREATE ROLE alerts_worker LOGIN; RESET ROLE`)
	owner := w.database.DSNOf(embedded.Owner)
	w.varve(owner, "migrate", "--grant-to", "alerts_api:api", "--grant-to", "alerts_worker:worker")
	w.varve(owner, "tenants", "create", "acme")
	w.key = regexp.MustCompile(`vk_\S+`).FindString(w.varve(owner, "keys", "create", "--tenant", "acme"))
	w.write("models.json", models)
	w.write("llm.json", fmt.Sprintf(`{"models":{"writer":{"provider":"own","model":"writer","window":16000}},
		"providers":{"own":{"kind":"openai","base_url":"%s/v1","key":"k","allow_private":true,"attempts":1,
		"breaker":{"failures":1,"seconds":1}}}}`, w.outside.URL))
	w.startAPI()
	w.start("worker", "VARVE_METRICS_ADDR", "VARVE_COMPACTIONS=1", "VARVE_WEBHOOK_NETWORKS=127.0.0.1/32")
	w.must("PUT", "/v1/policy", `{"trigger":0.7,"target":0.35,"idle":{"enabled":false},
		"summarise":{"model":"writer","min_tokens":500,"max_tokens":400}}`)
	w.must("POST", "/v1/webhooks", fmt.Sprintf(`{"url":"%s/hook","types":["session.compacted"]}`, w.outside.URL))
}

func (w *world) startAPI() { w.api = w.start("api", "VARVE_ADDR", "VARVE_DATABASE_CONNECTIONS=4") }

func (w *world) write(name, text string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

// varve runs a command on the database, and returns what it prints.
func (w *world) varve(dsn string, args ...string) string {
	w.Helper()
	cmd := exec.Command(filepath.Join(w.dir, "varve"), args...)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+dsn)
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("varve %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// start starts a process that listens on a free port, whose metrics are scraped from then on.
func (w *world) start(name, address string, env ...string) (base string) {
	w.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	addr := listener.Addr().String()
	if err := listener.Close(); err != nil {
		w.Fatal(err)
	}
	log, err := os.Create(filepath.Join(w.dir, name+".log"))
	if err != nil {
		w.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(w.dir, "varve"), name)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), append(env, address+"="+addr, "VARVE_LLM="+filepath.Join(w.dir, "llm.json"),
		"DATABASE_URL="+w.database.DSNOf("alerts_"+name), "VARVE_MODELS="+filepath.Join(w.dir, "models.json"))...)
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	w.kill[name] = func() { _, _ = cmd.Process.Kill(), cmd.Wait() } // it may be dead
	w.Cleanup(func() {
		w.kill[name]()
		if text, err := os.ReadFile(log.Name()); err == nil && w.Failed() {
			w.Logf("%s:\n%s", name, text)
		}
	})
	base = "http://" + addr
	w.until(name+" is ready", func() bool {
		response, err := http.Get(base + "/readyz")
		return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
	})
	w.targets[name] = base + "/metrics"
	return base
}

func (w *world) until(what string, is func() bool) {
	w.Helper()
	for began := time.Now(); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			w.Fatalf("not within a minute: %s", what)
		}
	}
}

func (w *world) exec(sql string, args ...any) {
	w.Helper()
	if _, err := w.sql.Exec(w.Context(), sql, args...); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
}

// ask sends a request, and returns its status, and 0 if there is no answer.
func (w *world) ask(method, path, body string) (status int, answer string) {
	request, err := http.NewRequest(method, w.api+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	request.Header.Set("Authorization", "Bearer "+w.key)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body) // for people
	return response.StatusCode, string(text)
}

func (w *world) must(method, path, body string) {
	w.Helper()
	if status, answer := w.ask(method, path, body); status < 200 || status > 299 {
		w.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
}

// session makes a session.
func (w *world) session() (path string) {
	w.Helper()
	w.sessions++
	path = fmt.Sprintf("/v1/sessions/s%d", w.sessions)
	w.must("PUT", path, fmt.Sprintf(`{"format":"openai-chat","window_tokens":%d}`, window))
	return path
}

// turns returns the body of an append of some turns of some 250 tokens, other ones each time: the answer of a model to the
// same text is kept.
func (w *world) turns(n int) string {
	tale := w.tales.Add(1)
	var all []map[string]string
	for i := range n {
		role := [2]string{"user", "assistant"}[i%2]
		text := strings.Repeat(fmt.Sprintf("Line %d of tale %d says more. ", i, tale), 30)
		all = append(all, map[string]string{"role": role, "content": text})
	}
	var body bytes.Buffer
	_ = json.NewEncoder(&body).Encode(map[string]any{"messages": all}) // plain values
	return body.String()
}

// grow appends some turns, of which 24 are above the trigger.
func (w *world) grow(path string, n int) {
	w.Helper()
	w.must("POST", path+"/messages", w.turns(n))
}

// compacted makes a session that was compacted.
func (w *world) compacted() (path string) {
	w.Helper()
	path = w.session()
	w.grow(path, 24)
	w.must("POST", path+"/compact?wait=30", "")
	return path
}

// key returns the SQL of the key of a session.
func key(path string) string {
	return fmt.Sprintf("(SELECT key FROM sessions WHERE id = '%s')", url.PathEscape(filepath.Base(path)))
}
