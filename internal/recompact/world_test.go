package recompact_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/jobs/jobstest"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/recompact"
	"github.com/varve-dev/varve/internal/session"
)

const (
	patience = jobstest.Patience
	beat     = jobstest.Beat
)

var turn = jobstest.Turn

func TestMain(m *testing.M) {
	os.Exit(jobstest.Main(m, jobs.Config{Features: []feature.Feature{recompact.Feature()}}))
}

// world is a store on a database of the test's own, with one tenant.
type world struct {
	*testing.T
	dsn    string
	store  recompact.Store
	tenant uuid.UUID
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, dsn: pgtest.NewWarm(t)}
	w.store = openStore(t, pgtest.Admin(w.dsn))
	p := jobstest.Settled()
	made, err := w.store.CreateTenant(t.Context(), "acme", session.Policy{Trigger: p.Trigger, Hard: p.Hard, Document: p.Document()})
	if err != nil {
		t.Fatal(err)
	}
	w.tenant = made.ID
	return w
}

func openStore(t testing.TB, dsn string) recompact.Store {
	t.Helper()
	return recompact.NewStore(jobstest.OpenStore(t, dsn))
}

func (w *world) at(id string) session.Address { return session.Address{Tenant: w.tenant, ID: id} }

func (w *world) session(id string) session.Address {
	w.Helper()
	if _, _, err := w.store.Store.Create(w.Context(), w.at(id), session.Change{WindowTokens: new(10_000)}, nil); err != nil {
		w.Fatal(err)
	}
	return w.at(id)
}

// filled returns messages that cross the trigger of a session.
func filled() [][]byte {
	bodies := [][]byte{[]byte(`{"role":"user","content":"read all files"}`)}
	for n := range 24 {
		bodies = append(bodies, turn(n, 500)...)
	}
	return bodies
}

func (w *world) fill(at session.Address) {
	w.Helper()
	w.append(at, filled()...)
}

func (w *world) append(at session.Address, bodies ...[]byte) session.Appended {
	w.Helper()
	done, _, err := w.store.Append(context.WithoutCancel(w.Context()), jobstest.Batch(w, at, bodies...))
	if err != nil {
		w.Fatal(err)
	}
	return done
}

// work starts a worker; stop it with the function that it returns, or let the test's end do it.
func (w *world) work(config jobs.Config) (*jobs.Client, func()) {
	w.Helper()
	config.Store = openStore(w.T, pgtest.Worker(w.dsn)).Store
	config.Store.UseResultStores(*w.store.ResultStores())
	config.Features = []feature.Feature{recompact.Feature()}
	config.Log = slog.New(slog.NewTextHandler(w.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	client, err := jobs.NewClient(config.Store.Pool(), config)
	if err == nil {
		err = client.Start(context.Background())
	}
	if err != nil {
		w.Fatal(err)
	}
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			if err := client.StopAndCancel(context.Background()); err != nil {
				w.Error(err)
			}
		}
	}
	w.Cleanup(stop)
	return client, stop
}

// kill starts a victim, waits until it came to the step, and kills it there.
func (w *world) kill(step string) {
	w.Helper()
	jobstest.Kill(w, w.dsn, step, 1)
}

// drained waits until no row of a table fits any more.
func (w *world) drained(rows string) {
	w.Helper()
	for end := time.Now().Add(patience); w.count(rows) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("there are still rows of %s", rows)
		}
	}
}

// count counts rows of a table, of any tenant.
func (w *world) count(rows string) (n int) {
	w.Helper()
	if err := pgtest.Row(w, w.dsn, `SELECT count(*) FROM `+rows).Scan(&n); err != nil {
		w.Fatal(err)
	}
	return n
}

// settle waits until no compaction job of the database is live.
func (w *world) settle() {
	w.Helper()
	w.drained(`river_job WHERE kind = 'compact' AND finalized_at IS NULL`)
}

// check holds the session to its promises: the log is what was appended, and the view ends with what no checkpoint
// covers and is one that its provider takes.
func (w *world) check(at session.Address, appended [][]byte) session.Session {
	w.Helper()
	found, _ := jobstest.Check(w, w.store.Store, at, appended)
	return found
}

// view returns the messages that a read returns.
func (w *world) view(at session.Address) [][]byte {
	w.Helper()
	_, bodies := w.read(at)
	return bodies
}

func (w *world) read(at session.Address) (postgres.View, [][]byte) {
	w.Helper()
	return jobstest.Read(w, w.store.Store, at)
}

// asked is an API with recompactions.
type asked struct {
	*apitest.World
	operator string // the key of one
}

func newAsked(t *testing.T) *asked {
	t.Helper()
	w := &asked{World: apitest.New(t, recompact.Feature()), operator: session.NewOperatorKey()}
	if _, err := w.Admin.CreateOperatorKey(t.Context(), "ops", w.operator, nil); err != nil {
		t.Fatal(err)
	}
	return w
}

// ask sends a request with the tenant's key, or an operator's where the path takes one.
func (w *asked) ask(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	w.Helper()
	if strings.HasPrefix(path, "/v1/admin/tenants") || strings.HasPrefix(path, "/v1/admin/audit") {
		headers = append([]string{"Authorization", "Bearer " + w.operator}, headers...)
	}
	return w.Ask(method, path, body, headers...)
}

func (w *asked) must(status int, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	w.Helper()
	got := w.ask(method, path, body, headers...)
	if got.Code != status {
		w.Fatalf("%s %s: %d %s", method, path, got.Code, got.Body)
	}
	return got
}

// decoded returns an answer as a value.
func decoded[T any](got *httptest.ResponseRecorder) (value T) {
	if err := json.Unmarshal(got.Body.Bytes(), &value); err != nil {
		panic(err)
	}
	return value
}

type problem struct {
	Code, Detail string
	Errors       []struct{ Pointer, Code, Detail string }
}

type listPage struct {
	Data       []map[string]any
	HasMore    bool    `json:"has_more"`
	NextCursor *string `json:"next_cursor"`
}

// execInTenant runs a statement as the store does.
func execInTenant(t testing.TB, store recompact.Store, tenant uuid.UUID, sql string, args ...any) error {
	t.Helper()
	return store.InTenant(t.Context(), tenant, func(tx pgx.Tx) error { return postgres.Exec(t.Context(), tx, sql, args...) })
}

func newStoreAt(t testing.TB) (recompact.Store, string) {
	t.Helper()
	dsn := pgtest.NewWarm(t)
	return openStore(t, pgtest.Admin(dsn)), dsn
}

// newStore returns a store on an empty database, with a tenant.
func newStore(t testing.TB) (recompact.Store, uuid.UUID) {
	t.Helper()
	store, _ := newStoreAt(t)
	return store, newTenant(t, store, "acme")
}

func newTenant(t testing.TB, store recompact.Store, name string) uuid.UUID {
	t.Helper()
	made, err := store.CreateTenant(t.Context(), name, session.Policy{Trigger: 0.8, Hard: 0.95, Document: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	return made.ID
}

func newSession(t testing.TB, store recompact.Store, tenant uuid.UUID, id string) session.Address {
	t.Helper()
	at := session.Address{Tenant: tenant, ID: id}
	if _, _, err := store.Store.Create(t.Context(), at, session.Change{WindowTokens: new(1000)}, nil); err != nil {
		t.Fatal(err)
	}
	return at
}
