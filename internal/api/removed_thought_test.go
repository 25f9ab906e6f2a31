package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

// TestACallWhoseThoughtIsRemovedHasNoID removes the reasoning of a turn of Responses, whose calls the API then refuses
// by their ids.
func TestACallWhoseThoughtIsRemovedHasNoID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"model":"gpt-5.6"}`)
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-responses", `{"role":"user","content":"u"}`,
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}`, `{"type":"function_call","id":"fc_1","call_id":"a","name":"f","arguments":"{}"}`,
		`{"type":"function_call","id":"fc_2","call_id":"b","name":"f","arguments":"{}"}`, `{"type":"function_call_output","call_id":"a","output":"r"}`,
		`{"type":"function_call_output","call_id":"b","output":"r"}`, `{"role":"user","content":"u"}`))
	context := func() string { return w.must(http.StatusOK, "GET", "/v1/sessions/s/context", "").Body.String() }
	if before := context(); strings.Count(before, `"fc_`) != 2 {
		t.Fatalf("the calls have lost their ids: %s", before)
	}
	if _, _, err := w.store.Remove(t.Context(), session.Address{Tenant: w.tenant, ID: "s"}, 2, nil); err != nil {
		t.Fatal(err)
	}
	if after := context(); strings.Contains(after, `"fc_`) || strings.Count(after, `"item_id_dropped"`) != 2 || strings.Count(after, `"call_id":"b"`) != 2 {
		t.Errorf("the calls have ids of a turn whose reasoning is gone: %s", after)
	}
}

// TestACallWhoseThoughtIsRemovedHasNoIDInAnyView reads a session whose first turn has lost its thought, with turns
// behind it: bounded, fitted, from the end of its log, and compacted.
func TestACallWhoseThoughtIsRemovedHasNoIDInAnyView(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/v1/sessions/s"
	w.must(http.StatusCreated, "PUT", path, `{"model":"gpt-5.6","window_tokens":1000000,"policy":{"auto":false,"target":0.8}}`)
	turn := func(n, words int) []string {
		id := fmt.Sprint(n)
		return []string{user(prose(n, words)), `{"type":"reasoning","id":"rs_` + id + `","summary":[],"encrypted_content":"e"}`,
			`{"type":"web_search_call","id":"ws_` + id + `","status":"completed","action":{"type":"search","query":"q"}}`,
			`{"type":"computer_call","id":"cu_` + id + `","call_id":"d` + id + `","status":"completed","pending_safety_checks":[],"action":{"type":"wait"}}`,
			`{"type":"function_call","id":"fc_` + id + `","call_id":"c` + id + `","name":"f","arguments":"{}"}`,
			`{"type":"computer_call_output","call_id":"d` + id + `","output":{"type":"computer_screenshot","file_id":"file_1"}}`,
			`{"type":"function_call_output","call_id":"c` + id + `","output":` + literalOf(prose(n, words)) + `}`,
			`{"type":"message","id":"msg_` + id + `","role":"assistant","content":"so"}`}
	}
	log := append(append(turn(1, 2000), turn(2, 100)...), turn(3, 100)...)
	w.must(http.StatusCreated, "POST", path+"/messages", batch("openai-responses", log...))
	if _, _, err := w.store.Remove(t.Context(), session.Address{Tenant: w.tenant, ID: "s"}, 10, nil); err != nil {
		t.Fatal(err)
	}
	holds := func(what, query string) {
		t.Helper()
		v := w.read(path, session.OpenAIResponses, query)
		got := string(bytes.Join(v.bodies(), nil))
		if strings.Contains(got, `"fc_2"`) || strings.Contains(got, `"id":"ws_2"`) || strings.Contains(got, `"id":"cu_2"`) ||
			!strings.Contains(got, `"id":"cu_3"`) || !strings.Contains(got, `"call_id":"c2"`) || !strings.Contains(got, `"fc_3"`) || !strings.Contains(got, `"msg_2"`) {
			t.Errorf("%s: the calls have other ids than their thoughts allow: %s", what, got)
		}
	}
	holds("whole", "")
	tokens := w.read(path, session.OpenAIResponses, "").Tokens
	for _, bound := range []int64{tokens - 1, tokens / 2} {
		holds("bounded", fmt.Sprintf("max_tokens=%d", bound))
		holds("fitted", fmt.Sprintf("fit=window&max_tokens=%d", bound))
	}
	w.must(http.StatusOK, "PATCH", path, `{"window_tokens":10000,"policy":{"target":0.6}}`)
	w.work()
	w.must(http.StatusOK, "POST", path+"/compact?wait=20", "")
	w.must(http.StatusOK, "PATCH", path, `{"window_tokens":1000000}`)
	if v := w.read(path, session.OpenAIResponses, ""); v.Checkpoint == 0 {
		t.Fatal("nothing was compacted")
	}
	holds("compacted", "")
}
