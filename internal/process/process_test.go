package process_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/process"
	"github.com/varve-dev/varve/internal/session"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// service is an API and a worker as two processes would be, on a database that can be crashed under them.
type service struct {
	*testing.T
	cluster *embedded.Server
	link    string // to the cluster's socket, which is elsewhere after each start
	url     string
	key     string
	worker  *lines // what the worker logs
	stop    func()
	probes  string // address of the worker's
}

// lines keeps what is logged, besides writing it to the test's output.
type lines struct {
	t *testing.T

	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds a line.
func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(line)
	return l.t.Output().Write(line)
}

// count returns in how many places a text is.
func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.text.Bytes(), []byte(text))
}

func start(t *testing.T) *service {
	t.Helper()
	cluster, link := pgtest.NewDurable(t), filepath.Join(t.TempDir(), "socket")
	relink(t, cluster, link)
	db := config.Database{
		URL:         fmt.Sprintf("postgres:///%s?host=%s&port=%s&user=%s", embedded.Database, url.QueryEscape(link), embedded.Port, embedded.User),
		Connections: 8,
	}
	s := startOn(t, db, newTenant)
	s.cluster, s.link = cluster, link
	return s
}

// startOn starts the processes on a database, with a key of the tenant that tenant names.
func startOn(t *testing.T, db config.Database, tenant func(*testing.T, *postgres.Store) uuid.UUID) *service {
	t.Helper()
	s := &service{T: t, key: makeKey(t, db, tenant), worker: &lines{t: t}, probes: freeAddr(t)}
	ctx, cancel := context.WithCancel(context.Background())
	addr, working, ended := make(chan net.Addr, 1), make(chan struct{}), make(chan error, 2)
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	api, work := db, db
	api.URL, work.URL = pgtest.API(db.URL), pgtest.Worker(db.URL)
	go func() {
		ended <- process.API(ctx, config.API{Addr: "127.0.0.1:0"}, config.LLM{}, api, log, func(a net.Addr) { addr <- a })
	}()
	go func() {
		worker := config.Worker{Compactions: 2, JobTimeout: time.Second, SweepInterval: time.Second, StopTimeout: time.Second,
			MetricsAddr: s.probes}
		logged := slog.New(slog.NewTextHandler(s.worker, &slog.HandlerOptions{Level: slog.LevelWarn}))
		ended <- process.Worker(ctx, worker, config.LLM{}, work, logged, func() { close(working) })
	}()
	for s.url == "" {
		select {
		case a := <-addr:
			s.url = "http://" + a.String()
		case err := <-ended:
			t.Fatal(err)
		}
	}
	select {
	case <-working:
	case err := <-ended:
		t.Fatal(err)
	}
	s.stop = func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Errorf("it ended with %v", err)
			}
		}
	}
	return s
}

func relink(t *testing.T, cluster *embedded.Server, link string) {
	t.Helper()
	_ = os.Remove(link) // the first time it does not exist
	if err := os.Symlink(cluster.SocketDir, link); err != nil {
		t.Fatal(err)
	}
}

func newTenant(t *testing.T, store *postgres.Store) uuid.UUID {
	t.Helper()
	tenant, err := store.CreateTenant(t.Context(), "acme", policy.StoredDefault())
	if err != nil {
		t.Fatal(err)
	}
	return tenant.ID
}

func firstTenant(t *testing.T, store *postgres.Store) uuid.UUID {
	t.Helper()
	tenants, err := store.Tenants(t.Context())
	if err != nil || len(tenants) == 0 {
		t.Fatalf("tenants %v, %v", tenants, err)
	}
	return tenants[0].ID
}

func makeKey(t *testing.T, db config.Database, tenantOf func(*testing.T, *postgres.Store) uuid.UUID) string {
	t.Helper()
	store, err := process.OpenStore(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Pool().Close()
	tenant := tenantOf(t, store)
	text := session.NewAPIKey(tenant)
	if _, err := store.CreateKey(t.Context(), tenant, session.NewKey{Text: text, Scopes: session.KeyScopes()}); err != nil {
		t.Fatal(err)
	}
	return text
}

func (s *service) call(method, path, body string) (int, string) {
	s.Helper()
	request, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.key)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

// eventually asks until the status is the one wanted: a database that comes back has nothing to wait for but an answer.
// Only the test's own deadline ends it, because a busy machine is slow.
func (s *service) eventually(want int, method, path, body string) string {
	s.Helper()
	ctx := s.Context()
	if end, ok := s.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-30*time.Second))
		defer cancel()
	}
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for {
		status, answer := s.call(method, path, body)
		if status == want {
			return answer
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			s.Fatalf("%s %s is still %d: %s", method, path, status, answer)
		}
	}
}

// workerSays waits until the worker's log has a text.
func (s *service) workerSays(text string) {
	s.Helper()
	for s.worker.count(text) == 0 {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-s.Context().Done():
			s.Fatalf("the worker does not say %q", text)
		}
	}
}

func TestTheProcessesOutliveTheirDatabase(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.eventually(201, "PUT", "/v1/sessions/s", `{"window_tokens":10000}`)
	const message = `{"format":"openai-chat","messages":[{"role":"user","content":"hi"}]}`
	s.eventually(201, "POST", "/v1/sessions/s/messages", message)
	if err := s.cluster.Crash(); err != nil {
		t.Fatal(err)
	}
	s.eventually(503, "GET", "/readyz", "")
	if status, answer := s.call("POST", "/v1/sessions/s/messages", message); status != 503 || !strings.Contains(answer, `"unavailable"`) {
		t.Errorf("an append without a database: %d %s", status, answer)
	}
	if status, _ := s.call("GET", "/livez", ""); status != 200 {
		t.Errorf("/livez: %d", status)
	}
	s.workerSays("the database does not answer")
	s.cluster = pgtest.Restart(t, s.cluster)
	relink(s.T, s.cluster, s.link)
	s.eventually(200, "GET", "/readyz", "")
	if answer := s.eventually(201, "POST", "/v1/sessions/s/messages", message); !strings.Contains(answer, `"last_seq":2`) {
		t.Errorf("the append after the crash: %s", answer)
	}
	s.workerSays("the database answers again")
	s.stop()
	// A worker asks for jobs many times a second, in every queue: a line each would be hundreds.
	if said, all := s.worker.count("the database does not answer"), s.worker.count("\n"); said != 1 || all > 12 {
		t.Errorf("of the outage the worker said %d times that the database is away, in %d lines", said, all)
	}
}

func TestAProcessRefusesADatabaseWithoutItsSchema(t *testing.T) {
	t.Parallel()
	db := config.Database{URL: pgtest.API(pgtest.NewEmpty(t)), Connections: 2}
	err := process.API(t.Context(), config.API{Addr: "127.0.0.1:0"}, config.LLM{}, db, slog.New(slog.DiscardHandler), nil)
	if err == nil || !strings.Contains(err.Error(), "varve migrate") {
		t.Errorf("it ended with %v, which does not say what to do", err)
	}
}
