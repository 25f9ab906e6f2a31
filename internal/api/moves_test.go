//go:build !race

package api_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/cells"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/session"
)

// cell returns a process of another database that has nothing yet, with the same keys.
func (w *world) cell() *world {
	w.Helper()
	there := *w
	there.dsn = pgtest.New(w)
	there.store, there.admin = openStore(w, pgtest.API(there.dsn)), openStore(w, pgtest.Admin(there.dsn))
	there.server = api.New(api.Config{
		Store: there.store, Operators: there.admin, Log: slog.New(slog.NewJSONHandler(io.Discard, nil)),
		Gate: admit.NewConnections(connections, patience),
	})
	there.operator = there.newOperator()
	if w.store.ResultStores().New == persist.S3 {
		there.bucket()
	} else {
		there.files()
	}
	return &there
}

// owned returns a world's database by a login that moves tenants.
func (w *world) owned() *postgres.Store {
	w.Helper()
	pool, err := postgres.OpenAdmin(w.Context(), w.dsn, connections)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(pool.Close)
	store := postgres.New(pool, nil, nil)
	store.UseResultStores(*w.store.ResultStores())
	return store
}

// move returns one of the world's tenant to a cell.
func (w *world) move(there *world) *cells.Move {
	w.Helper()
	return &cells.Move{
		From: w.owned(), To: there.owned(), Tenant: w.tenant, Freeze: time.Minute, Address: "https://two.example",
		Say: func(text string) { w.Log(text) },
	}
}

// TestAMovedTenantIsReadAsBefore moves one that has all that the description shows, and compares what every GET route
// of its answers, with objects in directories and in buckets.
func TestAMovedTenantIsReadAsBefore(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]func(*world){"directory": (*world).files, "bucket": (*world).bucket} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			keep(w)
			w.readAsBefore()
		})
	}
}

func (w *world) readAsBefore() {
	w.Helper()
	w.work()
	e := examples{world: w, Description: apitest.Described(), values: w.shown()}
	w.must(http.StatusCreated, "PUT", "/v1/sessions/asleep", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/asleep/messages", batch("openai-chat", user("good night")))
	w.settled()
	paths := append(e.readsOfTenant(), "/v1/sessions/asleep/context")
	before := map[string]answer{}
	for _, path := range paths {
		before[path] = w.must(http.StatusOK, "GET", path, "")
	}
	w.frozen("asleep")
	there := w.cell()
	done, err := w.move(there).Run(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	w.Logf("%d rows, %d objects, frozen for %s", done.Rows, done.Objects, done.Frozen)
	if done.Objects == 0 {
		w.Error("no objects were moved")
	}
	for _, path := range slices.Backward(paths) {
		got, want := there.must(http.StatusOK, "GET", path, ""), before[path]
		if unread(got) != unread(want) || got.Header().Get("Etag") != want.Header().Get("Etag") {
			w.Errorf("%s: %s\n%s\nwant %s\n%s", path, got.Header().Get("Etag"), got.Body, want.Header().Get("Etag"), want.Body)
		}
		if path == "/v1/sessions/asleep/context" && !there.isCold("asleep") {
			w.Error("the view of a cold session was not moved")
		}
	}
}

// readsOfTenant returns a path for each GET route that a tenant's key may use, those that write to its trail first.
func (e *examples) readsOfTenant() (paths []string) {
	for _, op := range e.Operations {
		if op.Method == http.MethodGet && strings.HasPrefix(op.Path, "/v1/") && !ofOperators.MatchString(op.Path) {
			paths = append(paths, e.pathOf(op))
		}
	}
	writes := func(path string) int { return strings.Count(path, "/export") - strings.Count(path, "/audit") }
	slices.SortStableFunc(paths, func(a, b string) int { return writes(b) - writes(a) })
	return paths
}

// settled waits until nothing is written any more by jobs and by what is counted in memory.
func (w *world) settled() {
	w.Helper()
	w.server.Close(w.Context())
	w.until("no job is live, and the ledger has counted", func() bool {
		return w.count(`SELECT (SELECT count(*) FROM river_job WHERE state IN ('available', 'running'))
			+ (SELECT count(*) FROM search_sessions WHERE due_since IS NOT NULL)
			+ (SELECT count(*)
			     FROM sessions s
			     LEFT JOIN usage_sessions u ON u.tenant_id = s.tenant_id AND u.session_key = s.key
			    WHERE coalesce(u.counted_seq, 0) < s.last_seq)`) == 0
	})
}

// TestNoAppendIsLostWhenATenantMoves appends all the time to sessions of a tenant that moves. A writer repeats what is
// refused for the moment, and goes to the other cell when it is told to.
func TestNoAppendIsLostWhenATenantMoves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.files()
	w.work()
	there := w.cell()
	const writers = 6
	var acknowledged [writers][]int64
	var refusedFor [writers]time.Duration
	var sent atomic.Int64
	var stop atomic.Bool
	var group sync.WaitGroup
	for n := range writers {
		path := fmt.Sprintf("/v1/sessions/s%d", n)
		w.must(http.StatusCreated, "PUT", path, "")
		group.Go(func() {
			at, first := w, time.Time{}
			for i := 0; !stop.Load(); {
				body := fmt.Sprintf(`{"format":"openai-chat","client_ids":["c%d"],"messages":[{"role":"user","content":"message %d"}]}`, i, i)
				got := at.ask("POST", path+"/messages", body)
				switch {
				case got.Code == http.StatusCreated:
					if !first.IsZero() {
						refusedFor[n] += time.Since(first)
						first = time.Time{}
					}
					acknowledged[n] = append(acknowledged[n], decoded[seqs](got).LastSeq)
					i++
					sent.Add(1)
					continue
				case got.Code == http.StatusServiceUnavailable && strings.Contains(got.Body.String(), `"code":"tenant_moving"`):
				case got.Code == http.StatusMisdirectedRequest && at == w:
					at = there
				default:
					t.Errorf("%s: %d %s", path, got.Code, got.Body)
					return
				}
				if first.IsZero() {
					first = time.Now()
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	enough := func(n int64) {
		w.until("there are more appends", func() bool { return sent.Load() >= n || t.Failed() })
	}
	enough(300)
	done, err := w.move(there).Run(t.Context())
	if err != nil {
		t.Error(err)
	}
	enough(sent.Load() + 200)
	stop.Store(true)
	group.Wait()
	t.Logf("%d appends; writes were refused for %s, writers waited %v", sent.Load(), done.Frozen, refusedFor)
	for n, seqs := range acknowledged {
		path := fmt.Sprintf("/v1/sessions/s%d/messages?limit=1000", n)
		var found []string
		for {
			page := decoded[struct {
				Data []struct {
					Seq     int64
					Message struct{ Content string }
				}
			}](there.must(http.StatusOK, "GET", fmt.Sprint(path, "&after_seq=", len(found)), ""))
			if len(page.Data) == 0 {
				break
			}
			for _, m := range page.Data {
				found = append(found, fmt.Sprint(m.Seq, " ", m.Message.Content))
			}
		}
		for i, seq := range seqs {
			if want := fmt.Sprint(seq, " message ", i); i >= len(found) || found[i] != want {
				t.Fatalf("session %d: there is no %q: %q", n, want, found[max(0, min(i, len(found))-1):])
			}
		}
		if len(found) != len(seqs) {
			t.Errorf("session %d has %d messages, %d were acknowledged", n, len(found), len(seqs))
		}
	}
	w.until("the source tells where the tenant is", func() bool {
		got := w.ask("GET", "/v1/sessions", "")
		return got.Code == http.StatusMisdirectedRequest && strings.Contains(got.Body.String(), "https://two.example")
	})
	w.must(http.StatusUnauthorized, "GET", "/v1/sessions", "", "Authorization", "Bearer "+session.NewAPIKey(w.tenant))
}

// TestAFrozenTenantIsRead reads and writes while writes are refused.
func TestAFrozenTenantIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("hello")))
	w.moving("frozen")
	w.must(http.StatusOK, "GET", "/v1/sessions/s/context", "")
	for _, request := range [][2]string{
		{"/v1/sessions/s/messages", batch("openai-chat", user("again"))}, {"/v1/sessions", `{"id":"other"}`},
		{"/v1/keys", `{"role":"viewer"}`},
	} {
		got := w.must(http.StatusServiceUnavailable, "POST", request[0], request[1])
		if p := decoded[problem](got); p.Code != "tenant_moving" || got.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %s %v", request[0], got.Body, got.Header())
		}
	}
	other := *w
	other.tenant, other.key = w.newTenant("other")
	other.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	w.exec(`UPDATE tenant_moves SET frozen_until = now()`)
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("again")))
}

