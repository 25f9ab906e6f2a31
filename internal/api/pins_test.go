package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// pinned makes a session with a standing instruction, a call and its result.
func pinned(t *testing.T) *world {
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat"}`)
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat",
		user("Please look at it. Never push to main without asking me first."),
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"Read","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"c","content":"the port is 5433"}`))
	return w
}

func TestAPinIsPutListedAndDeleted(t *testing.T) {
	t.Parallel()
	w := pinned(t)
	for ref, text := range map[string]string{
		"m1":   "Please look at it. Never push to main without asking me first.",
		"m3.0": "the port is 5433",
	} {
		got := decoded[session.Pin](w.must(http.StatusOK, "PUT", "/v1/sessions/s/pins/"+ref, `{"note":"a rule"}`))
		if got.Ref != ref || got.Text != text || got.Tokens == 0 || got.Note != "a rule" {
			t.Errorf("%s: %+v", ref, got)
		}
	}
	w.must(http.StatusOK, "PUT", "/v1/sessions/s/pins/m1", "") // again
	all := decoded[protocol.Pins](w.must(http.StatusOK, "GET", "/v1/sessions/s/pins", ""))
	if len(all.Data) != 2 || all.Data[0].Ref != "m1" || all.Data[0].Part != nil || *all.Data[1].Part != 0 {
		t.Errorf("%+v", all)
	}
	w.must(http.StatusNoContent, "DELETE", "/v1/sessions/s/pins/m1", "")
	w.must(http.StatusNotFound, "DELETE", "/v1/sessions/s/pins/m1", "")
	other := *w
	other.tenant, other.key = w.newTenant("other")
	other.must(http.StatusNotFound, "GET", "/v1/sessions/s/pins", "")
}

func TestWhatCannotBePinned(t *testing.T) {
	t.Parallel()
	w := pinned(t)
	for _, ref := range []string{"m9", "m1.7", "r3.0-0000", "u1-9f3a", "m1-3", "x", "m0"} {
		w.must(http.StatusNotFound, "PUT", "/v1/sessions/s/pins/"+ref, "")
	}
	w.must(http.StatusBadRequest, "PUT", "/v1/sessions/s/pins/m1", `{"nota":"x"}`)
	w.must(http.StatusOK, "PATCH", "/v1/sessions/s/policy", `{"pins":{"max_tokens":5}}`)
	got := w.must(http.StatusUnprocessableEntity, "PUT", "/v1/sessions/s/pins/m1", "")
	if !strings.Contains(got.Body.String(), "pins.max_tokens is 5") {
		t.Errorf("%s", got.Body)
	}
}

func TestTheUsersStandingInstructionsAreCandidates(t *testing.T) {
	t.Parallel()
	w := pinned(t)
	page := decoded[protocol.PinCandidates](w.must(http.StatusOK, "GET", "/v1/sessions/s/pins/candidates", ""))
	if len(page.Data) != 1 || page.Data[0].Ref != "m1.0" || page.Data[0].Text != "Never push to main without asking me first." {
		t.Fatalf("%+v", page)
	}
	w.must(http.StatusOK, "PUT", "/v1/sessions/s/pins/"+page.Data[0].Ref, "")
}

// TestCandidatesOfALongLogAreReadInPages: a page of large messages ends early, and says where the next one begins.
func TestCandidatesOfALongLogAreReadInPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	for n := range 7 {
		text := fmt.Sprintf("Never touch file %d. %s", n, strings.Repeat("Some words. ", 30_000))
		w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user(text)))
	}
	var found []string
	pages, from := 0, int64(1)
	for more := true; more; pages++ {
		page := decoded[protocol.PinCandidates](w.must(http.StatusOK, "GET", fmt.Sprintf("/v1/sessions/s/pins/candidates?from_seq=%d", from), ""))
		for _, c := range page.Data {
			found = append(found, c.Ref+" "+c.Text)
		}
		if more = page.HasMore; more {
			from = *page.NextSeq
		}
	}
	want := []string{}
	for n := range 7 {
		want = append(want, fmt.Sprintf("m%d.0 Never touch file %d.", n+1, n))
	}
	if !slices.Equal(found, want) || pages < 3 {
		t.Errorf("%d pages: %q", pages, found)
	}
}

// pinOneTooMany pins a message of a session that has all pins that it may.
func (w *world) pinOneTooMany() answer {
	w.Helper()
	w.exec(`INSERT INTO session_pins (tenant_id, session_key, ref, seq, part, text, tokens)
	        SELECT tenant_id, key, 'm1.' || n, 1, n, 'x', 1 FROM sessions, generate_series(1, 200) n WHERE id = 's'`)
	return w.ask("PUT", "/v1/sessions/s/pins/m1", "")
}
