package api_test

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/api"
)

// TestBehindAProxy asks through nginx and Caddy: with the lines of docs/operations.md, over TLS and HTTP/2, and with
// their defaults.
func TestBehindAProxy(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(w *world, program, address string) *proxy{
		"nginx": (*world).nginx, "caddy": (*world).caddy,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program, err := exec.LookPath(name)
			if err != nil {
				t.Skip("it is not on this machine:", err)
			}
			w := newWorld(t)
			server := httptest.NewUnstartedServer(w.server)
			server.Config = api.NewServer(w.server)
			server.Start()
			t.Cleanup(server.Close)
			p := start(w, program, strings.TrimPrefix(server.URL, "http://"))
			p.carries(t, w)
			for _, at := range []string{p.documented, p.plain} {
				p.follows(t, w, at)
			}
			if got := p.send(t, p.documented, w.key, "GET", "/metrics", nil); got.status != http.StatusNotFound {
				t.Errorf("others can read metrics: %+v", got)
			}
		})
	}
}

// carries requires that bodies and answers of the sizes that Varve takes come through.
func (p *proxy) carries(t *testing.T, w *world) {
	t.Helper()
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat","window_tokens":10000000,"policy":{"trigger":0.95,"trigger_bytes":0}}`)
	large := batch("openai-chat", user(strings.Repeat("words of 16 byte", 6<<20/16)))
	for _, test := range []struct {
		at, method, path string
		body             string
		want             int
	}{
		{p.documented, "POST", "/v1/sessions/s/messages", large, http.StatusCreated},
		{p.documented, "GET", "/v1/sessions/s/context", "", http.StatusOK},
		{p.documented, "GET", "/v1/sessions/s/export", "", http.StatusOK},
		{p.documented, "POST", "/v1/sessions/s/messages", strings.Repeat(" ", 33<<20), http.StatusRequestEntityTooLarge},
		{p.plain, "POST", "/v1/sessions/s/messages", batch("openai-chat", user(strings.Repeat("16 bytes of text", 900<<10/16))), http.StatusCreated},
		{p.plain, "GET", "/v1/sessions/s/context", "", http.StatusOK},
		{p.plain, "GET", "/v1/sessions/s/export", "", http.StatusOK},
	} {
		got := p.send(t, test.at, w.key, test.method, test.path, strings.NewReader(test.body))
		if got.status != test.want || got.problem && !strings.Contains(got.body, `"code":`) {
			t.Errorf("%s%s: %d, want %d: %.300s", test.method, test.path, got.status, test.want, got.body)
		}
		if test.at == p.documented && got.protocol != 2 {
			t.Errorf("%s came over HTTP/%d", test.path, got.protocol)
		}
		if test.want == http.StatusOK && len(got.body) < 6<<20 {
			t.Errorf("%s has %d bytes", test.path, len(got.body))
		}
	}
}

// proxy is a running proxy: one server as it is documented, which speaks TLS, one with the program's defaults.
type proxy struct {
	documented, plain string
	client            *http.Client
}

// documented returns the lines for a program of docs/operations.md.
func documented(w *world, program string) string {
	w.Helper()
	docs, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		w.Fatal(err)
	}
	_, behind, found := strings.Cut(string(docs), "```"+program+"\n")
	lines, _, ended := strings.Cut(behind, "```")
	if !found || !ended {
		w.Fatal("docs/operations.md has no lines for", program)
	}
	return lines
}

// nginx starts one before an address.
func (w *world) nginx(program, address string) *proxy {
	w.Helper()
	p, dir := newProxy(w)
	lines := strings.NewReplacer("listen 443", "listen "+p.documented, "127.0.0.1:8080", address, "/etc/ssl", dir).Replace(documented(w, "nginx"))
	as := "" // the worker is nobody otherwise, who cannot write into dir
	if os.Getuid() == 0 {
		as = "user root; "
	}
	configuration := as + "pid nginx.pid; error_log stderr; daemon off; worker_processes 1; events {}\nhttp { access_log off;\n" +
		"client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;\n" + lines +
		"server { listen " + p.plain + "; location / { proxy_pass http://" + address + "; } }\n}\n"
	p.run(w, exec.Command(program, "-p", dir, "-c", "nginx.conf"), dir, "nginx.conf", configuration)
	return p
}

// caddy starts one before an address.
func (w *world) caddy(program, address string) *proxy {
	w.Helper()
	p, dir := newProxy(w)
	certificate := "https://" + p.documented + " {\n tls " + dir + "/varve.pem " + dir + "/varve.key"
	lines := strings.NewReplacer("varve.example {", certificate, "127.0.0.1:8080", address).Replace(documented(w, "caddy"))
	configuration := "{\n admin off\n auto_https off\n storage file_system " + dir + "\n}\n" + lines +
		"http://" + p.plain + " {\n reverse_proxy " + address + "\n}\n"
	p.run(w, exec.Command(program, "run", "--adapter", "caddyfile", "--config", "Caddyfile"), dir, "Caddyfile", configuration)
	return p
}

// newProxy returns a proxy that does not run yet, and a directory with its certificate.
func newProxy(w *world) (p *proxy, dir string) {
	w.Helper()
	dir = w.TempDir()
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	defer certified.Close()
	pair := certified.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		w.Fatal(err)
	}
	p = &proxy{documented: freePort(w.TB), plain: freePort(w.TB), client: certified.Client()}
	p.client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	p.client.Transport.(*http.Transport).TLSClientConfig.NextProtos = []string{"h2"}
	for name, block := range map[string]*pem.Block{
		"varve.pem": {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, "varve.key": {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			w.Fatal(err)
		}
	}
	return p, dir
}

// run starts the program with a configuration, until the test ends.
func (p *proxy) run(w *world, cmd *exec.Cmd, dir, file, configuration string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(configuration), 0o600); err != nil {
		w.Fatal(err)
	}
	var said bytes.Buffer
	cmd.Dir, cmd.Stderr = dir, &said
	cmd.Env = append(os.Environ(), "HOME="+dir)
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // which ends its workers, too
		_ = cmd.Wait()                          // its log says more
		w.Logf("%s: %s", cmd.Path, &said)
	})
	for range 250 {
		if conn, err := net.Dial("tcp", p.plain); err == nil {
			conn.Close()
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	p.documented, p.plain = "https://"+p.documented, "http://"+p.plain
}

func freePort(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// received is an answer that came through a proxy.
type received struct {
	status, protocol int
	problem          bool
	body             string
}

func (p *proxy) send(t *testing.T, at, key, method, path string, body io.Reader) received {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, at+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	res, err := p.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
	return received{res.StatusCode, res.ProtoMajor, res.Header.Get("Content-Type") == "application/problem+json", string(text)}
}

// follows requires that an event comes through while the stream of events is open.
func (p *proxy) follows(t *testing.T, w *world, at string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", at+"/v1/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.key)
	r.Header.Set("Accept", "text/event-stream")
	res, err := p.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := make(chan string, 100)
	go func() {
		for scanner := bufio.NewScanner(res.Body); scanner.Scan(); {
			lines <- scanner.Text()
		}
		close(lines)
	}()
	told := false
	for limit := time.After(patience); ; {
		select {
		case line, open := <-lines:
			if !told {
				told = true
				w.tell("s", 1)
			}
			if strings.HasPrefix(line, "data: ") {
				return
			}
			if !open {
				t.Errorf("%s: the stream ended", at)
				return
			}
		case <-limit:
			t.Errorf("%s: no event came in %v: %s", at, patience, fmt.Sprint(res.Header))
			return
		}
	}
}
