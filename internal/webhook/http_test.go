package webhook_test

import (
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/webhook"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

const body = `{"url":"https://hooks.example/varve"}`

func TestAWebhooksSecretIsShownOnceAndTheAPICannotReadIt(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, webhook.Feature())
	made := apitest.Decoded[webhook.Created](w, w.Must(http.StatusCreated, "POST", "/v1/webhooks", `{"url":"https://hooks.example/a?token=hidden","name":"ops"}`))
	path := "/v1/webhooks/" + made.ID.String()
	again := apitest.Decoded[webhook.Created](w, w.Must(http.StatusCreated, "POST", path+"/rotate", `{"overlap_seconds":60}`))
	if made.Secret == again.Secret || !strings.HasPrefix(again.Secret, "whsec_") {
		t.Errorf("secrets %q and %q", made.Secret, again.Secret)
	}
	seen := w.Must(http.StatusOK, "GET", path, "") + w.Must(http.StatusOK, "GET", "/v1/webhooks", "")
	if strings.Contains(seen, "whsec_") {
		t.Errorf("a secret is in %s", seen)
	}
	if trail := w.Must(http.StatusOK, "GET", "/v1/audit?object="+made.ID.String(), ""); strings.Contains(trail, "hidden") ||
		!strings.Contains(trail, "hooks.example") || !strings.Contains(trail, "webhook.rotate") {
		t.Errorf("the trail has %s", trail)
	}
	if n := w.Count(`SELECT count(*) FROM webhook_secrets`); n != 2 {
		t.Errorf("%d secrets", n)
	}
	if _, err := w.Store.Pool().Exec(t.Context(), `SELECT secret FROM webhook_secrets`); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("the login of the API reads secrets: %v", err)
	}
	changed := apitest.Decoded[webhook.Webhook](w, w.Must(http.StatusOK, "PATCH", path, `{"types":["session.compacted"],"name":""}`))
	if len(changed.Types) != 1 || changed.Name != "" || changed.URL != made.URL {
		t.Errorf("changed: %+v", changed)
	}
	_, other := w.NewTenant("other")
	for _, route := range []string{"GET " + path, "GET " + path + "/deliveries", "DELETE " + path, "POST " + path + "/test", "POST " + path + "/enable", "POST " + path + "/rotate"} {
		method, at, _ := strings.Cut(route, " ")
		w.Must(http.StatusNotFound, method, at, "", "Authorization", "Bearer "+other)
	}
	w.Must(http.StatusNoContent, "DELETE", path, "")
	w.Must(http.StatusNotFound, "GET", path, "")
	if n := w.Count(`SELECT (SELECT count(*) FROM webhook_secrets) + (SELECT count(*) FROM webhook_turns)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestAWebhookNeedsAURLThatCanBeSentTo(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, webhook.Feature())
	for body, advice := range map[string]string{
		`{}`:                                  "is missing",
		`{"url":"ftp://hooks.example"}`:       "https URL",
		`{"url":"hooks.example"}`:             "https URL",
		`{"url":"https://u:p@hooks.example"}`: "no user",
		`{"url":"https://hooks.example","types":["session.dead"]}`: "there are session.due",
		`{"url":"https://hooks.example","name":"a\nb"}`:            "control a terminal",
	} {
		if got := w.Must(http.StatusUnprocessableEntity, "POST", "/v1/webhooks", body); !strings.Contains(got, advice) {
			t.Errorf("%s: %s", body, got)
		}
	}
}

// TestTheErrorsOfWebhooksSayWhatToDo asks for each code of the feature.
func TestTheErrorsOfWebhooksSayWhatToDo(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, webhook.Feature())
	made := apitest.Decoded[webhook.Created](w, w.Must(http.StatusCreated, "POST", "/v1/webhooks", body))
	w.Exec(`UPDATE webhooks SET disabled_at = now()`)
	if said := w.Refused("webhook_disabled", "POST", "/v1/webhooks/"+made.ID.String()+"/test", ""); !strings.Contains(said, "/enable") {
		t.Error(said)
	}
	for range webhook.MaxWebhooks - 1 {
		w.Must(http.StatusCreated, "POST", "/v1/webhooks", body)
	}
	if said := w.Refused("too_many_webhooks", "POST", "/v1/webhooks", body); !strings.Contains(said, "delete one") {
		t.Error(said)
	}
}

// TestManyRequestsAtOnceKeepToTheLimit makes webhooks at the same time, of which a few have room.
func TestManyRequestsAtOnceKeepToTheLimit(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, webhook.Feature())
	const room = 3
	for range webhook.MaxWebhooks - room {
		w.Must(http.StatusCreated, "POST", "/v1/webhooks", body)
	}
	var made atomic.Int32
	var group sync.WaitGroup
	for range 4 * room {
		group.Go(func() {
			if w.Ask("POST", "/v1/webhooks", body).Code == http.StatusCreated {
				made.Add(1)
			}
		})
	}
	if group.Wait(); made.Load() != room {
		t.Errorf("%d were made where %d have room", made.Load(), room)
	}
}

// TestEachChangeOfAWebhookIsAudited does what the examples of the description cannot show.
func TestEachChangeOfAWebhookIsAudited(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, webhook.Feature())
	made := apitest.Decoded[webhook.Created](w, w.Must(http.StatusCreated, "POST", "/v1/webhooks", body))
	path := "/v1/webhooks/" + made.ID.String()
	w.Exec(`UPDATE webhooks SET disabled_at = now(), disabled_reason = 'it was dead'`)
	for range 2 { // the second changes nothing
		w.Must(http.StatusOK, "POST", path+"/enable", "")
	}
	if n := w.Count(`SELECT count(*) FROM audit_trail WHERE tenant_id = $1 AND action = 'webhook.enable' AND object_id = $2`, w.Tenant, made.ID.String()); n != 1 {
		t.Errorf("%d rows of the trail say that the webhook was enabled", n)
	}
}
