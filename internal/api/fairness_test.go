package api_test

import (
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/apitest"
)

// waitingFor reads the gauge of requests that wait for their turn.
func waitingFor(t testing.TB, what string) float64 {
	t.Helper()
	return apitest.Metric(t, "varve_admit_waiting", what)
}

func TestWritersOfOneLockedSessionHoldNobodyElseUp(t *testing.T) {
	t.Parallel()
	w := newWorldSharing(t, io.Discard, admit.NewConnections(connections, patience))
	victim := *w
	victim.tenant, victim.key = w.newTenant("victim")
	for _, caller := range []*world{w, &victim} {
		caller.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat"}`)
	}
	unlock := w.lock(`SELECT FROM sessions WHERE tenant_id = '` + w.tenant.String() + `' FOR UPDATE`)
	var attack sync.WaitGroup
	statuses := make(chan int, 100)
	for range cap(statuses) {
		attack.Go(func() {
			statuses <- w.ask("POST", "/v1/sessions/s/messages", batch("openai-chat", user("x"))).Code
		})
	}
	// Two wait at the session's lock.
	w.until("the writers wait", func() bool { return waitingFor(t, "session") >= float64(cap(statuses)-10) })
	held := w.store.Pool().Stat().AcquiredConns()
	for range 50 { // two write; whoever looks a key up holds one for a moment
		time.Sleep(time.Millisecond)
		held = min(held, w.store.Pool().Stat().AcquiredConns())
	}
	if held > 2 {
		t.Errorf("%d writers of one session hold %d connections", cap(statuses), held)
	}
	for range 5 {
		victim.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("x")))
		victim.must(http.StatusOK, "GET", "/v1/sessions/s/context", "")
		w.must(http.StatusOK, "GET", "/v1/sessions/s/context", "")
	}
	unlock()
	attack.Wait()
	close(statuses)
	written := 0
	for status := range statuses {
		switch status {
		case http.StatusCreated:
			written++
		case http.StatusServiceUnavailable: // it waited at the lock for longer than lock_timeout
		default:
			t.Errorf("a writer that had waited got %d", status)
		}
	}
	if written < cap(statuses)/2 {
		t.Errorf("%d of %d writers that waited wrote", written, cap(statuses))
	}
}

func TestBulkWorkHoldsNoAppendUp(t *testing.T) {
	t.Parallel()
	w := newWorldSharing(t, io.Discard, admit.NewConnections(connections, patience))
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat"}`)
	unlock := w.lock(`LOCK TABLE imports`) // lists of them are slow
	var attack sync.WaitGroup
	for range 50 {
		attack.Go(func() { w.ask("GET", "/v1/imports", "") })
	}
	w.until("bulk waits", func() bool { return waitingFor(t, "bulk") >= 1 })
	for range 5 {
		w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("x")))
	}
	unlock()
	attack.Wait()
}

// TestARefusedRequestWaitsForItsAnswer looks at the shortest time, which no busy machine makes shorter.
func TestARefusedRequestWaitsForItsAnswer(t *testing.T) {
	t.Parallel()
	w := newWorldSharing(t, io.Discard, admit.NewConnections(10, time.Millisecond))
	w.server.Pause = time.Hour
	w.must(http.StatusNotFound, "GET", "/v1/sessions/none", "") // at once: it is not one of too many
	defer w.hold(admit.Interactive, w.tenant)()
	w.server.Pause = 100 * time.Millisecond
	began := time.Now()
	w.must(http.StatusTooManyRequests, "GET", "/v1/sessions/none", "")
	if took := time.Since(began); took < w.server.Pause {
		t.Errorf("the answer came after %v", took)
	}
	w.server.Pause = time.Hour
	w.server.Drain()
	w.must(http.StatusTooManyRequests, "GET", "/v1/sessions/none", "") // at once: the process stops
}

// TestReadsThatMayReadMuchHaveConnectionsOfTheirOwn takes those of one class, and asks for the reads of a session: what
// an agent waits for does not wait for the rest, nor the other way round.
func TestReadsThatMayReadMuchHaveConnectionsOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorldSharing(t, io.Discard, admit.NewConnections(10, time.Millisecond))
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat"}`)
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("x")))
	prompt := []string{"", "/context", "/messages"}
	bulk := []string{"/timeline", "/context/units", "/pins/candidates", "/summaries", "/checkpoints", "/runs", "/export"}
	for class, busy := range map[admit.Class][]string{admit.Bulk: bulk, admit.Interactive: prompt} {
		release := w.hold(class, w.tenant)
		for _, path := range slices.Concat(prompt, bulk) {
			want := http.StatusOK
			if slices.Contains(busy, path) {
				want = http.StatusTooManyRequests
			}
			w.must(want, "GET", "/v1/sessions/s"+path, "")
		}
		release()
	}
}
