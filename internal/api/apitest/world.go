package apitest

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// patience is how long tests wait for what must come: a machine may have much else to do.
const patience = 10 * time.Minute

// World is an API with some features on a database of the test's own, and a tenant with a key.
type World struct {
	*testing.T
	DSN     string
	Store   *postgres.Store // with the login of the API
	Workers *postgres.Store // with the login of jobs
	Admin   *postgres.Store // with the login of operators
	Server  *api.Server
	Tenant  uuid.UUID
	Key     string

	features    []feature.Feature
	description *Description
}

// New returns a world with some features.
func New(t *testing.T, features ...feature.Feature) *World {
	t.Helper()
	d, err := newDescription(features)
	if err != nil {
		t.Fatal(err)
	}
	w := &World{T: t, DSN: pgtest.NewWarm(t), features: features, description: d}
	w.Store = w.open(pgtest.API(w.DSN))
	w.Workers = w.open(pgtest.Worker(w.DSN))
	w.Admin = w.open(pgtest.Admin(w.DSN))
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	w.Server = api.New(api.Config{
		Store: w.Store, Features: features, Sites: &feature.SiteConfig{Jobs: w.jobPages(log)},
		Operators: w.Admin, Log: log,
	})
	w.Tenant, w.Key = w.NewTenant("acme")
	return w
}

// jobPages opens River UI as a process does.
func (w *World) jobPages(log *slog.Logger) feature.JobPages {
	return func(prefix string) (http.Handler, error) {
		jobs, err := queue.New(w.Admin.Pool())
		if err != nil {
			return nil, err
		}
		return jobs.Pages(w.Context(), prefix, log)
	}
}

func (w *World) open(dsn string) *postgres.Store {
	w.Helper()
	pool := pgtest.Pool(w, dsn, 12)
	inserts, err := queue.New(pool)
	if err != nil {
		w.Fatal(err)
	}
	store := postgres.New(pool, inserts, nil)
	store.Follow(feature.Followers(w.features))
	return store
}

// NewTenant makes a tenant with the default policy, and a key of it with all scopes.
func (w *World) NewTenant(name string) (id uuid.UUID, key string) {
	w.Helper()
	p := policy.Default()
	made, err := w.Admin.CreateTenant(w.Context(), name, session.Policy{
		Trigger: p.Trigger, Hard: p.Hard, Document: p.Document(), Patch: []byte(`{}`),
	})
	if err != nil {
		w.Fatal(err)
	}
	key = session.NewAPIKey(made.ID)
	_, err = w.Admin.CreateKey(w.Context(), made.ID, session.NewKey{Text: key, Scopes: session.KeyScopes()})
	if err != nil {
		w.Fatal(err)
	}
	return made.ID, key
}

// Ask sends a request with the tenant's key, and holds the answer to the description; headers come in pairs.
func (w *World) Ask(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	w.Helper()
	r := httptest.NewRequestWithContext(w.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+w.Key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	got := httptest.NewRecorder()
	w.Server.ServeHTTP(got, r)
	w.description.Check(w, r, body, got)
	return got
}

// Must calls Ask for a request that must be answered with this status, and returns the body.
func (w *World) Must(status int, method, path, body string, headers ...string) string {
	w.Helper()
	return w.MustAnswer(status, method, path, body, headers...).Body.String()
}

// MustAnswer does what Must does, and returns all of the answer.
func (w *World) MustAnswer(status int, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	w.Helper()
	got := w.Ask(method, path, body, headers...)
	if got.Code != status {
		w.Fatalf("%s %s: %d %s", method, path, got.Code, got.Body)
	}
	return got
}

// Refused sends a request that must be refused with this code, and returns the detail.
func (w *World) Refused(code, method, path, body string) string {
	w.Helper()
	problem := Decoded[struct{ Code, Detail string }](w, w.Ask(method, path, body).Body.String())
	if problem.Code != code {
		w.Errorf("%s %s: the code is %s, not %s: %s", method, path, problem.Code, code, problem.Detail)
	}
	return problem.Detail
}

// Decoded returns JSON as a value.
func Decoded[T any](t testing.TB, text string) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}

// Append appends one message of a user to a session, which it makes.
func (w *World) Append(id, text string) {
	w.Helper()
	w.Ask("PUT", "/v1/sessions/"+id, "")
	quoted, _ := json.Marshal(text)
	w.Must(http.StatusCreated, "POST", "/v1/sessions/"+id+"/messages",
		`{"format":"openai-chat","messages":[{"role":"user","content":`+string(quoted)+`}]}`)
}

// Work starts a worker, which stops when the test ends.
func (w *World) Work(config jobs.Config) {
	w.Helper()
	config.Store, config.Features = w.open(pgtest.Worker(w.DSN)), w.features
	config.Rest = cmp.Or(config.Rest, time.Nanosecond)
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	client, err := jobs.NewClient(config.Store.Pool(), config)
	if err == nil {
		err = client.Start(context.WithoutCancel(w.Context()))
	}
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := client.StopAndCancel(context.Background()); err != nil {
			w.Error(err)
		}
	})
}

// Until waits until something is so.
func (w *World) Until(what string, isSo func() bool) {
	w.Helper()
	for end := time.Now().Add(patience); !isSo(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("not after %v: %s", patience, what)
		}
	}
}

// Exec runs a statement as the tables' owner, who sees the tenant.
func (w *World) Exec(sql string, args ...any) {
	w.Helper()
	w.asOwner(func(conn *pgx.Conn) error {
		_, err := conn.Exec(w.Context(), sql, args...)
		return err
	})
}

// Count returns the number that a statement finds, as the superuser.
func (w *World) Count(sql string, args ...any) (n int) {
	w.Helper()
	if err := pgtest.Row(w, w.DSN, sql, args...).Scan(&n); err != nil {
		w.Fatal(err)
	}
	return n
}

func (w *World) asOwner(do func(*pgx.Conn) error) {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.DSN)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close(w.Context())
	if _, err = conn.Exec(w.Context(), `SELECT set_config('app.tenant_id', $1, false)`, w.Tenant.String()); err == nil {
		err = do(conn)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// Metric returns a gauge or counter of this process: the sum over all that have its name and, if one is given, this as
// their first label.
func Metric(t testing.TB, name string, label ...string) (n float64) {
	t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && (len(label) == 0 || m.GetLabel()[0].GetValue() == label[0]) {
				n += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return n
}
