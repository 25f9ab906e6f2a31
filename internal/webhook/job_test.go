package webhook_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/webhook"
)

// allowed is the only private address that the webhooks of these tests may be at. Others of this machine are refused.
const allowed = "127.0.0.2"

type world struct{ *apitest.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{apitest.New(t, webhook.Waiting(time.Second))}
}

// receiver is a server that gets events, at an address of this machine.
type receiver struct {
	*world
	server  *httptest.Server
	secrets []string
	answer  func(w http.ResponseWriter, r *http.Request, e session.Event) // nil: 204

	mu   sync.Mutex
	got  []session.Event // of which the signature was right
	seen int             // requests
}

func (w *world) receiver(address string) *receiver {
	w.Helper()
	listener, err := net.Listen("tcp", address+":0")
	if err != nil {
		w.Fatal(err)
	}
	r := &receiver{world: w}
	r.server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: r}}
	r.server.Start()
	w.Cleanup(r.server.Close)
	return r
}

// ServeHTTP checks the signature as the Standard Webhooks' own library does.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen++
	for _, secret := range r.secrets {
		check, err := standard.NewWebhook(secret)
		if err == nil {
			err = check.Verify(body, req.Header)
		}
		if err != nil {
			r.Errorf("the signature of %s: %v", body, err)
		}
	}
	var e session.Event
	if err := json.Unmarshal(body, &e); err != nil || req.Header.Get("Webhook-Id") != e.ID.String() {
		r.Errorf("%s of %s: %v", body, req.Header, err)
	}
	if r.answer != nil {
		r.mu.Unlock()
		r.answer(w, req, e)
		r.mu.Lock()
		return
	}
	r.got = append(r.got, e)
	w.WriteHeader(http.StatusNoContent)
}

// numbers returns the numbers of what was received, in order of arrival, each once.
func (r *receiver) numbers() (list []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.got {
		if !slices.Contains(list, e.N) {
			list = append(list, e.N)
		}
	}
	return list
}

func (r *receiver) requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

func (r *receiver) then(answer func(w http.ResponseWriter, r *http.Request, e session.Event)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// webhook makes a webhook at a URL, whose receiver knows its secret.
func (w *world) webhook(url string, of *receiver) uuid.UUID {
	w.Helper()
	made := apitest.Decoded[webhook.Created](w, w.Must(http.StatusCreated, "POST", "/v1/webhooks", `{"url":"`+url+`"}`))
	of.secrets = append(of.secrets, made.Secret)
	return made.ID
}

// tell writes events of a topic.
func (w *world) tell(topic string, n int) {
	w.Helper()
	for range n {
		w.Exec(`INSERT INTO events (tenant_id, id, type, topic, data) VALUES ($1, gen_random_uuid(), 'session.due', $2, '{}')`,
			w.Tenant, session.TopicOf(topic))
	}
}

// hasten makes what waits after failures due at once, but for what a worker has locked: the two could wait for each other.
func (w *world) hasten() {
	w.Helper()
	w.Exec(`
		UPDATE webhook_deliveries
		   SET next_try_at = now()
		 WHERE ctid = ANY (ARRAY(SELECT ctid FROM webhook_deliveries WHERE tenant_id = $1 FOR UPDATE SKIP LOCKED))`, w.Tenant)
	w.Exec(`
		UPDATE webhook_turns
		   SET resume_at = '-infinity', retry_at = now()
		 WHERE ctid = ANY (ARRAY(
		       SELECT ctid FROM webhook_turns WHERE tenant_id = $1 AND retry_at IS NOT NULL FOR UPDATE SKIP LOCKED))`, w.Tenant)
}

func (w *world) readWebhook(id uuid.UUID) webhook.Webhook {
	w.Helper()
	return apitest.Decoded[webhook.Webhook](w, w.Must(http.StatusOK, "GET", "/v1/webhooks/"+id.String(), ""))
}

var sending = jobs.Config{
	Beat: 100 * time.Millisecond, Networks: []netip.Prefix{netip.MustParsePrefix(allowed + "/32")},
}

// A receiver fails, drips, redirects to an address of the private network and comes back: it has every event, those of
// a session in order, and the private address has seen nothing.
func TestAReceiverThatFailsDripsAndRedirectsLosesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inside := w.receiver("127.0.0.1")
	r := w.receiver(allowed)
	id := w.webhook(r.server.URL, r)
	direct := w.webhook(inside.server.URL, inside)
	moods := map[string]func(http.ResponseWriter, *http.Request, session.Event){
		"the receiver answered 503": func(rw http.ResponseWriter, _ *http.Request, _ session.Event) {
			rw.WriteHeader(http.StatusServiceUnavailable)
		},
		"the receiver took longer than 1s": func(rw http.ResponseWriter, req *http.Request, _ session.Event) {
			for rw.WriteHeader(http.StatusOK); req.Context().Err() == nil; time.Sleep(50 * time.Millisecond) {
				_, _ = rw.Write([]byte("."))
				_ = http.NewResponseController(rw).Flush()
			}
		},
		"the receiver answered 307: redirects are not followed": func(rw http.ResponseWriter, req *http.Request, _ session.Event) {
			http.Redirect(rw, req, inside.server.URL, http.StatusTemporaryRedirect)
		},
	}
	w.Work(sending)
	told := 0
	for reason, mood := range moods {
		r.then(mood)
		for _, topic := range []string{"a", "b", "c", "d"} {
			w.tell(topic, 3)
			told += 3
		}
		w.Until(reason, func() bool {
			w.hasten()
			found := w.readWebhook(id)
			return found.LastError != nil && strings.HasPrefix(*found.LastError, reason) && found.Pending == int64(told)
		})
	}
	if got := r.numbers(); len(got) != 0 {
		t.Fatalf("events %v count as received", got)
	}
	r.then(nil)
	w.Until("everything has arrived", func() bool {
		w.hasten() // again and again: a round that was under way may fail yet
		return len(r.numbers()) == told
	})
	w.inOrder(r.got)
	w.Until("it is recorded", func() bool { return w.readWebhook(id).Pending == 0 })
	if found := w.readWebhook(id); found.Failures != 0 || found.Delivered != int64(told) || found.DisabledAt != nil {
		t.Errorf("in the end: %+v", found)
	}
	if n := inside.requests(); n != 0 {
		t.Errorf("the private address got %d requests", n)
	}
	found := w.readWebhook(direct)
	if found.LastError == nil || !strings.Contains(*found.LastError, "not of the internet") || found.Pending != int64(told) {
		t.Errorf("of the webhook at a private address: %+v", found)
	}
}

