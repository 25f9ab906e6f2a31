package recompact_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/recompact"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
	"github.com/varve-dev/varve/internal/zframe"
)

const (
	victimDSN  = "VARVE_TEST_VICTIM_DSN"
	victimStep = "VARVE_TEST_VICTIM_STEP"

	// patience is how long tests wait for what must come: a machine may have much else to do.
	patience = 15 * time.Minute

	// beat is how often the workers of tests show that they live.
	beat = 200 * time.Millisecond
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(victimDSN); dsn != "" {
		victim(dsn, os.Getenv(victimStep))
	}
	os.Exit(pgtest.Main(m))
}

// victim runs a worker in its own process that reports when it reaches a step and then stops there.
func victim(dsn, step string) {
	pool, err := postgres.Open(context.Background(), pgtest.Worker(dsn), 8)
	if err != nil {
		panic(err)
	}
	inserts, err := queue.New(pool)
	if err != nil {
		panic(err)
	}
	client, err := jobs.NewClient(pool, jobs.Config{
		Store: postgres.New(pool, inserts, nil), Beat: beat, Features: []feature.Feature{recompact.Feature()},
		Trace: func(reached string) {
			if reached == step {
				fmt.Println("reached")
				select {}
			}
		},
	})
	if err == nil {
		err = client.Start(context.Background())
	}
	if err != nil {
		panic(err)
	}
	<-client.Stopped()
}

// world is a store on a database of the test's own, with one tenant.
type world struct {
	*testing.T
	dsn    string
	store  recompact.Store
	tenant uuid.UUID
}

// settled returns the default policy with numbers of its own, which the tests know: in a window of 10,000 tokens the
// trigger is at 8,000 and the hard limit at 9,500, nothing waits, and results leave by their age.
func settled() policy.Policy {
	p := policy.Default()
	p.Trigger, p.Target, p.Hard = 0.8, 0.5, 0.95
	p.Idle.Enabled, p.Economy.Enabled, p.Cache.TTLSeconds = false, false, 0
	p.Trim.Enabled, p.Arguments.Enabled = true, true
	p.Summarise.WordsRatio, p.Summarise.NamesRatio, p.Summarise.LinesRatio = 0, 0, 0
	return p
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, dsn: pgtest.New(t)}
	w.store = openStore(t, pgtest.Admin(w.dsn))
	p := settled()
	made, err := w.store.CreateTenant(t.Context(), "acme", session.Policy{Trigger: p.Trigger, Hard: p.Hard, Document: p.Document()})
	if err != nil {
		t.Fatal(err)
	}
	w.tenant = made.ID
	return w
}

func openStore(t testing.TB, dsn string) recompact.Store {
	t.Helper()
	pool, err := postgres.Open(context.Background(), dsn, 12)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	inserts, err := queue.New(pool)
	if err != nil {
		t.Fatal(err)
	}
	return recompact.NewStore(postgres.New(pool, inserts, nil))
}

func (w *world) at(id string) session.Address { return session.Address{Tenant: w.tenant, ID: id} }

func (w *world) session(id string) session.Address {
	w.Helper()
	if _, _, err := w.store.Store.Create(w.Context(), w.at(id), session.Change{WindowTokens: new(10_000)}, nil); err != nil {
		w.Fatal(err)
	}
	return w.at(id)
}

// turn returns a call of a tool and its result of about this many tokens, as two messages.
func turn(n, tokens int) [][]byte {
	line := fmt.Sprintf("line of file %d with some text in it\\n", n)
	text := strings.Repeat(line, tokens*4/len(line)+1)
	return [][]byte{
		fmt.Appendf(nil, `{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"Read","arguments":"{\"path\":\"f%d\"}"}}]}`, n, n),
		fmt.Appendf(nil, `{"role":"tool","tool_call_id":"c%d","content":"%s"}`, n, text),
	}
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
	a := session.Append{Session: at, Format: session.OpenAIChat}
	for _, body := range bodies {
		m, err := wire.Inspect(a.Format, body)
		if err != nil {
			w.Fatal(err)
		}
		a.Messages = append(a.Messages, session.NewMessage{Body: body, Role: m.Role, Tokens: m.Tokens, StartsUnit: m.StartsUnit})
	}
	done, _, err := w.store.Append(context.WithoutCancel(w.Context()), a)
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
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), victimDSN+"="+w.dsn, victimStep+"="+step)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	said, _ := bufio.NewReader(out).ReadString('\n')
	if err := cmd.Process.Kill(); err != nil {
		w.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if said != "reached\n" {
		w.Fatalf("the victim said %q", said)
	}
}

// pause stops the first worker that comes to a step.
type pause struct {
	step    string
	first   atomic.Bool
	over    <-chan struct{}
	reached chan struct{}
	goOn    chan struct{}
}

func (w *world) newPause(step string) *pause {
	return &pause{step: step, over: w.Context().Done(), reached: make(chan struct{}), goOn: make(chan struct{})}
}

func (p *pause) trace(step string) {
	if step != p.step || !p.first.CompareAndSwap(false, true) {
		return
	}
	close(p.reached)
	select {
	case <-p.goOn:
	case <-p.over:
	}
}

// await waits for what a worker is about to do.
func await[T any](w *world, done <-chan T) {
	w.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		w.Fatal("the worker did not come to it")
	}
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
	ctx := context.WithoutCancel(w.Context())
	found, log, err := w.store.Messages(ctx, at, postgres.Range{Removed: true, Limit: 1_000_000})
	if err != nil {
		w.Fatal(err)
	}
	if len(log) != len(appended) || int(found.LastSeq) != len(appended) {
		w.Fatalf("%d messages were acknowledged, %d are in the log, last_seq is %d", len(appended), len(log), found.LastSeq)
	}
	for i := range log {
		if log[i].Seq != int64(i+1) || !bytes.Equal(log[i].Body, appended[i]) {
			w.Fatalf("message %d is not what was appended", i+1)
		}
	}
	view, bodies := w.read(at)
	tail := appended[view.Through:]
	if len(bodies) < len(tail) || !same(bodies[len(bodies)-len(tail):], tail) {
		w.Fatalf("the view's %d messages do not end with the %d that no checkpoint covers", len(bodies), len(tail))
	}
	if violations := wiretest.Validate(session.OpenAIChat, bodies, wire.Options{}); len(violations) > 0 {
		w.Errorf("the view breaks its provider's rules: %v", violations)
	}
	return found
}

func same(a, b [][]byte) bool {
	return bytes.Equal(bytes.Join(a, []byte{0}), bytes.Join(b, []byte{0}))
}

// view returns the messages that a read returns.
func (w *world) view(at session.Address) [][]byte {
	w.Helper()
	_, bodies := w.read(at)
	return bodies
}

func (w *world) read(at session.Address) (postgres.View, [][]byte) {
	w.Helper()
	view, err := w.store.View(context.WithoutCancel(w.Context()), at, postgres.Version{})
	if err != nil {
		w.Fatal(err)
	}
	joined, err := zframe.Decompress(nil, view.Body, view.Size)
	if err != nil {
		w.Fatal(err)
	}
	if len(joined) > 0 && len(view.Tail) > 0 {
		joined = append(joined, ',')
	}
	var messages []json.RawMessage
	if err := json.Unmarshal(fmt.Appendf(nil, "[%s%s]", joined, view.Tail), &messages); err != nil {
		w.Fatal(err)
	}
	bodies := make([][]byte, len(messages))
	for i := range messages {
		bodies[i] = messages[i]
	}
	return view, bodies
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
	dsn := pgtest.New(t)
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
