package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/session"
)

// listen serves the world's API on a socket with other timeouts than NewServer's.
func (w *world) listen(read, write time.Duration) (address string) {
	w.Helper()
	server := httptest.NewUnstartedServer(w.server)
	server.Config = api.NewServer(w.server)
	server.Config.ReadTimeout, server.Config.WriteTimeout = read, write
	server.Start()
	w.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// converse sends a request byte for byte, and reads only then.
func (w *world) converse(address, head string, body io.Reader) answer {
	w.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		w.Fatal(err)
	}
	head = strings.Replace(head, "\n", "\r\nHost: varve\r\nAuthorization: Bearer "+w.key+"\r\n", 1) + "\r\n"
	if _, err := io.Copy(conn, io.MultiReader(strings.NewReader(head), body)); err != nil {
		w.Fatalf("the connection broke while the request was sent: %v", err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		w.Fatalf("no answer: %v", err)
	}
	defer res.Body.Close()
	got := httptest.NewRecorder()
	for name, values := range res.Header {
		got.Header()[name] = values
	}
	got.WriteHeader(res.StatusCode)
	if _, err := io.Copy(got, res.Body); err != nil {
		w.Fatal(err)
	}
	return answer{w.TB, got}
}

func TestABodyThatDoesNotComeIsATimeoutNotBadJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	address := w.listen(time.Second, time.Minute)
	for _, coding := range []string{"identity", "gzip", "zstd"} {
		head := "POST /v1/sessions HTTP/1.1\nContent-Length: 1000\r\nContent-Encoding: " + coding + "\r\n"
		got := w.converse(address, head, strings.NewReader(""))
		p := decoded[problem](got)
		checkProblem(t, got, p)
		if p.Code != "request_timeout" || got.Code != http.StatusRequestTimeout {
			t.Errorf("%s: %d %s", coding, got.Code, got.Body)
		}
	}
}

func TestAClientThatSendsAllBeforeItReadsSeesWhyItIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	address := w.listen(time.Minute, time.Minute)
	const size = session.MaxBodyBytes + 8<<20
	for name, test := range map[string]struct {
		head string
		body io.Reader
		want int
	}{
		"a body that says its length": {
			fmt.Sprintf("POST /v1/sessions HTTP/1.1\nContent-Length: %d\r\n", size), io.LimitReader(spaces{}, size), http.StatusRequestEntityTooLarge,
		},
		"a body in one chunk": {
			"POST /v1/sessions HTTP/1.1\nTransfer-Encoding: chunked\r\n",
			io.MultiReader(strings.NewReader(fmt.Sprintf("%x\r\n", size)), io.LimitReader(spaces{}, size), strings.NewReader("\r\n0\r\n\r\n")),
			http.StatusRequestEntityTooLarge,
		},
		"a large body of another type": {
			fmt.Sprintf("POST /v1/sessions HTTP/1.1\nContent-Type: text/plain\r\nContent-Length: %d\r\n", size), io.LimitReader(spaces{}, size),
			http.StatusUnsupportedMediaType,
		},
	} {
		got := w.converse(address, test.head, test.body)
		checkProblem(t, got, decoded[problem](got))
		if got.Code != test.want {
			t.Errorf("%s: %d %s", name, got.Code, got.Body)
		}
	}
}

func TestAClientThatAsksBeforeItSendsIsToldAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	head := fmt.Sprintf("POST /v1/sessions HTTP/1.1\nExpect: 100-continue\r\nContent-Length: %d\r\n", session.MaxBodyBytes+1)
	if got := w.converse(w.listen(time.Minute, time.Minute), head, strings.NewReader("")); got.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

// TestWaitingOutlastsTheServersTimeouts has a server that would end every request before the wait is over.
func TestWaitingOutlastsTheServersTimeouts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	address := w.listen(2*time.Second, 3*time.Second)
	got := w.converse(address, "POST /v1/sessions/s/compact?wait=5 HTTP/1.1\nContent-Length: 0\r\n", strings.NewReader(""))
	if run := decoded[session.Run](got); got.Code != http.StatusAccepted || run.State != session.RunQueued {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

func TestWhatIsNoRequestIsRefusedInPlainText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.converse(w.listen(time.Minute, time.Minute), "GET /v1/sessions/%zz HTTP/1.1\nConnection: close\r\n", strings.NewReader(""))
	if got.Code != http.StatusBadRequest || !strings.HasPrefix(got.Header().Get("Content-Type"), "text/plain") {
		t.Errorf("%d %v %s: docs/errors.md says otherwise", got.Code, got.Header(), got.Body)
	}
}