// TestATenantThatArrivesIsNotMade refuses a tenant of its id.
func TestATenantThatArrivesIsNotMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := "0198f0c1-7c1e-7000-8000-00000000000c"
	w.exec(`INSERT INTO tenant_moves (tenant, move, name, state) VALUES ('` + id + `', gen_random_uuid(), 'acme', 'arriving')`)
	got := w.must(http.StatusConflict, "POST", "/v1/admin/tenants", `{"name":"x","id":"`+id+`"}`)
	if p := decoded[problem](got); p.Code != "tenant_exists" {
		t.Errorf("%s", got.Body)
	}
}

// TestAQueuedCompactionMoves moves a tenant whose session waits for a worker, and has one of the other cell compact it.
func TestAQueuedCompactionMoves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.files()
	there := w.cell()
	there.exec(`SELECT setval('river_job_id_seq', 1000)`)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"window_tokens":10000}`)
	for n := range 4 {
		w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", turn("openai-chat", n, 3, 6000)...))
	}
	of := ` WHERE args ->> 'tenant' = '` + w.tenant.String() + `'`
	if w.count(`SELECT count(*) FROM river_job`+of+` AND kind = 'compact'`) != 1 {
		t.Fatal("no compaction waits")
	}
	if _, err := w.move(there).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := w.count(`SELECT count(*) FROM river_job` + of); n > 0 {
		t.Errorf("%d jobs are left at the source", n)
	}
	for _, table := range []string{"runs", "due_sessions"} {
		if there.count(`SELECT count(*) FROM `+table+` t JOIN river_job j ON j.id = t.job_id AND j.kind = 'compact' AND j.id > 1000`) != 1 {
			t.Errorf("a row of %s does not name the job", table)
		}
	}
	there.work()
	there.until("the session is compacted", func() bool {
		return there.count(`SELECT count(*) FROM checkpoints`) > 0
	})
}