// inOrder requires that the events of each session came in order.
func (w *world) inOrder(events []session.Event) {
	w.Helper()
	last := map[string]int64{}
	for _, e := range events {
		if e.Session == nil {
			continue
		}
		if e.N < last[*e.Session] {
			w.Errorf("of session %s event %d came after %d", *e.Session, e.N, last[*e.Session])
		}
		last[*e.Session] = e.N
	}
}

// One session's event is refused: those behind it wait, those of others do not.
func TestARefusedEventHoldsBackItsSessionAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.receiver(allowed)
	id := w.webhook(r.server.URL, r)
	r.then(func(rw http.ResponseWriter, _ *http.Request, e session.Event) {
		if *e.Session == "poison" {
			rw.WriteHeader(http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		r.got = append(r.got, e)
		r.mu.Unlock()
	})
	w.tell("poison", 2)
	for i := range 20 {
		w.tell(fmt.Sprint("chat", i), 2)
	}
	w.Work(sending)
	w.Until("the others have arrived", func() bool { return len(r.numbers()) == 40 })
	w.inOrder(r.got)
	w.Until("only the two are left", func() bool { return w.readWebhook(id).Pending == 2 })
	left := apitest.Decoded[protocol.List[webhook.Delivery]](w, w.Must(http.StatusOK, "GET", "/v1/webhooks/"+id.String()+"/deliveries?limit=1", ""))
	if first := left.Data[0]; !left.HasMore || *first.Session != "poison" || first.Attempts == 0 || first.Error == nil || !strings.Contains(*first.Error, "400") {
		t.Errorf("what waits: %+v", left)
	}
	w.tell("new", 1)
	w.Until("new ones arrive", func() bool { return len(r.numbers()) == 41 })
	r.then(nil)
	w.Until("the refused ones arrive", func() bool {
		w.hasten()
		return len(r.numbers()) == 43
	})
	w.inOrder(r.got)
}

// TestWhatWaitsOfOneTopicHoldsUpNoOther has a receiver refuse a topic of which more than 10,000 events wait.
func TestWhatWaitsOfOneTopicHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.receiver(allowed)
	id := w.webhook(r.server.URL, r)
	r.then(func(rw http.ResponseWriter, _ *http.Request, e session.Event) {
		if *e.Session == "poison" {
			rw.WriteHeader(http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		r.got = append(r.got, e)
		r.mu.Unlock()
	})
	const waiting = 3_000 // more than become deliveries at once
	w.Exec(`
		INSERT INTO events (tenant_id, id, type, topic, data)
		SELECT $1, gen_random_uuid(), 'session.due', $2, '{}'
		  FROM generate_series(1, $3::int)`, w.Tenant, session.TopicOf("poison"), waiting)
	for i := range 20 {
		w.tell(fmt.Sprint("chat", i), 2)
	}
	w.Work(sending)
	w.Until("the others have arrived", func() bool { return len(r.numbers()) == 40 })
	w.inOrder(r.got)
	w.Until("only the poisoned are left", func() bool { return w.readWebhook(id).Pending == waiting })
	r.then(nil)
	w.Until("the refused ones arrive", func() bool {
		w.hasten()
		return len(r.numbers()) > 60
	})
	w.inOrder(r.got)
}

// A receiver that has got nothing for days is disabled, listed with the reason, and gets what it missed when it is
// enabled. One that answers 410 is disabled at once.
func TestADeadReceiverIsDisabledAndContinuesWhereItStood(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, gone := w.receiver(allowed), w.receiver(allowed)
	id, left := w.webhook(r.server.URL, r), w.webhook(gone.server.URL, gone)
	fail := func(status int) func(http.ResponseWriter, *http.Request, session.Event) {
		return func(rw http.ResponseWriter, _ *http.Request, _ session.Event) { rw.WriteHeader(status) }
	}
	r.then(fail(http.StatusInternalServerError))
	gone.then(fail(http.StatusGone))
	w.tell("a", 1)
	w.Work(sending)
	w.Until("410 disables", func() bool { return w.readWebhook(left).DisabledAt != nil })
	w.Until("a first failure", func() bool { return w.readWebhook(id).Failures > 0 })
	w.Exec(`UPDATE webhooks SET failures = 10, failing_since = now() - interval '73 hours' WHERE tenant_id = $1 AND id = $2`, w.Tenant, id)
	w.Until("it is disabled", func() bool {
		w.hasten()
		return w.readWebhook(id).DisabledAt != nil
	})
	if reason := w.readWebhook(id).DisabledReason; reason == nil || !strings.Contains(*reason, "500") {
		t.Errorf("the reason is %v", reason)
	}
	w.tell("a", 2)
	w.tell("b", 1)
	r.then(nil)
	w.Must(http.StatusOK, "POST", "/v1/webhooks/"+id.String()+"/enable", "")
	w.Until("it has all", func() bool { return len(r.numbers()) == 6 }) // and that two webhooks were disabled
	w.inOrder(r.got)
	for _, outcome := range []string{"delivered", "failed", "gone"} {
		if apitest.Metric(t, "varve_webhook_deliveries_total", outcome) == 0 {
			t.Errorf("no delivery is counted as %s", outcome)
		}
	}
}

// A tenant whose receivers hang does not hold up another tenant's.
func TestReceiversThatHangHoldUpNoOtherTenant(t *testing.T) {
	t.Parallel()
	w := &world{apitest.New(t, webhook.Waiting(time.Hour))} // no request ends while the test runs
	dead := w.receiver(allowed)
	dead.then(func(_ http.ResponseWriter, req *http.Request, _ session.Event) { <-req.Context().Done() })
	for range webhook.MaxWebhooks {
		w.webhook(dead.server.URL, dead)
	}
	dead.secrets = nil // each is another webhook's
	for i := range 50 {
		w.tell(fmt.Sprint("chat", i), 1)
	}
	w.Work(sending)
	w.Until("the receivers hang", func() bool { return dead.requests() > 0 })
	there := *w.World
	other := &world{&there}
	there.Tenant, there.Key = w.NewTenant("other")
	r := other.receiver(allowed)
	other.webhook(r.server.URL, r)
	other.tell("a", 3)
	w.Until("the other tenant's arrive", func() bool { return len(r.numbers()) == 3 })
}

// During the overlap of a rotation, both secrets sign. A test reaches its webhook alone.
func TestBothSecretsSignDuringARotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, other := w.receiver(allowed), w.receiver(allowed)
	id := w.webhook(r.server.URL, r)
	w.webhook(other.server.URL, other)
	for range 3 {
		next := apitest.Decoded[webhook.Created](w, w.Must(http.StatusCreated, "POST", "/v1/webhooks/"+id.String()+"/rotate", `{"overlap_seconds":3600}`))
		r.secrets = []string{r.secrets[len(r.secrets)-1], next.Secret}
	}
	if n := w.Count(`SELECT count(*) FROM webhook_secrets`); n != 3 { // two of this one, and the other's
		t.Errorf("after three rotations there are %d secrets", n)
	}
	w.Must(http.StatusAccepted, "POST", "/v1/webhooks/"+id.String()+"/test", "")
	w.Work(sending)
	w.Until("the test arrives", func() bool { return len(r.numbers()) == 1 })
	w.tell("a", 1)
	w.Until("the next event arrives at both", func() bool { return len(r.numbers()) == 2 && len(other.numbers()) == 1 })
	if other.got[0].Type != session.EventDue {
		t.Errorf("the other webhook got %s", other.got[0].Type)
	}
}

// TestTheGaugeCountsWebhooksByState has a webhook in each state. It is not parallel to tests whose workers write the same
// gauge.
func TestTheGaugeCountsWebhooksByState(t *testing.T) {
	w := newWorld(t)
	r := w.receiver(allowed)
	for _, turn := range []string{"enabled = false", "failing = true", "through_n = 100", "through_n = 0"} {
		w.Exec(`UPDATE webhook_turns SET resume_at = 'infinity', `+turn+` WHERE webhook_id = $1`, w.webhook(r.server.URL, r))
	}
	w.tell("waits", 1)
	w.Work(sending)
	for _, state := range []string{"disabled", "failing", "idle", "waiting"} {
		w.Until(state, func() bool { return apitest.Metric(t, "varve_webhooks", state) == 1 })
	}
}
