package api_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/features"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
)

// replicated is a world on a primary, with one more process whose database is a standby of it.
type replicated struct {
	*world
	primary  *embedded.Server
	standby  *embedded.Server
	readOnly *world
}

func newReplicated(t *testing.T) *replicated {
	t.Helper()
	r := &replicated{primary: pgtest.NewDurable(t)}
	r.standby = pgtest.NewStandby(t, r.primary)
	r.world = newWorldAt(t, r.primary.DSN(embedded.Database), io.Discard, admit.NewConnections(connections, patience))
	r.catchUp()
	readOnly := *r.world
	readOnly.dsn = r.standby.DSN(embedded.Database)
	readOnly.store, readOnly.admin = openStore(t, pgtest.API(readOnly.dsn)), openStore(t, pgtest.Admin(readOnly.dsn))
	readOnly.server = api.New(api.Config{Features: features.All(), Store: readOnly.store, Operators: readOnly.admin, Log: r.server.Log,
		Gate: admit.NewConnections(connections, patience)})
	r.readOnly = &readOnly
	return r
}

// in returns the same for a subtest.
func (r *replicated) in(t *testing.T) *replicated {
	of := *r
	for _, w := range []**world{&of.world, &of.readOnly} {
		inside := **w
		inside.TB = t
		*w = &inside
	}
	return &of
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

// TestAProcessOnAStandby holds one pair of servers to all that is promised of them: it takes long to make one.
func TestAProcessOnAStandby(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	t.Run("no read with min_seq is stale", func(t *testing.T) { noReadIsStale(t, r) })
	t.Run("it says what it can do", func(t *testing.T) { saysWhatItCanDo(t, r) })
	t.Run("every read is the same", func(t *testing.T) { everyReadIsTheSame(t, r) })
	t.Run("a cold session shows its view", func(t *testing.T) { coldViewsOfAStandby(t, r) })
}

// everyReadIsTheSame asks each GET route of the description, which has all of the table, of a process with the primary,
// and of one with the standby.
func everyReadIsTheSame(t *testing.T, r *replicated) {
	r = r.in(t)
	r.work()
	e := r.everything()
	r.quiet()
	asked := map[string]bool{}
	for _, op := range apitest.Described().Operations {
		if op.Method != http.MethodGet || op.Path == "/metrics" {
			continue
		}
		asked[op.Path] = true
		path := e.pathOf(op)
		want := r.must(http.StatusOK, "GET", path, "")
		if status, is := aloneNot[op.Path]; is {
			r.readOnly.must(status, "GET", path, "")
			continue
		}
		got := r.readOnly.must(http.StatusOK, "GET", path, "")
		if unread(got) != unread(want) || got.Header().Get("Etag") != want.Header().Get("Etag") {
			t.Errorf("%s: %s\n%s\nwant %s\n%s", path, got.Header().Get("Etag"), got.Body, want.Header().Get("Etag"), want.Body)
		}
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

var readCounts = regexp.MustCompile(`"(sessions_cold|last_read_at|read_backs|views|tokens_served|tokens_saved)"":("[^"]*"|null|\d+)`)

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

// noReadIsStale appends by the process on the primary, and reads by the one on the standby, while the replay stands still.
func noReadIsStale(t *testing.T, r *replicated) {
	r = r.in(t)
	r.must(http.StatusCreated, "PUT", "/v1/sessions/stale", "")
	r.must(http.StatusCreated, "POST", "/v1/sessions/stale/messages", batch("openai-chat", user("one")))
	r.catchUp()
	var nothing string
	r.onStandby(`SELECT pg_wal_replay_pause()::text`, &nothing)
	r.must(http.StatusCreated, "POST", "/v1/sessions/stale/messages", batch("openai-chat", user("two")))
	paths := []string{"/v1/sessions/stale/context?min_seq=%d", "/v1/sessions/stale/messages?order=desc&limit=1&min_seq=%d", "/v1/sessions/stale/context?view=full&min_seq=%d"}
	for _, path := range paths {
		r.must(http.StatusOK, "GET", fmt.Sprintf(path, 2), "")
		r.readOnly.must(http.StatusOK, "GET", fmt.Sprintf(path, 1), "")
		got := decoded[problem](r.readOnly.must(http.StatusConflict, "GET", fmt.Sprintf(path, 2), ""))
		if got.Code != "seq_not_reached" || got.Current == nil || *got.Current != 1 {
			t.Errorf("%s of a standby that is behind: %+v", path, got)
		}
	}
	r.onStandby(`SELECT pg_wal_replay_resume()::text`, &nothing)
	r.catchUp()
	for _, path := range paths {
		r.readOnly.must(http.StatusOK, "GET", fmt.Sprintf(path, 2), "")
		if got := decoded[problem](r.must(http.StatusConflict, "GET", fmt.Sprintf(path, 3), "")); got.Code != "seq_not_reached" {
			t.Errorf("%s beyond the log: %+v", path, got)
		}
	}
	r.must(http.StatusNotFound, "GET", "/v1/sessions/none/context?min_seq=1", "")
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
		{"POST", "/v1/sessions/told/archive", ""}, {"PUT", "/v1/sessions/told/hold", `{"reason":"x"}`},
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
