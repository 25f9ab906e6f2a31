package api_test

import (
	"bytes"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
)

var staleReads = flag.Int("stale-reads", 300, "how many reads with min_seq are compared with what was appended")

// replicated is a world whose reads go to a standby, with two more processes: one that knows no standby, and one whose
// only database is the standby.
type replicated struct {
	*world
	log      *logged
	primary  *embedded.Server
	standby  *embedded.Server
	without  *world
	readOnly *world
}

// logged keeps what is logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds a line.
func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

func newReplicated(t *testing.T) *replicated {
	t.Helper()
	r := &replicated{log: &logged{}, primary: pgtest.NewDurable(t)}
	r.standby = pgtest.NewStandby(t, r.primary)
	gate := admit.NewConnections(connections, patience)
	r.world = newWorldAt(t, r.primary.DSN(embedded.Database), r.log, gate)
	r.without = r.another(r.primary)
	err := r.store.ReadFromStandby(t.Context(), postgres.StandbyConfig{
		URL: pgtest.API(r.standby.DSN(embedded.Database)), Connections: connections, Wait: 100 * time.Millisecond, MaxLag: time.Minute,
		Log: r.server.Log,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.store.Close)
	r.catchUp()
	r.readOnly = r.another(r.standby)
	return r
}

// in returns the same for a subtest.
func (r *replicated) in(t *testing.T) *replicated {
	of := *r
	for _, w := range []**world{&of.world, &of.without, &of.readOnly} {
		inside := **w
		inside.TB = t
		*w = &inside
	}
	return &of
}

// another returns the same world by a process whose database is a cluster.
func (r *replicated) another(cluster *embedded.Server) *world {
	r.Helper()
	other := *r.world
	other.dsn = cluster.DSN(embedded.Database)
	other.store, other.admin = openStore(r, pgtest.API(other.dsn)), openStore(r, pgtest.Admin(other.dsn))
	logger := slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	other.server = api.New(api.Config{Store: other.store, Operators: other.admin, Log: logger, Gate: admit.NewConnections(connections, patience)})
	return &other
}

// catchUp waits until the standby shows what the primary has.
func (r *replicated) catchUp() {
	r.Helper()
	var written string
	r.ofPrimary(`SELECT pg_current_wal_flush_lsn()::text`, &written)
	conn, err := pgx.Connect(r.Context(), r.standby.DSN(embedded.Database))
	if err != nil {
		r.Fatal(err)
	}
	defer conn.Close(r.Context())
	r.until("the standby has replayed "+written, func() (reached bool) {
		if err := conn.QueryRow(r.Context(), `SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn`, written).Scan(&reached); err != nil {
			r.Fatal(err)
		}
		return reached
	})
}

func (r *replicated) ofPrimary(sql string, dest any) { r.Helper(); queryOn(r, r.primary, sql, dest) }
func (r *replicated) onStandby(sql string, dest any) { r.Helper(); queryOn(r, r.standby, sql, dest) }

func queryOn(t testing.TB, s *embedded.Server, sql string, dest any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DSN(embedded.Database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), sql).Scan(dest); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// TestReadsFromAStandby holds one pair of servers to all that is promised of them: it takes long to make one.
func TestReadsFromAStandby(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	t.Run("a reader gets no older view than it has", func(t *testing.T) { noOlderView(t, r) })
	t.Run("who writes reads what was written", func(t *testing.T) { whoWritesReadsIt(t, r) })
	t.Run("no read with min_seq is stale", func(t *testing.T) { noReadIsStale(t, r) })
	t.Run("a process on a standby says what it can do", func(t *testing.T) { saysWhatItCanDo(t, r) })
	t.Run("every read is the same", func(t *testing.T) { everyReadIsTheSame(t, r) })
	if *standbyViews > 0 {
		t.Run("a standby takes the views", func(t *testing.T) { takesTheViews(t, r, *standbyViews) })
	}
	t.Run("a cold session shows its view", func(t *testing.T) { coldViewsOfAStandby(t, r) })
	t.Run("nothing fails that the primary can answer", func(t *testing.T) { nothingFails(t, r) })
}

// everyReadIsTheSame asks each GET route of the description, which has all of the table, of a process
// with the primary, of one with the standby beside it, and of one that has the standby alone.
func everyReadIsTheSame(t *testing.T, r *replicated) {
	r = r.in(t)
	r.work()
	e := examples{world: r.without, Description: apitest.Described(), values: r.without.shown()}
	r.quiet()
	asked := map[string]bool{}
	before := r.readsBy("standby")
	for _, op := range apitest.Described().Operations {
		if op.Method != http.MethodGet || op.Path == "/metrics" {
			continue
		}
		path := e.pathOf(op)
		want := r.without.must(http.StatusOK, "GET", path, "")
		for name, w := range map[string]*world{"with a standby": r.world, "on the standby alone": r.readOnly} {
			if status, is := aloneNot[op.Path]; is && w == r.readOnly {
				w.must(status, "GET", path, "")
				continue
			}
			got := w.must(http.StatusOK, "GET", path, "")
			if unread(got) != unread(want) || got.Header().Get("Etag") != want.Header().Get("Etag") {
				t.Errorf("%s %s: %s\n%s\nwant %s\n%s", path, name, got.Header().Get("Etag"), got.Body, want.Header().Get("Etag"), want.Body)
			}
		}
		asked[op.Path] = true
	}
	if n := r.readsBy("standby") - before; n < 40 || r.readsBy("primary\",why=\"failed") > 0 {
		t.Errorf("%d of %d reads were answered by the standby: %s", n, len(asked), r.must(http.StatusOK, "GET", "/metrics", "").Body)
	}
	for _, route := range r.server.Table() {
		if path := braced(route.Path); route.Method == http.MethodGet && !asked[path] && path != "/metrics" {
			t.Errorf("GET %s was not compared", path)
		}
	}
}

// timeless returns the body of an answer without the time of its query, which stands for how far a search reaches that
// leaves nothing out.
func timeless(a answer) string { return searchedAt.ReplaceAllString(a.Body.String(), "") }

var searchedAt = regexp.MustCompile(`"indexed_through":"[^"]*"`)

// unread returns the body of an answer without what says how often something was read, and how much sleeps: the test
// reads it.
func unread(a answer) string { return readCounts.ReplaceAllString(timeless(a), "") }

var readCounts = regexp.MustCompile(`"(sessions_cold|reads|last_read_at|read_backs|views|tokens_served|tokens_saved|read_back)":("[^"]*"|null|\d+|{"parts"[^}]*})`)

// readsBy returns how many reads were answered by the primary or the standby, as the metrics say.
func (r *replicated) readsBy(server string) (n int) {
	r.Helper()
	for line := range strings.Lines(r.must(http.StatusOK, "GET", "/metrics", "").Body.String()) {
		if name, count, _ := strings.Cut(strings.TrimSpace(line), "} "); strings.HasPrefix(name, `varve_standby_reads_total{by="`+server+`"`) {
			more, _ := strconv.Atoi(count)
			n += more
		}
	}
	return n
}

// aloneNot are the reads that a process on a standby alone cannot answer: /readyz says that it cannot do all, and an
// export has to be written into the audit trail.
var aloneNot = map[string]int{
	"/readyz": http.StatusServiceUnavailable, "/v1/export": http.StatusServiceUnavailable,
	"/v1/sessions/{id}/export": http.StatusServiceUnavailable,
}

// braced writes the parameters of a path as the description does.
func braced(path string) string {
	steps := strings.Split(path, "/")
	for i, step := range steps {
		if name, is := strings.CutPrefix(step, ":"); is {
			steps[i] = "{" + name + "}"
		}
	}
	return strings.Join(steps, "/")
}

// quiet waits until nothing is written any more by jobs and by what is counted in memory.
func (r *replicated) quiet() {
	r.Helper()
	r.server.Close(r.Context())
	r.without.server.Close(r.Context())
	r.until("no job is live", func() bool {
		var live int
		r.ofPrimary(`SELECT count(*) FROM river_job WHERE state IN ('available', 'running')`, &live)
		return live == 0
	})
	r.catchUp()
}

// pathOf returns the path of a GET operation with the values that its description shows.
func (e *examples) pathOf(op apitest.Operation) string {
	path, query := op.Path, url.Values{}
	for _, p := range op.Parameters {
		example, shown := p.Value["example"]
		text := fmt.Sprint(example)
		if known, ok := e.values[text]; ok {
			text = known
		}
		switch name := p.Value["name"].(string); {
		case shown && p.Value["in"] == "path":
			path = strings.Replace(path, "{"+name+"}", url.PathEscape(text), 1)
		case shown && p.Value["in"] == "query":
			query.Set(name, text)
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path
}

type seqs struct {
	LastSeq int64 `json:"last_seq"`
	Data    []struct{ Seq int64 }
}

// noReadIsStale appends by a process that knows no standby, and reads by one that does, while the replay
// stands still every now and then.
func noReadIsStale(t *testing.T, r *replicated) {
	r = r.in(t)
	r.must(http.StatusCreated, "PUT", "/v1/sessions/stale", "")
	resume := r.pausing()
	defer resume()
	reads := 0
	for reads < *staleReads {
		done := decoded[seqs](r.without.must(http.StatusCreated, "POST", "/v1/sessions/stale/messages", batch("openai-chat", user("x"))))
		for _, path := range []string{"/v1/sessions/stale/context?min_seq=%d", "/v1/sessions/stale/messages?order=desc&limit=1&min_seq=%d", "/v1/sessions/stale/context?view=full&min_seq=%d"} {
			got := decoded[seqs](r.must(http.StatusOK, "GET", fmt.Sprintf(path, done.LastSeq), ""))
			if len(got.Data) > 0 {
				got.LastSeq = got.Data[0].Seq
			}
			if reads++; got.LastSeq < done.LastSeq {
				t.Fatalf("%s shows %d after %d was acknowledged", path, got.LastSeq, done.LastSeq)
			}
		}
	}
	last := decoded[seqs](r.must(http.StatusOK, "GET", "/v1/sessions/stale", "")).LastSeq
	for _, path := range []string{"/v1/sessions/stale/context", "/v1/sessions/stale/messages"} {
		got := decoded[problem](r.must(http.StatusConflict, "GET", fmt.Sprintf("%s?min_seq=%d", path, last+1), ""))
		if got.Code != "seq_not_reached" || got.Current == nil || *got.Current != last {
			t.Errorf("%s beyond the log: %+v", path, got)
		}
		r.must(http.StatusUnprocessableEntity, "GET", path+"?min_seq=0", "")
	}
	r.must(http.StatusNotFound, "GET", "/v1/sessions/none/context?min_seq=1", "")
}

// pausing lets the replay stand still for a moment again and again until resume is called.
func (r *replicated) pausing() (resume func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			for _, step := range []struct {
				sql   string
				lasts time.Duration
			}{{`SELECT pg_wal_replay_pause()::text`, 150 * time.Millisecond}, {`SELECT pg_wal_replay_resume()::text`, 600 * time.Millisecond}} {
				var nothing string
				r.onStandby(step.sql, &nothing)
				select {
				case <-stop:
					r.onStandby(`SELECT pg_wal_replay_resume()::text`, &nothing)
					return
				case <-time.After(step.lasts):
				}
			}
		}
	}()
	return func() { close(stop); <-done }
}

// whoWritesReadsIt holds the replay, so that only the primary can show it.
func whoWritesReadsIt(t *testing.T, r *replicated) {
	r = r.in(t)
	r.must(http.StatusCreated, "PUT", "/v1/sessions/own", "")
	r.must(http.StatusCreated, "PUT", "/v1/sessions/other", "")
	r.catchUp()
	var nothing string
	r.onStandby(`SELECT pg_wal_replay_pause()::text`, &nothing)
	for name, c := range map[string]struct {
		method, path, body string
		read, shows        string
	}{
		"an append":             {"POST", "/v1/sessions/own/messages", batch("openai-chat", user("appended")), "/v1/sessions/own/context", "appended"},
		"a change":              {"PATCH", "/v1/sessions/own", `{"metadata":{"k":"changed"}}`, "/v1/sessions/own", "changed"},
		"a policy":              {"PUT", "/v1/policy", `{"target":0.123}`, "/v1/policy", "0.123"},
		"a policy of a session": {"PUT", "/v1/sessions/own/policy", `{"target":0.321}`, "/v1/sessions/own/policy", "0.321"},
		"a session":             {"POST", "/v1/sessions", `{"id":"made"}`, "/v1/sessions", "made"},
		"a hold by a session":   {"PUT", "/v1/sessions/other/hold", `{"reason":"held"}`, "/v1/sessions/other/hold", "held"},
	} {
		if got := r.ask(c.method, c.path, c.body); got.Code >= 300 {
			t.Fatalf("%s: %d %s", name, got.Code, got.Body)
		}
		if got := r.must(http.StatusOK, "GET", c.read, ""); !strings.Contains(got.Body.String(), c.shows) {
			t.Errorf("%s is not seen by who made it: %s", name, got.Body)
		}
	}
	r.readOnly.must(http.StatusNotFound, "GET", "/v1/sessions/made", "") // the replay stands still
	r.must(http.StatusOK, "GET", "/v1/sessions/made", "")
	r.onStandby(`SELECT pg_wal_replay_resume()::text`, &nothing)
}

// noOlderView: who names the version that it has does not go back.
func noOlderView(t *testing.T, r *replicated) {
	r = r.in(t)
	r.without.must(http.StatusCreated, "PUT", "/v1/sessions/older", "")
	r.without.must(http.StatusCreated, "POST", "/v1/sessions/older/messages", batch("openai-chat", user("one")))
	r.catchUp()
	var nothing string
	r.onStandby(`SELECT pg_wal_replay_pause()::text`, &nothing)
	r.without.must(http.StatusCreated, "POST", "/v1/sessions/older/messages", batch("openai-chat", user("two")))
	tag := r.without.must(http.StatusOK, "GET", "/v1/sessions/older/context", "").Header().Get("Etag")
	if got := decoded[seqs](r.must(http.StatusOK, "GET", "/v1/sessions/older/context", "")); got.LastSeq != 1 {
		t.Errorf("a reader that asks for nothing gets %d: was the standby asked?", got.LastSeq)
	}
	r.must(http.StatusNotModified, "GET", "/v1/sessions/older/context", "", "If-None-Match", tag)
	if got := decoded[seqs](r.must(http.StatusOK, "GET", "/v1/sessions/older/context?pending=drop", "", "If-None-Match", tag)); got.LastSeq != 2 {
		t.Errorf("a reader that has 2 gets %d", got.LastSeq)
	}
	r.onStandby(`SELECT pg_wal_replay_resume()::text`, &nothing)
}

// nothingFails lets the standby crash, come back, and become a primary.
func nothingFails(t *testing.T, r *replicated) {
	r = r.in(t)
	r.must(http.StatusCreated, "PUT", "/v1/sessions/down", "")
	r.must(http.StatusCreated, "POST", "/v1/sessions/down/messages", batch("openai-chat", user("x")))
	stop, readers := make(chan struct{}), sync.WaitGroup{}
	for _, path := range []string{"/v1/sessions/down/context", "/v1/sessions/down/messages", "/v1/sessions", "/v1/export"} {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got := r.ask("GET", path, ""); got.Code != http.StatusOK {
					t.Errorf("%s: %d %s", path, got.Code, got.Body)
					return
				}
			}
		})
	}
	const toPrimary = "reads go to the primary and not to the standby"
	if err := r.standby.Crash(); err != nil {
		t.Error(err)
	}
	r.until("it is logged that the standby is down", func() bool { return r.log.count(toPrimary) == 1 })
	for range 20 {
		r.must(http.StatusOK, "GET", "/v1/sessions/down/context", "")
	}
	if n := r.log.count(toPrimary); n != 1 {
		t.Errorf("%d lines say that the standby is down", n)
	}
	close(stop)
	readers.Wait()
}

