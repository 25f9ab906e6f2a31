package api_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

func TestWhoWaitsHoldsNoConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat"}`)
	asked := decoded[session.Run](w.must(http.StatusAccepted, "POST", "/v1/sessions/s/compact", ""))
	before := metric(t, "varve_waiting_requests")
	var waiters sync.WaitGroup
	answers := make(chan answer, 100)
	for range cap(answers) {
		waiters.Go(func() { answers <- w.ask("POST", "/v1/sessions/s/compact?wait=60", "") })
	}
	for metric(t, "varve_waiting_requests")-before < float64(cap(answers)) {
		time.Sleep(time.Millisecond)
	}
	for held := w.store.Pool().Stat().AcquiredConns(); held > 0; held = w.store.Pool().Stat().AcquiredConns() {
		time.Sleep(time.Millisecond) // those that have just begun to wait have looked once
	}
	reads := w.store.Pool().Stat().AcquireCount()
	found, err := w.store.Session(t.Context(), session.Address{Tenant: w.tenant, ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if len(answers) > 0 {
		t.Fatalf("%d did not wait", len(answers))
	}
	attempt := postgres.Attempt{Key: session.Key{Tenant: w.tenant, Key: found.Key}, Run: asked.ID, Number: 1}
	if err := w.admin.Pool().QueryRow(t.Context(), `UPDATE river_job SET state = 'running', attempt = 1 WHERE kind = 'compact' RETURNING id`).Scan(&attempt.Job); err != nil {
		t.Fatal(err)
	}
	failure := postgres.Failure{Class: session.FailureOwn, Reason: "a test ends it", Final: true}
	if _, err := w.store.FailRun(t.Context(), attempt, failure); err != nil {
		t.Fatal(err)
	}
	waiters.Wait()
	if more := w.store.Pool().Stat().AcquireCount() - reads; more > 20 {
		t.Errorf("%d connections were taken when a run ended that %d waited for", more, cap(answers))
	}
	close(answers)
	for a := range answers {
		if run := decoded[session.Run](a); a.Code != http.StatusOK || run.ID != asked.ID || run.State != session.RunFailed {
			t.Errorf("%d %s", a.Code, a.Body)
		}
	}
}

func TestTooManyDoNotWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.must(http.StatusAccepted, "POST", "/v1/imports?more=true", `{"session":{"id":"imported"}}`)
	id := decoded[protocol.Import](made).ID
	w.exec(fmt.Sprintf(`UPDATE imports SET state = 'running' WHERE id = '%s'`, id))
	var waiters sync.WaitGroup
	answers := make(chan answer, 130)
	for range cap(answers) {
		waiters.Go(func() { answers <- w.ask("GET", "/v1/imports/"+id.String()+"?wait=60", "") })
	}
	for len(answers) < cap(answers)-128 {
		time.Sleep(time.Millisecond)
	}
	for range cap(answers) - 128 {
		if a := <-answers; a.Code != http.StatusTooManyRequests {
			t.Errorf("one of more than 128 who wait for one import: %d %s", a.Code, a.Body)
		}
	}
	w.server.Drain() // nobody waits any more
	waiters.Wait()
	close(answers)
	for a := range answers {
		if a.Code != http.StatusOK {
			t.Errorf("%d %s", a.Code, a.Body)
		}
	}
}

func TestOnlyWhatIsLiveIsLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat"}`)
	run := decoded[session.Run](w.must(http.StatusAccepted, "POST", "/v1/sessions/s/compact", ""))
	endings, err := w.store.Endings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer endings.Close(t.Context())
	others, _ := w.newTenant("others")
	asked := map[uuid.UUID][]uuid.UUID{w.tenant: {run.ID, uuid.New()}, others: {run.ID}}
	for _, want := range []int{1, 0} {
		if live, err := endings.Live(t.Context(), asked); err != nil || len(live) != want || endings.Deaf() {
			t.Errorf("live are %v, %v; deaf %v", live, err, endings.Deaf())
		}
		w.exec(`UPDATE runs SET state = 'done'`)
	}
	if id, err := endings.Next(t.Context(), time.Minute); err != nil || id != run.ID {
		t.Errorf("heard that %s has ended, %v", id, err)
	}
}
