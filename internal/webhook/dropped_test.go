package webhook_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/webhook"
)

// makeOlder ends the time of the events up to a number.
func (w *world) makeOlder(n int64) {
	w.Helper()
	w.Exec(`UPDATE events SET at = at - $3::interval WHERE tenant_id = $1 AND n <= $2`, w.Tenant, n, session.EventRetention+time.Minute)
}

func (w *world) prune() {
	w.Helper()
	if err := webhook.Prune(w.Context(), w.Workers, w.Tenant); err != nil {
		w.Fatal(err)
	}
}

// next requires that a webhook gets this number of events next.
func (w *world) next(id uuid.UUID, want int) {
	w.Helper()
	if n, err := webhook.Next(w.Context(), w.Workers, w.Tenant, id); err != nil || n != want {
		w.Fatalf("%d deliveries instead of %d, %v", n, want, err)
	}
}

// make makes a webhook that gets these types.
func (w *world) make(types string) uuid.UUID {
	w.Helper()
	made := w.Must(http.StatusCreated, "POST", "/v1/webhooks", `{"url":"https://hooks.example","types":[`+types+`]}`)
	return apitest.Decoded[webhook.Created](w, made).ID
}

// A webhook that could not get an event before its time was over says so. What an erased session told is not sent.
func TestWhatIsNotDeliveredInTimeIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.make("")
	w.Must(http.StatusCreated, "PUT", "/v1/sessions/other", "")
	w.tell("chat", 1)
	w.tell("other", 1)
	w.next(id, 2)
	w.Must(http.StatusNoContent, "DELETE", "/v1/sessions/other", "")
	w.makeOlder(2)
	w.prune()
	if found := w.readWebhook(id); found.Pending != 0 || found.Dropped != 1 {
		t.Errorf("%+v", found)
	}
}

// Events of which no delivery was written are counted, too, each once, and those that the webhook does not want are not.
func TestWhatWasNeverLookedAtIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dropped := func(id uuid.UUID) int64 {
		found := w.readWebhook(id)
		if found.Pending != 0 {
			t.Fatalf("%+v", found)
		}
		return found.Dropped
	}
	all, due, own := w.make(""), w.make(`"session.due"`), w.make(`"budget.spent"`)
	for _, topic := range []string{"a", "b", "c"} {
		w.tell(topic, 1)
	}
	w.Must(http.StatusAccepted, "POST", "/v1/webhooks/"+own.String()+"/test", "")
	w.makeOlder(4)
	w.tell("young", 1)
	for range 2 {
		w.prune()
		if all, due, own := dropped(all), dropped(due), dropped(own); all != 3 || due != 3 || own != 1 {
			t.Errorf("%d of all, %d of those that are due, %d of its own were dropped", all, due, own)
		}
	}
	w.next(all, 1)
}
