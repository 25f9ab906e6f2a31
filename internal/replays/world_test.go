package replays_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/jobs/jobstest"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/replays"
	"github.com/varve-dev/varve/internal/session"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// world is an API with replays, and their store with the login of operators.
type world struct {
	*apitest.World
	store replays.Store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newSliced(t, 0)
}

// newSliced returns a world whose jobs measure for this long before those of other tenants.
func newSliced(t *testing.T, slice time.Duration) *world {
	t.Helper()
	w := apitest.New(t, replays.Sliced(slice))
	return &world{World: w, store: replays.NewStore(w.Admin)}
}

func (w *world) session(id string) session.Address { return w.sessionOf(id, 10_000) }

func (w *world) sessionOf(id string, window int) session.Address {
	w.Helper()
	at := session.Address{Tenant: w.Tenant, ID: id}
	if _, _, err := w.Admin.Create(w.Context(), at, session.Change{WindowTokens: &window}, nil); err != nil {
		w.Fatal(err)
	}
	return at
}

func (w *world) append(at session.Address, bodies ...[]byte) {
	w.Helper()
	mustAppend(w, w.store, jobstest.Batch(w, at, bodies...))
}

// many makes sessions that fill a window of 3,000 tokens, below their own trigger.
func (w *world) many(sessions int) {
	w.Helper()
	for n := range sessions {
		w.turns(w.session(fmt.Sprintf("s%04d", n)), 20, 200)
	}
}

// turns appends a message of the user and turns of about this many tokens each.
func (w *world) turns(at session.Address, turns, tokens int) {
	w.Helper()
	bodies := [][]byte{[]byte(`{"role":"user","content":"read all files"}`)}
	for n := range turns {
		bodies = append(bodies, jobstest.Turn(n, tokens)...)
	}
	w.append(at, bodies...)
}

// compacted waits until no compaction is asked for any more.
func (w *world) compacted() {
	w.Helper()
	w.Until("nothing is compacted", func() bool {
		return w.Count(`SELECT count(*) FROM river_job WHERE kind = 'compact' AND state IN ('available', 'running', 'retryable')`) == 0
	})
}

// pauseAt starts a worker that stops when it comes to a step.
func (w *world) pauseAt(step string) *jobstest.Pause {
	w.Helper()
	p := jobstest.NewPause(w, step)
	w.Work(jobs.Config{Trace: p.Trace})
	return p
}

// die has a worker come to a step and no further, and does at once what River does when twice the job's timeout is over.
func (w *world) die(step string) {
	w.Helper()
	jobstest.Await(w, w.pauseAt(step).Reached)
	w.Exec(`
		UPDATE river_job
		   SET state = 'available', scheduled_at = now()
		 WHERE state IN ('running', 'retryable') AND queue = 'replay'`)
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
	Errors       []struct{ Pointer, Detail string }
}

type listPage struct {
	Data       []map[string]any
	HasMore    bool    `json:"has_more"`
	NextCursor *string `json:"next_cursor"`
}

// newStore returns a store on an empty database, with a tenant.
func newStore(t *testing.T) (replays.Store, uuid.UUID) {
	t.Helper()
	pool := pgtest.Pool(t, pgtest.Admin(pgtest.NewWarm(t)), 20)
	inserts, err := queue.New(pool)
	if err != nil {
		t.Fatal(err)
	}
	store := replays.NewStore(postgres.New(pool, inserts, nil))
	return store, newTenant(t, store, "acme")
}

func newTenant(t *testing.T, store replays.Store, name string) uuid.UUID {
	t.Helper()
	made, err := store.CreateTenant(t.Context(), name, session.Policy{Trigger: 0.8, Hard: 0.95, Document: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// newSession makes a session with a window of 1,000 tokens.
func newSession(t *testing.T, store replays.Store, tenant uuid.UUID, id string) session.Address {
	t.Helper()
	at := session.Address{Tenant: tenant, ID: id}
	if _, _, err := store.Store.Create(t.Context(), at, session.Change{WindowTokens: new(1000)}, nil); err != nil {
		t.Fatal(err)
	}
	return at
}

func message(text string, tokens int) session.NewMessage {
	body := fmt.Appendf(nil, `{"role":"user","content":%q}`, text)
	return session.NewMessage{Body: body, Role: "user", Tokens: tokens, StartsUnit: true}
}

func mustAppend(t testing.TB, store replays.Store, a session.Append) {
	t.Helper()
	if _, _, err := store.Append(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

// execInTenant runs a statement as the store does.
func execInTenant(t *testing.T, store replays.Store, tenant uuid.UUID, sql string, args ...any) {
	t.Helper()
	err := store.InTenant(t.Context(), tenant, func(tx pgx.Tx) error { return postgres.Exec(t.Context(), tx, sql, args...) })
	if err != nil {
		t.Fatal(err)
	}
}

func batch(at session.Address, messages ...session.NewMessage) session.Append {
	return session.Append{Session: at, Format: session.OpenAIChat, Messages: messages}
}

// countJobs counts the live jobs of replays.
func countJobs(t *testing.T, store replays.Store) (n int) {
	t.Helper()
	err := store.Pool().QueryRow(t.Context(), `SELECT count(*) FROM river_job WHERE kind = 'replay' AND finalized_at IS NULL`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
