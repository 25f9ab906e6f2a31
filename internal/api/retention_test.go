package api_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/session"
)

// TestASessionSaysWhenItExpires sets the retention of the tenant and of sessions, and reads what it comes to.
func TestASessionSaysWhenItExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	type told struct {
		CreatedAt    time.Time          `json:"created_at"`
		LastAppendAt *time.Time         `json:"last_append_at"`
		ExpiresAt    *time.Time         `json:"expires_at"`
		Retention    *session.Retention `json:"retention"`
	}
	read := func(id string) told {
		t.Helper()
		return decoded[told](w.must(http.StatusOK, "GET", "/v1/sessions/"+id, ""))
	}
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	if s := read("s"); s.ExpiresAt != nil || s.Retention != nil {
		t.Errorf("without a retention: %+v", s)
	}
	w.must(http.StatusOK, "PUT", "/v1/retention", `{"idle_seconds":7200,"max_age_seconds":86400}`)
	if s := read("s"); s.ExpiresAt == nil || !s.ExpiresAt.Equal(s.CreatedAt.Add(2*time.Hour)) {
		t.Errorf("before the first append: %+v", s)
	}
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", `{"format":"openai-chat","messages":[{"role":"user","content":"hi"}]}`)
	if s := read("s"); !s.ExpiresAt.Equal(s.LastAppendAt.Add(2 * time.Hour)) {
		t.Errorf("after an append: %+v", s)
	}
	w.must(http.StatusOK, "PATCH", "/v1/sessions/s", `{"retention":{"max_age_seconds":3600}}`)
	if s := read("s"); s.Retention == nil || !s.ExpiresAt.Equal(s.CreatedAt.Add(time.Hour)) {
		t.Errorf("with its own: %+v", s)
	}
	w.must(http.StatusOK, "PATCH", "/v1/sessions/s", `{"retention":{}}`)
	if s := read("s"); s.Retention == nil || s.ExpiresAt != nil {
		t.Errorf("for ever: %+v", s)
	}
	w.must(http.StatusOK, "PATCH", "/v1/sessions/s", `{"retention":null}`)
	if s := read("s"); s.Retention != nil || s.ExpiresAt == nil {
		t.Errorf("with the tenant's again: %+v", s)
	}
	w.must(http.StatusCreated, "POST", "/v1/sessions", `{"id":"own","retention":{"idle_seconds":3600}}`)
	if s := read("own"); !s.ExpiresAt.Equal(s.CreatedAt.Add(time.Hour)) {
		t.Errorf("made with its own: %+v", s)
	}
	if rows := w.trail("action=retention.change"); len(rows) != 1 || string(rows[0].After) != `{"idle_seconds":7200,"max_age_seconds":86400,"then":"erase","archive_max_age_seconds":null}` {
		t.Errorf("the trail has %+v", rows)
	}
	if rows := w.trail("action=session.change"); len(rows) != 3 {
		t.Errorf("the trail has %+v", rows)
	}
	other := *w
	other.tenant, other.key = w.newTenant("other")
	if found := decoded[session.Retention](other.must(http.StatusOK, "GET", "/v1/retention", "")); found != (session.Retention{Then: session.ThenErase}) {
		t.Errorf("another tenant has %+v", found)
	}
}

// TestARetentionIsRefused names each fault, and a key that may not erase.
func TestARetentionIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	for _, body := range []string{`[]`, `{"idle_seconds":60}`, `{"max_age_seconds":"1 day"}`} {
		w.must(http.StatusUnprocessableEntity, "PUT", "/v1/retention", body)
		w.must(http.StatusUnprocessableEntity, "PATCH", "/v1/sessions/s", `{"retention":`+body+`}`)
	}
	w.must(http.StatusUnprocessableEntity, "GET", "/v1/retention/preview?idle_seconds=1", "")
	key := decoded[struct{ Key string }](w.must(http.StatusCreated, "POST", "/v1/keys", `{"name":"writes","scopes":["sessions:write","sessions:read"]}`)).Key
	w.must(http.StatusForbidden, "PATCH", "/v1/sessions/s", `{"retention":{"idle_seconds":3600}}`, "Authorization", "Bearer "+key)
	w.must(http.StatusForbidden, "POST", "/v1/sessions", `{"retention":{}}`, "Authorization", "Bearer "+key)
}
