package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	reads "github.com/varve-dev/varve/internal/view"
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
	w.must(http.StatusCreated, "PUT", "/v1/sessions/long", `{"format":"openai-chat","window_tokens":1000000}`)
	for range 3 {
		w.must(http.StatusCreated, "POST", "/v1/sessions/long/messages", message(700<<10)+`}`)
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
	begun := map[string]chan answer{"light/export": make(chan answer, 1), "long/context?view=full": make(chan answer, 1)}
	for path, answered := range begun {
		go func() { answered <- w.ask("GET", "/v1/sessions/"+path, "") }()
	}
	time.Sleep(200 * time.Millisecond)
	for path, answered := range begun { // it was answered before it needs a processor: it waits as long as it takes
		select {
		case got := <-answered:
			t.Errorf("%s took no turn: %d", path, got.Code)
			answered <- got
		default:
		}
	}
	release.Done()
	for path, answered := range begun {
		if got := <-answered; got.Code != http.StatusOK || !strings.HasSuffix(strings.TrimSpace(got.Body.String()), "}") {
			t.Errorf("%s: %d %.300s", path, got.Code, got.Body)
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

// TestWhatWasLeftOutOfALargeViewIsReadInATurn gives no turn.
func TestWhatWasLeftOutOfALargeViewIsReadInATurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("one"), user("two"), user("three")))
	at := session.Address{Tenant: w.tenant, ID: "s"}
	errNoTurn := errors.New("no turn")
	want := reads.Request{
		Largest: 1, MaxTokens: 10, Admit: func(int64) error { return nil },
		Heavy: func(int64, func() error) error { return errNoTurn },
	}
	for name, fill := range map[string]func(v *postgres.View) error{
		"whole":     func(v *postgres.View) error { return want.Fill(w.Context(), w.store, at, v) },
		"its end":   func(v *postgres.View) error { return want.FillEnd(w.Context(), w.store, at, v, 10) },
		"a stretch": func(v *postgres.View) error { return want.FillStretch(w.Context(), w.store, at, v, 1, 2) },
	} {
		var stored postgres.View
		read := postgres.ViewRead{MaxTokens: want.MaxTokens, Largest: want.Largest}
		if err := w.store.ViewInto(w.Context(), at, read, &stored); err != nil || !stored.LeftOut {
			t.Fatal(err, stored.LeftOut)
		}
		if err := fill(&stored); !errors.Is(err, errNoTurn) {
			t.Errorf("%s was read without a turn: %v", name, err)
		}
	}
}
