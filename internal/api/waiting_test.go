package api_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// TestWhoWaitsHoldsNoConnection runs alone: the gauge of waiting requests counts those of other tests, too.
func TestWhoWaitsHoldsNoConnection(t *testing.T) {
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat"}`)
	asked := decoded[session.Run](w.must(http.StatusAccepted, "POST", "/v1/sessions/s/compact", ""))
	var waiters sync.WaitGroup
	answers := make(chan answer, 100)
	for range cap(answers) {
		waiters.Go(func() { answers <- w.ask("POST", "/v1/sessions/s/compact?wait=60", "") })
	}
	w.until("all wait", func() bool { return apitest.Metric(t, "varve_waiting_requests") >= float64(cap(answers)) })
	// Those that have just begun to wait have looked once.
	w.until("no connection is held", func() bool { return w.store.Pool().Stat().AcquiredConns() == 0 })
	reads := w.store.Pool().Stat().AcquireCount()
	found, err := w.store.Session(t.Context(), session.Address{Tenant: w.tenant, ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if len(answers) > 0 {
		t.Fatalf("%d did not wait", len(answers))
	}
	attempt := postgres.Attempt{Key: session.Key{Tenant: w.tenant, Key: found.Key}, Run: asked.ID, Number: 1}
	if err := w.admin.Pool().QueryRow(t.Context(), `UPDATE river_job SET state = 'running', attempt = 1 WHERE kind = 'compact' RETURNING id`).Scan(&attempt.Job); err != nil {
		t.Fatal(err)
	}
	failure := postgres.Failure{Class: session.FailureOwn, Reason: "a test ends it", Final: true}
	if _, err := w.store.FailRun(t.Context(), attempt, failure); err != nil {
		t.Fatal(err)
	}
	waiters.Wait()
	if more := w.store.Pool().Stat().AcquireCount() - reads; more > 20 {
		t.Errorf("%d connections were taken when a run ended that %d waited for", more, cap(answers))
	}
	close(answers)
	for a := range answers {
		if run := decoded[session.Run](a); a.Code != http.StatusOK || run.ID != asked.ID || run.State != session.RunFailed {
			t.Errorf("%d %s", a.Code, a.Body)
		}
	}
}

func TestTooManyDoNotWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.must(http.StatusAccepted, "POST", "/v1/imports?more=true", `{"session":{"id":"imported"}}`)
	id := decoded[protocol.Import](made).ID
	w.exec(fmt.Sprintf(`UPDATE imports SET state = 'running' WHERE id = '%s'`, id))
	var waiters sync.WaitGroup
	answers := make(chan answer, 130)
	for range cap(answers) {
		waiters.Go(func() { answers <- w.ask("GET", "/v1/imports/"+id.String()+"?wait=60", "") })
	}
	w.until("those that may not wait are answered", func() bool { return len(answers) >= cap(answers)-128 })
	for range cap(answers) - 128 {
		if a := <-answers; a.Code != http.StatusTooManyRequests {
			t.Errorf("one of more than 128 who wait for one import: %d %s", a.Code, a.Body)
		}
	}
	w.server.Drain() // nobody waits any more
	waiters.Wait()
	close(answers)
	for a := range answers {
		if a.Code != http.StatusOK {
			t.Errorf("%d %s", a.Code, a.Body)
		}
	}
}

func TestOnlyWhatIsLiveIsLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat"}`)
	run := decoded[session.Run](w.must(http.StatusAccepted, "POST", "/v1/sessions/s/compact", ""))
	ends, err := w.store.ListenForEnds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer ends.Close(t.Context())
	others, _ := w.newTenant("others")
	asked := map[uuid.UUID][]uuid.UUID{w.tenant: {run.ID, uuid.New()}, others: {run.ID}}
	for _, want := range []int{1, 0} {
		if live, err := ends.Live(t.Context(), asked); err != nil || len(live) != want || ends.Deaf() {
			t.Errorf("live are %v, %v; deaf %v", live, err, ends.Deaf())
		}
		w.exec(`UPDATE runs SET state = 'done'`)
	}
	if id, err := ends.Next(t.Context(), time.Minute); err != nil || id != run.ID {
		t.Errorf("heard that %s has ended, %v", id, err)
	}
}

// TestWhoWaitsBehindAPoolerIsWoken has the API's connections go through what swallows notifications, as a transaction
// pooler does.
func TestWhoWaitsBehindAPoolerIsWoken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pooled := *w
	dsn, listens := swallowing(t, pgtest.API(w.dsn))
	pooled.store = openStore(t, dsn)
	pooled.server = api.New(api.Config{Store: pooled.store})
	ends, err := pooled.store.ListenForEnds(t.Context())
	if err != nil || !ends.Deaf() {
		t.Fatalf("it does not notice that notifications do not arrive: %v", err)
	}
	ends.Close(t.Context())
	<-listens
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat"}`)
	run := decoded[session.Run](w.must(http.StatusAccepted, "POST", "/v1/sessions/s/compact", ""))
	answered := make(chan answer, 1)
	go func() { answered <- pooled.ask("POST", "/v1/sessions/s/compact?wait=60", "") }()
	<-listens // for those who wait
	w.exec(`UPDATE runs SET state = 'unchanged', finished_at = now()`)
	if got := decoded[session.Run](<-answered); got.ID != run.ID || got.State != session.RunUnchanged {
		t.Errorf("%+v", got)
	}
}

// swallowing returns the URL of a proxy in front of a database, which passes everything on but notifications, and a
// channel that gets a value whenever somebody begins to listen.
func swallowing(t *testing.T, dsn string) (pooled string, listens chan struct{}) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	socket := filepath.Join(query.Get("host"), ".s.PGSQL."+query.Get("port"))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	listens = make(chan struct{}, 100)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go swallow(client, socket, listens)
		}
	}()
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	query.Set("host", host)
	query.Set("port", port)
	u.RawQuery = query.Encode()
	return u.String(), listens
}

// swallow passes messages on between a client and a server until one of them hangs up.
func swallow(client net.Conn, socket string, listens chan<- struct{}) {
	server, err := net.Dial("unix", socket)
	if err != nil {
		_ = client.Close()
		return
	}
	go func() {
		defer server.Close()
		for chunk := make([]byte, 64<<10); ; {
			n, err := client.Read(chunk)
			if _, failed := server.Write(chunk[:n]); err != nil || failed != nil {
				return
			}
			if bytes.Contains(chunk[:n], []byte("LISTEN varve_ended")) {
				listens <- struct{}{}
			}
		}
	}()
	defer client.Close()
	in := bufio.NewReader(server)
	for {
		head, err := in.Peek(5) // the kind of the message, and its length without that
		if err != nil {
			return
		}
		out := io.Writer(client)
		const notification = 'A'
		if head[0] == notification {
			out = io.Discard
		}
		if _, err := io.CopyN(out, in, 1+int64(binary.BigEndian.Uint32(head[1:]))); err != nil {
			return
		}
	}
}