// saysWhatItCanDo has a process whose only database is a standby.
func saysWhatItCanDo(t *testing.T, r *replicated) {
	r = r.in(t)
	r.must(http.StatusCreated, "PUT", "/v1/sessions/told", "")
	r.must(http.StatusCreated, "POST", "/v1/sessions/told/messages", batch("openai-chat", user("x")))
	r.catchUp()
	w := r.readOnly
	refused := decoded[problem](w.must(http.StatusServiceUnavailable, "GET", "/readyz", "", "Authorization", ""))
	if !strings.Contains(refused.Detail, "takes no writes") || !strings.Contains(refused.Detail, "/readyz?reads=true") {
		t.Errorf("/readyz: %+v", refused)
	}
	if got := w.must(http.StatusOK, "GET", "/readyz?reads=true", "", "Authorization", "").Body.String(); got != `{"status":"reads_only"}` {
		t.Errorf("/readyz?reads=true: %s", got)
	}
	if got := r.must(http.StatusOK, "GET", "/readyz?reads=true", "", "Authorization", "").Body.String(); got != `{"status":"ready"}` {
		t.Errorf("/readyz?reads=true with the primary: %s", got)
	}
	none := uuid.NewString()
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/v1/sessions/told/messages", batch("openai-chat", user("y"))},
		{"PUT", "/v1/sessions/t", ""}, {"PATCH", "/v1/sessions/told", `{"metadata":{"k":"v"}}`}, {"DELETE", "/v1/sessions/told", ""},
		{"POST", "/v1/sessions/told/compact", ""}, {"PUT", "/v1/policy", `{"target":0.4}`}, {"POST", "/v1/keys", `{"role":"viewer"}`},
		{"POST", "/v1/sessions/told/fork", ""}, {"POST", "/v1/admin/tenants", `{"name":"` + none + `"}`}, {"POST", "/v1/conversations", `{}`},
		{"POST", "/v1/imports", `{"export":{"version":1}}`}, {"POST", "/v1/erasures", `{"metadata":{"user_id":"u1"}}`},
		{"POST", "/v1/sessions/told/results?more=true", ""}, {"PUT", "/v1/sessions/told/hold", `{"reason":"x"}`},
	} {
		got := w.must(http.StatusServiceUnavailable, c.method, c.path, c.body)
		if !strings.Contains(got.Body.String(), `"code":"read_only"`) || !strings.Contains(got.Body.String(), "nothing was written") || !strings.Contains(got.Body.String(), "primary") ||
			got.Header().Get("X-Should-Retry") != "false" {
			t.Errorf("%s %s: %v %s", c.method, c.path, got.Header(), got.Body)
		}
	}
	w.must(http.StatusOK, "POST", "/v1/sessions/told/preview", "")
	w.must(http.StatusOK, "GET", "/v1/sessions/told/context", "")
}
