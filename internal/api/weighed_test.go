package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// weighedMessage returns a message of 2 MB.
func weighedMessage(role string) string {
	large := strings.Repeat("words of 16 byte", 2_000_000/16)
	return `{"role":"` + role + `","content":"` + large + `"}`
}

// TestNoLargeRequestIsServedWithoutMemory has a process whose memory others hold: each request that reads a large log,
// or brings large messages, waits and is refused; those about the same session that need none are answered.
func TestNoLargeRequestIsServedWithoutMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	three := weighedMessage("user") + "," + weighedMessage("assistant") + "," + weighedMessage("user")
	keepAll := `,"policy":{"trigger_bytes":0,"trigger":0.95}`
	for _, format := range []string{"openai-chat", "openai-responses"} {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+format, `{"format":"`+format+`","window_tokens":10000000`+keepAll+`}`)
		w.must(http.StatusCreated, "POST", "/v1/sessions/"+format+"/messages", `{"format":"`+format+`","messages":[`+three+`]}`)
	}
	const memory = 1 << 30
	w.limit(memory, time.Millisecond)
	release, err := w.server.Memory.Acquire(t.Context(), uuid.New(), memory)
	if err != nil {
		t.Fatal(err)
	}
	const chat, items = "/v1/sessions/openai-chat", "/v1/conversations/openai-responses"
	body := func(name string) string {
		return `{"model":"gpt-4o","format":"openai-chat","` + name + `":[` + three + `]}`
	}
	for _, request := range []struct{ method, path, body string }{
		{"GET", chat + "/context", ""},
		{"GET", chat + "/context?view=full", ""},
		{"GET", chat + "/context?format=anthropic", ""},
		{"GET", chat + "/context?max_tokens=600000", ""},
		{"GET", chat + "/context?fit=window", ""},
		{"GET", chat + "/messages", ""},
		{"GET", chat + "/export", ""},
		{"GET", chat + "/results/grep?pattern=words", ""},
		{"GET", chat + "/search?q=words", ""},
		{"POST", chat + "/preview", ""},
		{"POST", chat + "/preview", `{"from":"log"}`},
		{"POST", chat + "/messages", `{"messages":[` + three + `]}`},
		{"POST", "/v1/compact", body("messages")},
		{"POST", "/v1/tokens", body("messages")},
		{"POST", "/v1/responses/compact", `{"model":"gpt-4o","input":[` + three + `]}`},
		{"GET", items + "/items", ""},
		{"GET", items + "/items?view=compacted", ""},
	} {
		got := w.ask(request.method, request.path, request.body, "Accept", "application/json, text/event-stream", "Accept-Encoding", "")
		if got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), "over_capacity") || got.Header().Get("Retry-After") == "" {
			t.Errorf("%s %s: %d %.300s", request.method, request.path, got.Code, got.Body)
		}
	}
	for name, arguments := range map[string]any{
		"get_context": map[string]any{"max_tokens": 8000}, "grep_results": map[string]any{"pattern": "words"},
		"search_session": map[string]any{"query": "words"}, "get_messages": map[string]any{"from_seq": 1},
	} {
		call, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
			"name": name, "arguments": arguments,
		}})
		if err != nil {
			t.Fatal(err)
		}
		asked := w.ask("POST", "/mcp?session=openai-chat", string(call), "Accept", "application/json, text/event-stream")
		if text := asked.Body.String(); !strings.Contains(text, `"isError":true`) || strings.Contains(text, "words of") {
			t.Errorf("%s: %d %.300s", name, asked.Code, text)
		}
	}
	w.requireWeights("openai-chat", "openai-responses")
	w.must(http.StatusOK, "GET", chat, "")
	w.must(http.StatusOK, "GET", chat+"/messages?limit=1", "")
	w.must(http.StatusCreated, "POST", chat+"/messages", batch("openai-chat", user("small")))
	release.Done()
	w.must(http.StatusOK, "GET", chat+"/messages", "")
	w.must(http.StatusOK, "GET", items+"/items?view=compacted", "")
}

// lightReads are the reads of a session that read little, however large it is: rows of a page, or sums.
var lightReads = []string{
	"/v1/sessions/:id", "/v1/sessions/:id/archive", "/v1/sessions/:id/checkpoints", "/v1/sessions/:id/hold",
	"/v1/sessions/:id/pins", "/v1/sessions/:id/policy", "/v1/sessions/:id/policy/versions", "/v1/sessions/:id/results",
	"/v1/sessions/:id/runs", "/v1/sessions/:id/runs/:run", "/v1/sessions/:id/timeline", "/v1/sessions/:id/tokens",
	"/v1/conversations/:id",
}

// absent are reads of what the sessions of this test do not have.
var absent = []string{
	"/v1/sessions/:id/checkpoints/:n/context", "/v1/sessions/:id/results/uploads/:upload",
	"/v1/conversations/:id/items/:item",
}

// requireWeights asks for every read of a session, of which two are named, in a process without memory.
func (w *world) requireWeights(chat, items string) {
	w.Helper()
	fill := strings.NewReplacer(":ref", "m1-3", ":n", "1", ":upload", "u1", ":run", uuid.NewString(), ":item", "m1")
	asked := 0
	for _, route := range w.server.Routes() {
		method, path, _ := strings.Cut(route, " ")
		isSession := strings.HasPrefix(path, "/v1/sessions/:id")
		if method != "GET" || !isSession && !strings.HasPrefix(path, "/v1/conversations/:id") {
			continue
		}
		id := items
		if isSession {
			id = chat
		}
		asked++
		got := w.ask("GET", fill.Replace(strings.Replace(path, ":id", id, 1)), "", "Accept-Encoding", "")
		isLight := slices.Contains(lightReads, path) || slices.Contains(absent, path)
		if isLight == (got.Code == http.StatusServiceUnavailable) {
			w.Errorf("%s, which reads little: %v: %d %.200s", path, isLight, got.Code, got.Body)
		}
	}
	if asked < 25 {
		w.Errorf("%d routes", asked)
	}
}
