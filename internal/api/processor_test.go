package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/admit"
)

// TestHeavyWorkWaitsForAProcessorAndLightWorkDoesNot takes the only processor that heavy work has. What is heavy gets
// none, what is light needs none.
func TestHeavyWorkWaitsForAProcessorAndLightWorkDoesNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.CPU = admit.New(admit.Config{Name: "cpu", Size: 1, Each: 1, Patience: time.Millisecond})
	w.server.SmallView = 256 << 10 // above which a view is sent page by page
	message := func(bytes int) string {
		return fmt.Sprintf(`{"format":"openai-chat","messages":[{"role":"user","content":"%s"}]`, strings.Repeat("word ", bytes/5))
	}
	const light, counted, large = 4 << 10, 40 << 10, 300 << 10
	for id, size := range map[string]int{"light": light, "large": large} {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, `{"format":"openai-chat","window_tokens":1000000}`)
		w.must(http.StatusCreated, "POST", "/v1/sessions/"+id+"/messages", message(size)+`}`)
	}
	type call struct{ method, path, body string }
	heavy := []call{
		{"POST", "/v1/tokens", message(counted) + `,"tokenizer":"o200k"}`},
		{"POST", "/v1/tokens", message(large) + `}`},
		{"POST", "/v1/compact", message(large) + `}`},
		{"POST", "/v1/sessions/large/preview", ``},
		{"GET", "/v1/sessions/large/context?format=anthropic", ``},
		{"GET", "/v1/sessions/large/context", ``},
		{"GET", "/v1/sessions/large/pins/candidates", ``},
		{"GET", "/v1/sessions/large/summaries", ``},
		{"GET", "/v1/sessions/light/messages?limit=1000", ``},
		{"GET", "/v1/sessions/light/timeline", ``},
		{"POST", "/v1/sessions/large/messages", message(large) + `}`},
		{"POST", "/v1/conversations", `{"items":[{"type":"message","role":"user","content":"` + strings.Repeat("word ", large/5) + `"}]}`},
		{"POST", "/v1/responses/compact", `{"model":"gpt-5","input":"` + strings.Repeat("word ", large/5) + `"}`},
	}
	none := []call{
		{"POST", "/v1/tokens", message(light) + `,"tokenizer":"o200k"}`},
		{"POST", "/v1/tokens", message(counted) + `}`},
		{"POST", "/v1/compact", message(light) + `}`},
		{"POST", "/v1/sessions/light/preview", ``},
		{"GET", "/v1/sessions/light/context?format=anthropic", ``},
		{"GET", "/v1/sessions/light/context", ``},
		{"GET", "/v1/sessions/light/messages", ``},
	}
	other, _ := w.newTenant("other")
	release, err := w.server.CPU.Acquire(t.Context(), other, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range heavy {
		got := w.must(http.StatusServiceUnavailable, c.method, c.path, c.body)
		if !strings.Contains(got.Body.String(), `"over_capacity"`) || got.Header().Get("Retry-After") == "" {
			t.Errorf("%s %s: %s", c.method, c.path, got.Body)
		}
	}
	for _, c := range none {
		w.must(http.StatusOK, c.method, c.path, c.body)
	}
	w.must(http.StatusCreated, "POST", "/v1/sessions/large/messages", message(light)+`}`)
	exported := make(chan answer, 1)
	go func() { exported <- w.ask("GET", "/v1/sessions/light/export", "") }()
	select { // it was answered before it needs a processor: it waits as long as it takes
	case got := <-exported:
		t.Fatalf("an export took no turn: %d", got.Code)
	case <-time.After(200 * time.Millisecond):
		release.Done()
		if got := <-exported; got.Code != http.StatusOK || !strings.Contains(got.Body.String(), `"manifest"`) {
			t.Errorf("%d %.300s", got.Code, got.Body)
		}
	}
	for _, c := range heavy {
		if got := w.ask(c.method, c.path, c.body); got.Code != http.StatusOK && got.Code != http.StatusCreated {
			t.Errorf("%s %s: %d %s", c.method, c.path, got.Code, got.Body)
		}
	}
	if again, err := w.server.CPU.Acquire(t.Context(), other, 1); err != nil {
		t.Error("a request kept its processor:", err)
	} else {
		again.Done()
	}
}
