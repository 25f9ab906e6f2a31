package api_test

import (
	"net/http"
	"strings"
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

// TestATenantAsksForNoMoreThanItsOperatorLeaves has retentions of before held to a bound, and longer ones refused.
func TestATenantAsksForNoMoreThanItsOperatorLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusOK, "PUT", "/v1/retention", `{"max_age_seconds":86400}`)
	w.must(http.StatusCreated, "POST", "/v1/sessions", `{"id":"own","retention":{}}`)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	bound := func(body string) session.TenantDetails {
		t.Helper()
		return decoded[session.TenantDetails](w.must(http.StatusOK, "PATCH", "/v1/admin/tenants/"+w.tenant.String(), `{"retention_at_most":`+body+`}`))
	}
	expires := func(id string, after time.Duration) {
		t.Helper()
		s := decoded[struct {
			CreatedAt time.Time  `json:"created_at"`
			ExpiresAt *time.Time `json:"expires_at"`
		}](w.must(http.StatusOK, "GET", "/v1/sessions/"+id, ""))
		if after == 0 && s.ExpiresAt != nil || after != 0 && (s.ExpiresAt == nil || !s.ExpiresAt.Equal(s.CreatedAt.Add(after))) {
			t.Errorf("%s expires at %v, created at %v", id, s.ExpiresAt, s.CreatedAt)
		}
	}
	expires("own", 0)
	if got := bound(`{"max_age_seconds":7200}`); got.MostKept.AgeSeconds == nil || *got.MostKept.AgeSeconds != 7200 {
		t.Errorf("the tenant says %+v", got.MostKept)
	}
	bound(`{"max_age_seconds":7200}`)
	expires("own", 2*time.Hour)
	expires("s", 2*time.Hour)
	for path, pointer := range map[string]string{"/v1/retention": "/max_age_seconds", "/v1/sessions/s": "/retention/max_age_seconds"} {
		method, body := "PUT", `{"max_age_seconds":7201}`
		if path != "/v1/retention" {
			method, body = "PATCH", `{"retention":`+body+`}`
		}
		refused := w.must(http.StatusUnprocessableEntity, method, path, body)
		if !strings.Contains(refused.Body.String(), pointer) || !strings.Contains(refused.Body.String(), "at most 7200") {
			t.Errorf("%s: %s", path, refused.Body.String())
		}
	}
	w.must(http.StatusUnprocessableEntity, "POST", "/v1/sessions", `{"id":"new","retention":{"max_age_seconds":7201}}`)
	w.must(http.StatusOK, "PATCH", "/v1/sessions/s", `{"retention":{"max_age_seconds":7200,"idle_seconds":7201}}`)
	set := decoded[session.TenantRetention](w.must(http.StatusOK, "PUT", "/v1/retention", `{}`))
	if set.AgeSeconds != nil || set.AtMost.AgeSeconds == nil || *set.AtMost.AgeSeconds != 7200 {
		t.Errorf("the retention is %+v", set)
	}
	if rows := w.trail("action=retention.bound"); len(rows) != 1 || string(rows[0].After) != `{"idle_seconds":null,"max_age_seconds":7200}` {
		t.Errorf("the trail has %+v", rows)
	}
	bound(`{}`)
	expires("own", 0)
	for _, wrong := range []string{`null`, `{"idle_seconds":60}`, `{"max_age_seconds":"1 day"}`} {
		w.must(http.StatusUnprocessableEntity, "PATCH", "/v1/admin/tenants/"+w.tenant.String(), `{"retention_at_most":`+wrong+`}`)
	}
	made := w.provision(`{"name":"bounded","retention_at_most":{"idle_seconds":3600}}`)
	if made.MostKept.IdleSeconds == nil {
		t.Errorf("made with %+v", made.MostKept)
	}
}
