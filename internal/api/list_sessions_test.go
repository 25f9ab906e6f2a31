package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestSessionsAreFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/a", `{"metadata":{"user":"u1","app":"x"},"model":"gpt-4o"}`)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/b", `{"metadata":{"user":"u2"},"window_tokens":1000}`)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/c", `{"metadata":{"user":"u1"}}`)
	w.must(http.StatusCreated, "POST", "/v1/sessions/c/messages", batch("openai-chat", user("hello")))
	w.must(http.StatusCreated, "POST", "/v1/sessions/c/fork", `{"id":"d"}`)
	type page struct {
		Data       []struct{ ID string }
		NextCursor *string `json:"next_cursor"`
	}
	ids := func(query string) (found string, next *string) {
		p := decoded[page](w.must(http.StatusOK, "GET", "/v1/sessions?"+query, ""))
		for _, s := range p.Data {
			found += s.ID
		}
		return found, p.NextCursor
	}
	for id, quarantined := range map[string]string{"a": "NULL", "c": "now()"} {
		w.exec(`INSERT INTO session_failures (tenant_id, session_key, run_id, job_id, deaths, error, next_try_at, quarantined_at)
			SELECT tenant_id, key, gen_random_uuid(), 1, 1, 'x', now(), ` + quarantined + ` FROM sessions WHERE id = '` + id + `'`)
	}
	w.exec(`INSERT INTO due_sessions (tenant_id, session_key, level, job_id) SELECT tenant_id, key, 1, 1 FROM sessions WHERE id = 'b'`)
	for query, want := range map[string]string{
		"": "dcba", "due=true": "b", "due=true&failing=true": "",
		"metadata=" + url.QueryEscape(`{"user":"u1"}`):           "dca",
		"metadata=" + url.QueryEscape(`{"user":"u1","app":"x"}`): "a",
		"model=gpt-4o": "a", "format=openai-chat": "dc", "forked_from=c": "d", "min_tokens=1": "dc", "over_window=true": "",
		"failing=true": "ca", "quarantined=true": "c", "failing=true&quarantined=true": "c", "failing=false": "dcba",
		"updated_after=2001-01-31T12:00:00Z": "dc", "policy_version_below=1": "",
		"metadata=" + url.QueryEscape(`{"user":"u1"}`) + "&format=openai-chat": "dc",
	} {
		if got, next := ids(query); got != want || next != nil {
			t.Errorf("%s finds %q, not %q, and goes on at %v", query, got, want, next)
		}
		if got := w.exported(query); got != backwards(want) {
			t.Errorf("the export with %s has %q, not %q", query, got, backwards(want))
		}
	}
	users := "metadata=" + url.QueryEscape(`{"user":"u1"}`)
	first, next := ids(users + "&limit=2")
	if first != "dc" || next == nil {
		t.Fatalf("the first page is %q, %v", first, next)
	}
	if rest, end := ids(users + "&limit=2&cursor=" + *next); rest != "a" || end != nil {
		t.Errorf("the second page is %q, %v", rest, end)
	}
	w.must(http.StatusBadRequest, "GET", "/v1/sessions?cursor="+*next, "") // it is of another search
	for _, wrong := range []string{"metadata=user", "metadata=1", "metadata=" + url.QueryEscape(`{"a":1}`), "format=x", "model=",
		"over_window=yes", "min_tokens=0", "updated_after=now"} {
		w.must(http.StatusUnprocessableEntity, "GET", "/v1/sessions?"+wrong, "")
		w.must(http.StatusUnprocessableEntity, "GET", "/v1/export?"+wrong, "")
	}
	_, stranger := w.newTenant("stranger")
	if p := decoded[page](w.must(http.StatusOK, "GET", "/v1/sessions?"+users, "", "Authorization", "Bearer "+stranger)); len(p.Data) != 0 {
		t.Errorf("another tenant finds %v", p.Data)
	}
	for i := range 250 { // more than an export looks at in one page
		w.must(http.StatusCreated, "PUT", fmt.Sprintf("/v1/sessions/more-%d", i), "")
	}
	w.must(http.StatusCreated, "PUT", "/v1/sessions/e", `{"model":"gpt-4o"}`)
	if got := w.exported("model=gpt-4o"); got != "ae" {
		t.Errorf("behind 250 others the export has %q", got)
	}
}

// exported returns the ids of the sessions that an export with a query has.
func (w *world) exported(query string) (ids string) {
	w.Helper()
	text, _ := w.export("/v1/export?" + query)
	for line := range strings.Lines(text) {
		if id, isSession := strings.CutPrefix(line, `{"session":{"id":"`); isSession {
			ids += id[:strings.IndexByte(id, '"')]
		}
	}
	return ids
}

func backwards(text string) string {
	letters := []byte(text)
	slices.Reverse(letters)
	return string(letters)
}
