package verify_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/replay"
	"github.com/varve-dev/varve/internal/replay/folder"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
	"github.com/varve-dev/varve/internal/verify"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// world is a store on a database of the test's own, with one tenant, and the database's superuser.
type world struct {
	*testing.T
	store  *postgres.Store
	admin  *pgx.Conn
	tenant session.Tenant
	dsn    string // the superuser's
}

// newWorld returns a world whose tenant has the default policy as change leaves it.
func newWorld(t *testing.T, change func(*policy.Policy)) *world {
	t.Helper()
	dsn := pgtest.NewWarm(t)
	w := &world{T: t, dsn: dsn}
	pool := pgtest.Pool(t, pgtest.Admin(dsn), 8)
	inserts, err := queue.New(pool)
	if err != nil {
		t.Fatal(err)
	}
	w.store = postgres.New(pool, inserts, compactor.CapAtIngest)
	p := policy.Default()
	if change != nil {
		change(&p)
	}
	stored := session.Policy{Trigger: p.Trigger, Hard: p.Hard, Document: p.Document()}
	if w.tenant, err = w.store.CreateTenant(t.Context(), "acme", stored); err != nil {
		t.Fatal(err)
	}
	if w.admin, err = pgx.Connect(context.Background(), dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.admin.Close(context.Background()) })
	return w
}

// corpus returns the recorded conversations in folders of ../shared/data, "" for all; none where there is no such data.
func corpus(t *testing.T, name string) []*replay.Session {
	t.Helper()
	dir := os.Getenv("VARVE_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skip("there are no recorded conversations on this machine")
	}
	read, _, err := folder.Read(context.Background(), filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// conversation returns the first recorded conversation of a folder whose name contains a text.
func conversation(t *testing.T, in, name string) *replay.Session {
	t.Helper()
	for _, s := range corpus(t, in) {
		if strings.Contains(s.Name, name) {
			return s
		}
	}
	t.Fatalf("%s has no conversation %s", in, name)
	return nil
}

// save stores a conversation batch by batch, with a compaction after each but, where a tail is wanted, the last.
func (w *world) save(id string, s *replay.Session, window, batch int, tail bool) session.Key {
	w.Helper()
	at := session.Address{Tenant: w.tenant.ID, ID: id}
	made, _, err := w.store.Create(w.Context(), at, session.Change{WindowTokens: &window}, nil)
	if err != nil {
		w.Fatal(err)
	}
	for first := 0; first < len(s.Messages); first += batch {
		w.append(at, s.Format, s.Messages[first:min(first+batch, len(s.Messages))])
		if !tail || first+batch < len(s.Messages) {
			w.compact(at, made.Session.Key)
		}
	}
	return session.Key{Tenant: w.tenant.ID, Key: made.Session.Key}
}

// offload packs what no kept checkpoint of a session needs.
func (w *world) offload(key session.Key) {
	w.Helper()
	o := tier.Packer{
		Store: w.store, Log: slog.New(slog.DiscardHandler), Trace: func(string) {}, Slice: time.Hour,
	}
	if done, err := o.Session(w.Context(), key, 0); err != nil || !done {
		w.Fatalf("offload: done %v, %v", done, err)
	}
}

func (w *world) append(at session.Address, f session.Format, messages []replay.Message) {
	w.Helper()
	a := session.Append{Session: at, Format: f}
	for i := range messages {
		m, err := ingest.Message(f, messages[i].Body)
		if err != nil {
			w.Fatalf("%s: %v", at.ID, err)
		}
		a.Messages = append(a.Messages, m)
	}
	if _, _, err := w.store.Append(w.Context(), a); err != nil {
		w.Fatal(err)
	}
}

// compact compacts a session now, as a worker would.
func (w *world) compact(at session.Address, key uuid.UUID) {
	w.Helper()
	run, _, err := w.store.Compact(w.Context(), at, nil)
	if err != nil {
		w.Fatal(err)
	}
	var job int64
	err = w.admin.QueryRow(w.Context(), `SELECT job_id FROM runs WHERE id = $1`, run.ID).Scan(&job)
	if err != nil {
		w.Fatal(err)
	}
	c := compactor.Compactor{Store: w.store, Log: slog.New(slog.DiscardHandler), Trace: func(string) {}}
	if _, err := c.Compact(w.Context(), session.Key{Tenant: at.Tenant, Key: key}, run.ID, job); err != nil {
		w.Fatalf("%s: %v", at.ID, err)
	}
}

// verify looks at everything and returns the report.
func (w *world) verify(repair bool) (all verify.Report) {
	w.Helper()
	v := verify.Verifier{Store: w.store}
	scope := verify.Scope{Tenants: []session.Tenant{w.tenant}}
	err := v.Run(w.Context(), scope, repair, func(_, _ int64, r *verify.Report) error {
		all.Add(r)
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return all
}

func (w *world) clean() verify.Report {
	w.Helper()
	report := w.verify(false)
	for i := range report.Findings {
		f := &report.Findings[i]
		w.Errorf("%s %s of %s: %s", f.Kind, f.Where(), f.Session, f.What)
	}
	return report
}

func named(s *replay.Session) string { return strings.ReplaceAll(s.Name, "/", ".") }

// withLargeResult returns a conversation of Anthropic's format that has a result of several chunks in its beginning.
func withLargeResult(s *replay.Session) *replay.Session {
	var lines strings.Builder
	for n := range 4500 {
		fmt.Fprintf(&lines, "line %d of a long file, %x\\n", n, sha256.Sum256([]byte{byte(n), byte(n >> 8)}))
	}
	large := []replay.Message{
		{Body: []byte(`{"role":"assistant","content":[{"type":"tool_use","id":"large","name":"Bash","input":{}}]}`)},
		{Body: []byte(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"large","content":"` + lines.String() + `"}]}`)},
	}
	return &replay.Session{Name: s.Name, Format: s.Format, Messages: slices.Insert(slices.Clone(s.Messages), 1, large...)}
}

func (w *world) found(repair bool) (places []string) {
	w.Helper()
	report := w.verify(repair)
	for i := range report.Findings {
		f := &report.Findings[i]
		if f.What == "" || f.Means == "" || f.Do == "" {
			w.Errorf("a finding does not say what it is: %+v", f)
		}
		w.Logf("%s %s: %s; repaired: %s; unrepaired: %s", f.Kind, f.Where(), f.What, f.Repaired, f.Unrepaired)
		places = append(places, string(f.Kind)+": "+f.Where())
	}
	slices.Sort(places)
	return places
}

// key returns a new API key of the tenant.
func (w *world) key() string {
	w.Helper()
	key := session.NewAPIKey(w.tenant.ID)
	if _, err := w.store.CreateKey(w.Context(), w.tenant.ID, session.NewKey{Name: "test", Text: key, Scopes: session.KeyScopes()}); err != nil {
		w.Fatal(err)
	}
	return key
}

// plain takes out of the default policy what depends on how often a session was compacted, or on time.
func plain(p *policy.Policy) {
	p.Trim.Enabled, p.Cap.MaxRatio = true, 0.25
	p.Idle.Enabled, p.Economy.Enabled, p.Cache.TTLSeconds = false, false, 0
	p.Summarise.WordsRatio, p.Summarise.NamesRatio, p.Summarise.LinesRatio = 0, 0, 0
}
