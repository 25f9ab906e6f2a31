package console_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/console"
	"github.com/varve-dev/varve/internal/features"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/samples"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// world is an API with the console, and a browser without scripts that has signed in.
type world struct {
	*apitest.World
	url string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: apitest.New(t, features.All()...)}
	server := httptest.NewServer(w.Server)
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

// sampleWithoutWorker makes a session that is due, and that nobody compacts.
func (w *world) sampleWithoutWorker(id string) {
	w.Helper()
	w.Must(http.StatusCreated, "PUT", "/v1/sessions/"+id, `{"format":"openai-chat","window_tokens":1000}`)
	for range 3 {
		w.Append(id, strings.Repeat("many words ", 200))
	}
}

// raw sends what a script of River UI sends, and returns the answer whatever its status is.
func (v *visitor) raw(method, path, body string) string {
	v.Helper()
	r, err := http.NewRequestWithContext(v.Context(), method, v.url+path, strings.NewReader(body))
	if err != nil {
		v.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	got, err := v.client.Do(r)
	if err != nil {
		v.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		v.Fatal(err)
	}
	return string(text)
}

// sample makes a session of a recorded conversation, compacts it and appends what is left of it.
func (w *world) sample(id string) {
	w.Helper()
	text, err := samples.Files.ReadFile("add-a-limit.openai-chat.json")
	if err != nil {
		w.Fatal(err)
	}
	messages := apitest.Decoded[[]json.RawMessage](w, string(text))
	w.Must(http.StatusCreated, "PUT", "/v1/sessions/"+id, `{"format":"openai-chat","model":"gpt-4o","window_tokens":75000,
		"metadata":{"user":"u1"},"policy":{"trigger":0.8,"target":0.4,"idle":{"enabled":false}}}`)
	for part := range slices.Chunk(messages, 12) {
		body, err := json.Marshal(map[string]any{"messages": part})
		if err != nil {
			w.Fatal(err)
		}
		w.Must(http.StatusCreated, "POST", "/v1/sessions/"+id+"/messages", string(body))
		const trigger = 60_000
		w.Until("compacted", func() bool {
			return apitest.Decoded[protocol.Session](w, w.Must(http.StatusOK, "GET", "/v1/sessions/"+id, "")).ContextTokens < trigger
		})
	}
}

// lacks reports whether the API has no route of a path: a feature may be taken out.
func (w *world) lacks(path string) bool {
	return path != "" && strings.Contains(w.Ask("GET", path, "").Body.String(), "there is no such route")
}

// patterns returns the routes of all pages that are there.
func (w *world) patterns() []string {
	return slices.DeleteFunc(console.Patterns(), func(pattern string) bool { return w.lacks(console.Asked(pattern)) })
}

// work starts a worker.
func (w *world) work() {
	w.Helper()
	w.Work(jobs.Config{Compactions: 2, SweepEvery: time.Second})
}

// visitor is somebody with a browser.
type visitor struct {
	*world
	client *http.Client
}

func (w *world) visitor() *visitor {
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.Fatal(err)
	}
	return &visitor{world: w, client: &http.Client{Jar: jar}}
}

// signedIn returns a visitor who has signed in with a key.
func (w *world) signedIn(key string) *visitor {
	w.Helper()
	v := w.visitor()
	v.post(http.StatusOK, "/console/sign-in", url.Values{"key": {key}})
	return v
}

// get returns a page, which must have this status and be harmless.
func (v *visitor) get(status int, path string) string {
	v.Helper()
	got, err := v.client.Get(v.url + path)
	if err != nil {
		v.Fatal(err)
	}
	return v.page(status, path, got)
}

// look returns a page with its status, which must be harmless.
func (v *visitor) look(path string) (status int, page string) {
	v.Helper()
	got, err := v.client.Get(v.url + path)
	if err != nil {
		v.Fatal(err)
	}
	return got.StatusCode, v.page(got.StatusCode, path, got)
}

// post sends a form as the console's own page does.
func (v *visitor) post(status int, path string, form url.Values, headers ...string) string {
	v.Helper()
	r, err := http.NewRequestWithContext(v.Context(), http.MethodPost, v.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	got, err := v.client.Do(r)
	if err != nil {
		v.Fatal(err)
	}
	return v.page(status, path, got)
}

func (v *visitor) page(status int, path string, got *http.Response) string {
	v.Helper()
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		v.Fatal(err)
	}
	if got.StatusCode != status {
		v.Fatalf("%s: %d, not %d: %s", path, got.StatusCode, status, body)
	}
	if strings.HasPrefix(got.Header.Get("Content-Type"), "text/html") {
		if err := harmless(got.Header, string(body)); err != nil {
			v.Errorf("%s: %v", path, err)
		}
	}
	return string(body)
}

// harmless returns what a page has that none may have: scripts or styles of its own, addresses of other hosts, or
// headers that let others use it.
func harmless(h http.Header, page string) error {
	csp := h.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
		if !strings.Contains(csp, want) || strings.Contains(csp, "unsafe") {
			return fmt.Errorf("the policy of its content is %q", csp)
		}
	}
	if h.Get("Cache-Control") != "private, no-store" || h.Get("X-Content-Type-Options") != "nosniff" {
		return fmt.Errorf("headers %v", h)
	}
	for _, r := range page {
		if console.Hides(r) {
			return fmt.Errorf("%U is in it", r)
		}
	}
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return err
	}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "style", "iframe", "object", "embed", "base":
			return fmt.Errorf("it has the element %s", n.Data)
		}
		src := ""
		for _, a := range n.Attr {
			if a.Key == "src" {
				src = a.Val
			}
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
				return fmt.Errorf("%s has the attribute %s", n.Data, a.Key)
			}
			address := a.Key == "href" || a.Key == "src" || a.Key == "action"
			if at, err := url.Parse(a.Val); address && (err != nil || at.Host != "" || at.Scheme != "") {
				return fmt.Errorf("%s leads to %s", n.Data, a.Val)
			}
		}
		if n.Data == "script" && src != "/console/static/console.js" {
			return fmt.Errorf("a script of %q", src)
		}
	}
	return nil
}