// late is a body that does not come before its deadline.
type late struct{}

func (late) Read([]byte) (int, error) { return 0, fmt.Errorf("read: %w", os.ErrDeadlineExceeded) }

// askLate sends a request whose body does not come.
func (w *world) askLate(method, path string) answer {
	w.Helper()
	r := httptest.NewRequestWithContext(w.Context(), method, path, late{})
	r.Header.Set("Authorization", "Bearer "+w.key)
	recorder := httptest.NewRecorder()
	w.server.ServeHTTP(recorder, r)
	return answer{w.TB, recorder}
}

// TestWaitingGoesOnBehindARunThatBeganBefore joins a run that does not know the newest messages.
func TestWaitingGoesOnBehindARunThatBeganBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"window_tokens":20000}`)
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", turn("openai-chat", 1, 12, 6000)...))
	old := decoded[session.Run](w.must(http.StatusAccepted, "POST", "/v1/sessions/s/compact", ""))
	w.exec(`UPDATE runs SET state = 'running', started_at = now()`)
	joined := make(chan answer)
	go func() { joined <- w.ask("POST", "/v1/sessions/s/compact?wait=60", "", "Idempotency-Key", "join") }()
	// The run ends, for message 1 only, as soon as the waiting request has joined it.
	w.exec(`DO $$ BEGIN
		WHILE NOT EXISTS (SELECT FROM idempotency WHERE key = 'join') LOOP PERFORM pg_sleep(0.01); END LOOP;
		DELETE FROM river_job;
		UPDATE runs SET state = 'done', through_seq = 1, finished_at = now();
	END $$`)
	w.work()
	got := <-joined
	run := decoded[session.Run](got)
	if got.Code != http.StatusOK || run.ID == old.ID || run.State != session.RunDone || *run.Through <= 1 {
		t.Errorf("joined %s, got %d %s", old.ID, got.Code, got.Body)
	}
	again := w.must(http.StatusOK, "POST", "/v1/sessions/s/compact?wait=60", "", "Idempotency-Key", "join")
	if decoded[session.Run](again).ID != old.ID {
		t.Errorf("the request again asked for another run: %s", again.Body)
	}
}

// TestNothingFollowsARequestThatAProxyMayReadOtherwise sends two requests at once: only the first is answered, and the
// connection ends.
func TestNothingFollowsARequestThatAProxyMayReadOtherwise(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	address := w.listen(time.Minute, time.Minute)
	const next = "GET /livez HTTP/1.1\r\nHost: varve\r\nConnection: close\r\n\r\n"
	const chunked = "Host: varve\r\nTransfer-Encoding: chunked\r\n"
	for name, test := range map[string]struct {
		first   string
		status  int
		answers int
	}{
		"one request behind another":  {"GET /livez HTTP/1.1\r\nHost: varve\r\n\r\n", 200, 2},
		"a length beside chunks":      {"POST /v1/tokens HTTP/1.1\r\n" + chunked + "Content-Length: 6\r\n\r\n0\r\n\r\n", 401, 1},
		"chunks":                      {"POST /v1/tokens HTTP/1.1\r\n" + chunked + "\r\n0\r\n\r\n", 401, 1},
		"two lengths":                 {"POST /v1/tokens HTTP/1.1\r\nHost: varve\r\nContent-Length: 0\r\nContent-Length: 6\r\n\r\n", 400, 1},
		"another Transfer-Encoding":   {"POST /v1/tokens HTTP/1.1\r\nHost: varve\r\nTransfer-Encoding: gzip\r\n\r\n", 501, 1},
		"HTTP/2 without TLS":          {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, 1},
		"an upgrade to HTTP/2":        {"GET /livez HTTP/1.1\r\nHost: varve\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", 200, 2},
		"OPTIONS, which is no method": {"OPTIONS /v1/sessions HTTP/1.1\r\nHost: varve\r\n\r\n", 405, 2},
	} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience)) // what fails shows below
		fmt.Fprint(conn, test.first+next)
		said, err := io.ReadAll(conn)
		if n := strings.Count(string(said), "HTTP/1.1 "); err != nil || n != test.answers || !strings.HasPrefix(string(said), fmt.Sprintf("HTTP/1.1 %d ", test.status)) {
			t.Errorf("%s: %v, %d answers, want %d beginning with %d:\n%s", name, err, n, test.answers, test.status, said)
		}
	}
}
