package api_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// tell writes events of a session, each in a transaction of its own.
func (w *world) tell(id string, n int) {
	w.Helper()
	for range n {
		w.write(`INSERT INTO events (tenant_id, id, type, topic, data) VALUES ($1, $2, 'session.due', $3, '{}')`,
			w.tenant, uuid.Must(uuid.NewV7()), session.TopicOf(id))
	}
}

// write executes a statement as the world's tenant.
func (w *world) write(sql string, args ...any) {
	w.Helper()
	tx, err := w.store.Pool().Begin(w.Context())
	if err == nil {
		defer func() { _ = tx.Rollback(w.Context()) }()
		_, err = tx.Exec(w.Context(), `SELECT set_config('app.tenant_id', $1, true)`, w.tenant.String())
	}
	if err == nil {
		_, err = tx.Exec(w.Context(), sql, args...)
	}
	if err == nil {
		err = tx.Commit(w.Context())
	}
	if err != nil {
		w.Fatal(err)
	}
}

// stream is an open stream of events.
type stream struct {
	testing.TB
	answer *http.Response
	lines  *bufio.Scanner
}

// openStream serves the world's API on a socket and follows its events.
func (w *world) openStream(key, path string, headers ...string) *stream {
	w.Helper()
	server := httptest.NewUnstartedServer(w.server)
	server.Config = api.NewServer(w.server)
	server.Start()
	w.Cleanup(server.Close)
	r, err := http.NewRequestWithContext(w.Context(), "GET", server.URL+path, http.NoBody)
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Authorization", "Bearer "+key)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = answer.Body.Close() })
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		w.Fatalf("the stream begins with %d, %s", answer.StatusCode, answer.Header)
	}
	return &stream{w.TB, answer, bufio.NewScanner(answer.Body)}
}

// next returns the next event as "id event", and the session that it is about; "" at the end.
func (s *stream) next() (event, data string) {
	s.Helper()
	var id, kind string
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch name {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			return strings.TrimSpace(id + " " + kind), value
		}
	}
	return "", ""
}

func TestAStreamHasEachEventOnceFromWhereItContinues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tell("a", 250) // more than a page
	all := w.openStream(w.key, "/v1/events?after=0")
	late := w.openStream(w.key, "/v1/events", "Last-Event-ID", "248")
	one := w.openStream(w.key, "/v1/events?after=0&session=b&types=session.due,session.compacted")
	now := w.openStream(w.key, "/v1/events")
	for n := 1; n <= 250; n++ {
		if got, data := all.next(); got != fmt.Sprint(n, " session.due") || !strings.Contains(data, `"session":"a"`) {
			t.Fatalf("event %d is %q %s", n, got, data)
		}
	}
	w.tell("b", 1)
	for name, s := range map[string]*stream{"all": all, "one session's": one, "from now on": now} {
		if got, _ := s.next(); got != "251 session.due" {
			t.Errorf("%s: the newest is %q", name, got)
		}
	}
	for n := 249; n <= 251; n++ {
		if got, _ := late.next(); got != fmt.Sprint(n, " session.due") {
			t.Errorf("continued: %q, want %d", got, n)
		}
	}
	w.server.Drain()
	for range 2 { // and then the body ends
		got, data := all.next()
		if got != "" && (got != "stream.closed" || data != `{"reason":"draining"}`) {
			t.Errorf("at the end came %q %s", got, data)
		}
	}
	if err := all.lines.Err(); err != nil {
		t.Errorf("the stream did not end cleanly: %v", err)
	}
}

// A stream ends when its key does. It holds no connection of the database while nothing happens, however many there are.
func TestAStreamEndsWithItsKeyAndHoldsNoConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := decoded[protocol.NewKey](w.must(http.StatusCreated, "POST", "/v1/keys", `{"scopes":["sessions:read"]}`))
	var open []*stream
	for range 3 * connections {
		open = append(open, w.openStream(made.Text, "/v1/events"))
	}
	w.until("no connection is in use", func() bool { return w.store.Pool().Stat().AcquiredConns() == 0 })
	w.tell("a", 1)
	for _, s := range open {
		if got, _ := s.next(); got != "1 session.due" {
			t.Fatalf("got %q", got)
		}
	}
	w.must(http.StatusNoContent, "DELETE", "/v1/keys/"+made.ID.String(), "")
	for _, s := range open {
		if got, data := s.next(); got != "stream.closed" || data != `{"reason":"unauthorized"}` {
			t.Fatalf("after the revocation: %q %s", got, data)
		}
	}
}

// A stream that has much to send ends with its key, too: the client takes its time for each page.
func TestAStreamEndsWithItsKeyWhileItCatchesUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := decoded[protocol.NewKey](w.must(http.StatusCreated, "POST", "/v1/keys", `{"scopes":["sessions:read"]}`))
	const events = 20_000
	w.exec(fmt.Sprintf(`INSERT INTO events (tenant_id, id, type, topic, data)
		SELECT '%s', gen_random_uuid(), 'session.due', 'session/a', '{"session":"a"}' FROM generate_series(1, %d)`, w.tenant, events))
	s := w.openStream(made.Text, "/v1/events?after=0&limit=1")
	if got, _ := s.next(); got != "1 session.due" {
		t.Fatalf("got %q", got)
	}
	w.must(http.StatusNoContent, "DELETE", "/v1/keys/"+made.ID.String(), "")
	for n := 2; ; n++ {
		got, data := s.next()
		if got == "stream.closed" && data == `{"reason":"unauthorized"}` {
			return
		}
		if got == "" || n == events {
			t.Fatalf("the stream went on to event %d: %q %s", n, got, data)
		}
	}
}

func TestATenantHasSoManyStreamsAndNoMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const limit = 64
	for range limit {
		w.openStream(w.key, "/v1/events")
	}
	w.must(http.StatusTooManyRequests, "GET", "/v1/events", "", "Accept", "text/event-stream")
	w.must(http.StatusOK, "GET", "/v1/events", "")
}

func TestEventsAreReadPageByPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tell("a", 5)
	w.tell("b", 2)
	seen := 0
	for after, more := int64(0), true; more; {
		page := decoded[protocol.Events](w.must(http.StatusOK, "GET", fmt.Sprintf("/v1/events?limit=2&after=%d", after), ""))
		for _, e := range page.Data {
			if seen++; e.N != int64(seen) {
				t.Fatalf("event %d has the number %d", seen, e.N)
			}
		}
		after, more = page.After, page.HasMore
	}
	if seen != 7 {
		t.Errorf("%d events", seen)
	}
	last := decoded[protocol.Events](w.must(http.StatusOK, "GET", "/v1/events?session=a", ""))
	if len(last.Data) != 5 || last.After != 7 || last.HasMore {
		t.Errorf("of a session: %d events, the next page is after %d", len(last.Data), last.After)
	}
	for query, advice := range map[string]string{
		"after=8": "begin with after=0", "types=session.dead": "there are session.due", "limit=501": "500",
	} {
		if got := w.must(http.StatusUnprocessableEntity, "GET", "/v1/events?"+query, ""); !strings.Contains(got.Body.String(), advice) {
			t.Errorf("%s: %s", query, got.Body)
		}
	}
	_, other := w.newTenant("other")
	if got := w.must(http.StatusOK, "GET", "/v1/events", "", "Authorization", "Bearer "+other).Body.String(); strings.Contains(got, "session.due") {
		t.Errorf("another tenant reads %s", got)
	}
}
