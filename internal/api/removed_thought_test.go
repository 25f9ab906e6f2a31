package api_test

import (
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
