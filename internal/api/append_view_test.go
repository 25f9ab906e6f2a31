package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
)

// appendedView is the answer to an append with a view.
type appendedView struct {
	session.Appended
	Context json.RawMessage
	Problem *problem
}

// parted returns an append's answer and the view in it, byte for byte.
func parted(a answer) (appendedView, string) {
	a.Helper()
	text := a.Body.String()
	if a.Header().Get("Content-Encoding") == "zstd" {
		text = unzstd(a.TB, a.Body.Bytes())
	}
	var got appendedView
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		a.Fatalf("%v: %.500s", err, text)
	}
	_, view, _ := strings.Cut(text, `"context":`)
	return got, strings.TrimSuffix(view, "}")
}

// TestAnAppendReturnsTheViewThatAReadOfItWouldReturn compares the two for small and large views, in every rendition, of
// sessions with a checkpoint and without.
func TestAnAppendReturnsTheViewThatAReadOfItWouldReturn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	large := w.streaming()
	paths := []string{w.compacted("anthropic"), w.compacted("openai-chat"), "/v1/sessions/mixed"}
	w.must(http.StatusCreated, "PUT", paths[2], `{"format":"gemini"}`)
	w.must(http.StatusCreated, "POST", paths[2]+"/messages", batch("openai-chat", unusual...))
	queries := []string{"", "max_tokens=2000", "format=anthropic", "format=gemini&pending=drop", "model=gpt-4o", "fit=window&wait=0",
		"format=openai-chat&dialect=mistral"}
	for _, path := range paths {
		for n, query := range queries {
			for _, coding := range []string{"identity", "zstd"} {
				for name, server := range map[string]http.Handler{"small": w.server, "large": large} {
					body := batch("openai-chat", user(fmt.Sprint(n, coding, name)))
					r := httptest.NewRequestWithContext(t.Context(), "POST", path+"/messages?return=context&"+query, strings.NewReader(body))
					r.Header.Set("Authorization", "Bearer "+w.key)
					r.Header.Set("Content-Type", "application/json")
					r.Header.Set("Accept-Encoding", coding)
					r.Header.Set("If-None-Match", "*") // of a read only
					got := answer{t, httptest.NewRecorder()}
					server.ServeHTTP(got, r)
					want := w.must(http.StatusOK, "GET", path+"/context?"+query, "", "Accept-Encoding", coding)
					done, view := parted(got)
					if diff := cmp.Diff(plainOf(want), "200"+view); diff != "" || got.Code != http.StatusCreated {
						t.Fatalf("%s?%s in %s, %s: %d (-read +returned)\n%.2000s", path, query, coding, name, got.Code, diff)
					}
					if tag := want.Header().Get("Etag"); got.Header().Get("Etag") != tag || done.LastSeq != done.FirstSeq {
						t.Errorf("%s?%s: seqs %d to %d, ETag %s, not %s", path, query, done.FirstSeq, done.LastSeq, got.Header().Get("Etag"), tag)
					}
				}
			}
		}
	}
}

func TestAnAppendMakesTheSessionThatItSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const at = "/v1/sessions/s"
	writes := w.newKey(session.SessionsWrite)
	steps := []struct {
		body   string
		status int
		says   string // the code of the error, or a part of the answer
	}{
		{`{"messages":[` + user("a") + `]}`, 404, "not_found"},
		{`{"messages":[` + user("a") + `],"session":{}}`, 422, "/format"},
		{`{"messages":[` + user("a") + `],"session":[]}`, 422, "/session"},
		{`{"messages":[` + user("a") + `],"session":{"id":"s"}}`, 400, "/session/id"},
		{`{"messages":[` + user("a") + `],"session":{"format":"openai-chat","window_tokens":1}}`, 422, "/session/window_tokens"},
		{`{"messages":[` + user("a") + `],"session":{"format":"openai-chat","policy":{"trigger":2}}}`, 422, "/session/policy/trigger"},
		{`{"messages":[{"role":"usr"}],"session":{"format":"openai-chat"}}`, 422, "other_format"},
		{`{"messages":[` + user("a") + `],"session":{"format":"openai-chat","model":"gpt-4o","metadata":{"user":"u1"}}}`, 201, `"last_seq":1`},
		{`{"messages":[` + user("b") + `],"session":{"format":"openai-chat","model":"gpt-4o","metadata":{"user":"u2"}}}`, 201, `"last_seq":2`},
		{`{"messages":[` + user("c") + `],"session":{"format":"anthropic"}}`, 409, "format"},
		{`{"messages":[` + user("c") + `],"session":{"model":"gpt-4"}}`, 409, "model"},
		{`{"messages":[` + user("c") + `],"session":{"window_tokens":5000}}`, 409, "window_tokens"},
		{`{"messages":[` + user("c") + `],"session":{"window_tokens":128000}}`, 201, `"last_seq":3`},
		{`{"format":"anthropic","messages":[` + user("d") + `],"session":{"format":"openai-chat"}}`, 201, `"last_seq":4`},
	}
	for _, step := range steps {
		got := w.ask("POST", at+"/messages?return=context", step.body)
		if got.Code != step.status || !strings.Contains(got.Body.String(), step.says) {
			t.Errorf("%s: %d %s, want %d with %s", step.body, got.Code, got.Body, step.status, step.says)
		}
		if there := w.ask("GET", at, "").Code == http.StatusOK; there != (step.status == 201 || step.status == 409) {
			t.Errorf("%s: the session is there: %t", step.body, there)
		}
	}
	for body, want := range map[string]string{
		`{"messages":[` + user("a") + `],"session":{"format":"openai-chat","policy":{"trigger":0.5,"target":0.2}}}`: "policy",
		`{"messages":[` + user("a") + `],"session":{"format":"openai-chat","retention":null}}`:                      "erase",
	} {
		got := w.must(http.StatusForbidden, "POST", "/v1/sessions/t/messages", body, "Authorization", "Bearer "+writes)
		if p := decoded[problem](got); p.Scope != want {
			t.Errorf("%s: the scope %q is missing, want %s", body, p.Scope, want)
		}
	}
	made := decoded[map[string]any](w.must(http.StatusOK, "GET", at, ""))
	if made["metadata"].(map[string]any)["user"] != "u1" || made["window_source"] != "model" {
		t.Errorf("%v", made)
	}
	warned := w.must(http.StatusCreated, "POST", "/v1/sessions/u/messages", `{"messages":[`+user("a")+`],"session":{"format":"openai-chat","model":"gpt-x"}}`)
	if !strings.Contains(warned.Body.String(), `"/session/model"`) {
		t.Errorf("nothing warns of an unknown model: %s", warned.Body)
	}
	var trail struct{ Data []struct{ Action string } }
	w.must(http.StatusOK, "GET", "/v1/audit", "").into(&trail)
	if made := fmt.Sprint(trail.Data); strings.Count(made, "session.create") != 2 {
		t.Errorf("the audit trail has %s, want two new sessions", made)
	}
}

// An append takes its session for what it was when an append read it last: it is one statement, which does nothing when
// the session has become another one.
func TestAnAppendReadsItsSessionAgainWhenItIsAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const at = "/v1/sessions/s"
	said := func(session string) string { return `{"messages":[` + user("a") + `]` + session + `}` }
	mine := said(`,"session":{"format":"openai-chat","model":"gpt-4o"}`)
	w.must(http.StatusCreated, "POST", at+"/messages", mine)
	for _, body := range []string{said(""), mine} {
		fewest := int64(100) // what is counted of use meanwhile takes connections, too
		for range 5 {
			before := w.store.Pool().Stat().AcquireCount()
			w.must(http.StatusCreated, "POST", at+"/messages?return=context", body)
			fewest = min(fewest, w.store.Pool().Stat().AcquireCount()-before)
		}
		if fewest != 1 {
			t.Errorf("%s takes %d connections, one after another", body, fewest)
		}
	}
	w.must(http.StatusOK, "PATCH", at, `{"model":"gpt-4.1"}`)
	w.must(http.StatusConflict, "POST", at+"/messages", mine)
	w.must(http.StatusCreated, "POST", at+"/messages", said(`,"session":{"model":"gpt-4.1"}`))
	w.must(http.StatusNoContent, "DELETE", at, "")
	w.must(http.StatusNotFound, "POST", at+"/messages", said(""))
	w.must(http.StatusCreated, "PUT", at, `{"format":"openai-chat"}`)
	w.must(http.StatusCreated, "POST", at+"/messages", said(""))
	w.must(http.StatusNoContent, "DELETE", at, "")
	w.must(http.StatusCreated, "PUT", at, `{"format":"gemini"}`)
	w.must(http.StatusUnprocessableEntity, "POST", at+"/messages", said(""))
	w.must(http.StatusNoContent, "DELETE", at, "")
	w.must(http.StatusCreated, "PUT", at, `{"format":"anthropic"}`)
	w.must(http.StatusCreated, "POST", at+"/messages", said(""))
	view, _ := parted(w.must(http.StatusCreated, "POST", at+"/messages?return=context", said("")))
	if !strings.Contains(string(view.Context), `"format":"anthropic"`) || view.LastSeq != 2 {
		t.Errorf("seq %d, %s", view.LastSeq, view.Context)
	}
	var log struct{ Data []struct{ Format string } }
	w.must(http.StatusOK, "GET", at+"/messages", "").into(&log)
	if got := fmt.Sprint(log.Data); got != "[{anthropic} {anthropic}]" {
		t.Errorf("the messages are of %s", got)
	}
}

