package api_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// quotas gives the tenant quotas of its own, as the operator does.
// The headers are sent as the draft spells them, which is not Go's canonical form.
var rateLimit, rateLimitPolicy = "RateLimit", "RateLimit-Policy"

func (w *world) quotas(own string) {
	w.Helper()
	w.exec(`UPDATE tenants SET limits = '` + own + `' WHERE id = '` + w.tenant.String() + `'`)
}

func TestRequestsAreHeldToTheirQuota(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.quotas(`{"requests_per_second":0.001,"request_burst":3}`)
	for left := 2; left >= 0; left-- {
		h := w.must(http.StatusOK, "GET", "/v1/sessions", "").Header()
		if h[rateLimitPolicy][0] != `"requests";q=3;w=3000` || !strings.HasPrefix(h[rateLimit][0], `"requests";r=`+string(rune('0'+left))+`;t=`) {
			t.Errorf("%v", h)
		}
	}
	a := w.must(http.StatusTooManyRequests, "GET", "/v1/sessions", "")
	if p := decoded[problem](a); p.Code != "rate_limited" || !strings.Contains(p.Detail, "requests_per_second is 0.001") {
		t.Errorf("%s", a.Body)
	}
	if after := a.Header().Get("Retry-After"); len(after) < 3 {
		t.Errorf("Retry-After is %s for a quota of one request in 1,000 s", after)
	}
	other := *w
	other.tenant, other.key = w.newTenant("other")
	if h := other.must(http.StatusOK, "GET", "/v1/sessions", "").Header(); h[rateLimit] != nil {
		t.Errorf("a tenant without quotas got %v", h)
	}
}

func TestBytesAreHeldToTheirQuota(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.quotas(`{"bytes_per_day":2000,"sessions":1}`)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat"}`)
	body := batch("openai-chat", user(strings.Repeat("x", 1200)))
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", body)
	if p := decoded[problem](w.must(http.StatusTooManyRequests, "POST", "/v1/sessions/s/messages", body)); p.Code != "quota_exceeded" {
		t.Errorf("%+v", p)
	}
	w.server.ReadQuotas(w.tenant)
	w.must(http.StatusTooManyRequests, "PUT", "/v1/sessions/another", "")
	w.must(http.StatusOK, "PUT", "/v1/sessions/s", "")
	got := decoded[protocol.Limits](w.must(http.StatusOK, "GET", "/v1/limits", ""))
	if got.Quotas.Sessions != 1 || got.Used.Sessions != 1 || got.Used.BytesLeft < 1999 || got.Limits["page"] != 100 {
		t.Errorf("%+v", got)
	}
}

func TestATenantSeesItsBudgetOfModelsAndWhatOfItIsUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server = api.New(api.Config{Store: w.store, Quotas: session.Quotas{ModelCalls: 9, ModelCost: 2.5}})
	limits := func() protocol.Limits {
		return decoded[protocol.Limits](w.must(http.StatusOK, "GET", "/v1/limits", ""))
	}
	if got := limits(); got.Quotas.ModelCalls != 9 || got.Quotas.ModelCost != 2.5 || got.Used.Models == nil || len(got.Used.Models) != 0 {
		t.Errorf("before any call: %+v, %+v", got.Quotas, got.Used)
	}
	w.exec(`
		INSERT INTO model_spending
		VALUES ('` + w.tenant.String() + `', (now() AT TIME ZONE 'UTC')::date, 'haiku', 1, 20, 3, 40)`)
	want := session.ModelSpent{Model: "haiku", ModelSpending: session.ModelSpending{Calls: 1, Input: 20, Output: 3, CostMicros: 40}}
	if got := limits().Used.Models; len(got) != 1 || got[0] != want {
		t.Errorf("used %+v", got)
	}
}

func TestImportsAtOnceAreHeldToTheirQuota(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.quotas(`{"concurrent_imports":1}`)
	lines, send := io.Pipe()
	first := make(chan int, 1)
	go func() { first <- w.stream("POST", "/v1/imports", lines).Code }()
	if _, err := io.WriteString(send, `{"session":{"id":"imported"}}`+"\n"); err != nil { // the first one reads now
		t.Fatal(err)
	}
	a := w.must(http.StatusTooManyRequests, "POST", "/v1/imports", `{"session":{"id":"another"}}`)
	if p := decoded[problem](a); p.Code != "quota_exceeded" {
		t.Errorf("%s", a.Body)
	}
	if err := send.Close(); err != nil {
		t.Fatal(err)
	}
	if status := <-first; status != http.StatusCreated {
		t.Errorf("the first import got %d", status)
	}
	w.must(http.StatusCreated, "POST", "/v1/imports", `{"session":{"id":"another"}}`)
}

// stream sends a request whose body arrives as it is written.
func (w *world) stream(method, path string, body io.Reader) answer {
	w.Helper()
	r := httptest.NewRequestWithContext(w.Context(), method, path, body)
	r.Header.Set("Authorization", "Bearer "+w.key)
	got := httptest.NewRecorder()
	w.server.ServeHTTP(got, r)
	return answer{w.TB, got}
}
