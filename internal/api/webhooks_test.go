package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

func TestAWebhooksSecretIsShownOnceAndTheAPICannotReadIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := decoded[protocol.NewWebhook](w.must(http.StatusCreated, "POST", "/v1/webhooks", `{"url":"https://hooks.example/a?token=hidden","name":"ops"}`))
	path := "/v1/webhooks/" + made.ID.String()
	again := decoded[protocol.NewWebhook](w.must(http.StatusCreated, "POST", path+"/rotate", `{"overlap_seconds":60}`))
	if made.Secret == again.Secret || !strings.HasPrefix(again.Secret, "whsec_") {
		t.Errorf("secrets %q and %q", made.Secret, again.Secret)
	}
	seen := w.must(http.StatusOK, "GET", path, "").Body.String() + w.must(http.StatusOK, "GET", "/v1/webhooks", "").Body.String()
	if strings.Contains(seen, "whsec_") {
		t.Errorf("a secret is in %s", seen)
	}
	if trail := w.must(http.StatusOK, "GET", "/v1/audit?object="+made.ID.String(), "").Body.String(); strings.Contains(trail, "hidden") ||
		!strings.Contains(trail, "hooks.example") || !strings.Contains(trail, "webhook.rotate") {
		t.Errorf("the trail has %s", trail)
	}
	if n := w.count(`SELECT count(*) FROM webhook_secrets`); n != 2 {
		t.Errorf("%d secrets", n)
	}
	if _, err := w.store.Pool().Exec(t.Context(), `SELECT secret FROM webhook_secrets`); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("the login of the API reads secrets: %v", err)
	}
	changed := decoded[session.Webhook](w.must(http.StatusOK, "PATCH", path, `{"types":["session.compacted"],"name":""}`))
	if len(changed.Types) != 1 || changed.Name != "" || changed.URL != made.URL {
		t.Errorf("changed: %+v", changed)
	}
	_, other := w.newTenant("other")
	for _, route := range []string{"GET " + path, "DELETE " + path, "POST " + path + "/test", "POST " + path + "/enable", "POST " + path + "/rotate"} {
		method, at, _ := strings.Cut(route, " ")
		w.must(http.StatusNotFound, method, at, "", "Authorization", "Bearer "+other)
	}
	w.must(http.StatusNoContent, "DELETE", path, "")
	w.must(http.StatusNotFound, "GET", path, "")
	if n := w.count(`SELECT (SELECT count(*) FROM webhook_secrets) + (SELECT count(*) FROM webhook_turns)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestAWebhookNeedsAURLThatCanBeSentTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for body, advice := range map[string]string{
		`{}`:                                  "is missing",
		`{"url":"ftp://hooks.example"}`:       "https URL",
		`{"url":"hooks.example"}`:             "https URL",
		`{"url":"https://u:p@hooks.example"}`: "no user",
		`{"url":"https://hooks.example","types":["session.dead"]}`: "there are session.due",
	} {
		if got := w.must(http.StatusUnprocessableEntity, "POST", "/v1/webhooks", body); !strings.Contains(got.Body.String(), advice) {
			t.Errorf("%s: %s", body, got.Body)
		}
	}
}