// Callers that make a session at the same time all append to it, and each view has its own message.
func TestManyAppendsMakeOneSessionAndEachReturnsItsMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var all sync.WaitGroup
	for n := range 24 {
		all.Go(func() {
			own := user(fmt.Sprint("message ", n))
			body := `{"messages":[` + own + `],"session":{"format":"openai-chat","model":"gpt-4o"}}`
			got := w.ask("POST", "/v1/sessions/s/messages?return=context", body)
			done, view := parted(got)
			if got.Code != http.StatusCreated || !strings.Contains(view, own) || done.LastSeq < 1 {
				t.Errorf("%d: %s", got.Code, got.Body)
			}
		})
	}
	all.Wait()
	if found := decoded[session.Session](w.must(http.StatusOK, "GET", "/v1/sessions/s", "")); found.LastSeq != 24 {
		t.Errorf("the session has %d messages", found.LastSeq)
	}
}

func TestARepeatedAppendReturnsTheViewOfNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/v1/sessions/s/messages?return=context"
	body := `{"messages":[` + user("a") + `],"client_ids":["a"],"session":{"format":"openai-chat"}}`
	first, _ := parted(w.must(http.StatusCreated, "POST", path, body, "Idempotency-Key", "k"))
	w.must(http.StatusCreated, "POST", path, `{"messages":[`+user("b")+`]}`)
	for status, headers := range map[int][]string{http.StatusCreated: {"Idempotency-Key", "k"}, http.StatusOK: nil} {
		got := w.must(status, "POST", path, body, headers...)
		again, view := parted(got)
		if again.FirstSeq != first.FirstSeq || again.LastSeq != 1 || !strings.Contains(view, user("a")+","+user("b")) {
			t.Errorf("%d %v: %s", status, headers, got.Body)
		}
		if replayed := got.Header().Get("Idempotent-Replayed"); replayed != map[int]string{http.StatusCreated: "true"}[status] {
			t.Errorf("%d: Idempotent-Replayed %q", status, replayed)
		}
	}
	w.must(http.StatusUnprocessableEntity, "POST", path+"&fit=window", body, "Idempotency-Key", "k")
}

// An append stands, and its answer says so, if there is no view of it. What is wrong with the request is known before.
func TestAnAppendStandsWithoutItsView(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/v1/sessions/s/messages"
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat","window_tokens":1000}`)
	large := batch("openai-chat", `{"role":"user","content":[`+picture+","+picture+`]}`)
	for query, code := range map[string]string{"fit=window&wait=0": "window_exceeded", "dialect=bedrock": "format_not_available", "max_tokens=1": "view_cannot_fit"} {
		got := w.must(http.StatusCreated, "POST", path+"?return=context&"+query, large)
		done := decoded[appendedView](got)
		if done.Problem == nil || done.Problem.Code != code || done.Context != nil || done.LastSeq == 0 || got.Header().Get("Etag") != "" {
			t.Errorf("%s: %s", query, got.Body)
		}
	}
	for query, status := range map[string]int{
		"?fit=window": 422, "?return=minimal": 422, "?return=context&view=full": 400, "?return=context&as_of_seq=1": 400,
		"?return=context&wait=1": 422, "?return=context&format=x": 406,
	} {
		w.must(status, "POST", path+query, large)
	}
	got := w.must(http.StatusForbidden, "POST", path+"?return=context", large, "Authorization", "Bearer "+w.newKey(session.SessionsWrite))
	if p := decoded[problem](got); p.Scope != "sessions:read" {
		t.Errorf("%s", got.Body)
	}
	if found := decoded[session.Session](w.must(http.StatusOK, "GET", "/v1/sessions/s", "")); found.LastSeq != 3 {
		t.Errorf("the session has %d messages, want those of the three appends that stand", found.LastSeq)
	}
}

func TestASessionIsAnsweredWithItsPolicyIfThatIsAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, ask := range [][3]string{
		{"POST", "/v1/sessions", `{"id":"%s"}`}, {"PUT", "/v1/sessions/%s", ""}, {"GET", "/v1/sessions/s", ""},
		{"PATCH", "/v1/sessions/s", "{}"}, {"POST", "/v1/sessions/s/fork", `{"id":"f%s"}`},
	} {
		for query, has := range map[string]bool{"": false, "?include=policy": true} {
			id := fmt.Sprint("s", strings.TrimPrefix(query, "?include="))
			if ask[0] != "POST" || ask[1] == "/v1/sessions" {
				w.ask("PUT", "/v1/sessions/s", "")
			}
			path, body := strings.ReplaceAll(ask[1], "%s", id), strings.ReplaceAll(ask[2], "%s", id+ask[0])
			got := w.ask(ask[0], path+query, body)
			_, found := decoded[map[string]any](got)["policy"]
			if got.Code >= 300 || found != has {
				t.Errorf("%s %s: %d, policy %t: %.300s", ask[0], path+query, got.Code, found, got.Body)
			}
		}
		if ask[0] == "GET" {
			w.must(http.StatusUnprocessableEntity, ask[0], ask[1]+"?include=all", "")
		}
	}
}
