package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

// inBubble runs a test of a model over pipes, in time of its own. The handler gets the number of the request, from 1.
func inBubble(t *testing.T, p Provider, h func(n int32, w http.ResponseWriter, r *http.Request),
	f func(t *testing.T, m *Configured, requests *atomic.Int32)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var requests atomic.Int32
		m, stop := piped(p, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // a server sees that the client goes only after that
			h(requests.Add(1), w, r)
		})
		defer stop()
		f(t, m, &requests)
	})
}

// inOrder returns a handler that gives these answers in order, and the last one again and again.
func inOrder(handlers ...http.HandlerFunc) func(int32, http.ResponseWriter, *http.Request) {
	return func(n int32, w http.ResponseWriter, r *http.Request) { handlers[min(int(n), len(handlers))-1](w, r) }
}

func limited(after string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", after)
		body(429, `{"error":{"code":"rate_limit_exceeded","message":"secret of the replica"}}`)(w, r)
	}
}

func TestACallIsTriedAgainAfterTheTimeThatTheProviderAsksFor(t *testing.T) {
	t.Parallel()
	h := inOrder(limited("7"), body(503, "{}"), body(200, good))
	inBubble(t, Provider{}, h, func(t *testing.T, m *Configured, requests *atomic.Int32) {
		began := time.Now()
		reply, err := m.Ask(t.Context(), uuid.Nil, ask)
		took := time.Since(began)
		if err != nil || reply.Text != "yes" || requests.Load() != 3 {
			t.Errorf("%v, %v after %d requests, want yes after 3", reply, err, requests.Load())
		}
		if took < 7*time.Second || took > 7*time.Second+3*firstPause {
			t.Errorf("it took %v, want 7s and two short pauses", took)
		}
	})
}

func TestPausesAreRandomPartsOfATimeThatDoubles(t *testing.T) {
	t.Parallel()
	for attempt := 1; attempt <= 10; attempt++ {
		bound := min(firstPause<<(attempt-1), maxPause)
		var different bool
		first := pause(attempt, time.Second)
		for range 100 {
			p := pause(attempt, time.Second)
			different = different || p != first
			if p < time.Second || p >= time.Second+bound {
				t.Errorf("attempt %d pauses %v, want 1s and up to %v", attempt, p, bound)
			}
		}
		if !different {
			t.Errorf("attempt %d always pauses %v", attempt, first)
		}
	}
}

func TestACallHasABoundedNumberOfAttempts(t *testing.T) {
	t.Parallel()
	inBubble(t, Provider{Attempts: 4}, inOrder(body(500, "")), func(t *testing.T, m *Configured, requests *atomic.Int32) {
		if _, err := m.Ask(t.Context(), uuid.Nil, ask); !errors.Is(err, ErrUnavailable) || requests.Load() != 4 {
			t.Errorf("%v after %d requests, want %v after 4", err, requests.Load(), ErrUnavailable)
		}
	})
}

func TestNobodyWaitsForAnAttemptBehindTheDeadline(t *testing.T) {
	t.Parallel()
	inBubble(t, Provider{Timeout: 60}, inOrder(limited("61")), func(t *testing.T, m *Configured, requests *atomic.Int32) {
		began := time.Now()
		_, err := m.Ask(t.Context(), uuid.Nil, ask)
		var failed *Error
		if !errors.As(err, &failed) || !errors.Is(err, ErrLimited) || failed.RetryAfter != 61*time.Second {
			t.Errorf("%#v, want %v that asks for 61s", err, ErrLimited)
		}
		if requests.Load() != 1 || time.Since(began) != 0 {
			t.Errorf("%d requests in %v, want one and no waiting", requests.Load(), time.Since(began))
		}
	})
}

func TestWhatMayHaveCostSomethingIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, `{"choices":`)
	}
	for name, h := range map[string]http.HandlerFunc{
		"no JSON": body(200, "no"), "an answer that breaks off": cut, "a refused request": body(400, "{}"),
	} {
		inBubble(t, Provider{}, inOrder(h), func(t *testing.T, m *Configured, requests *atomic.Int32) {
			if _, err := m.Ask(t.Context(), uuid.Nil, ask); err == nil || requests.Load() != 1 {
				t.Errorf("%s: %v after %d requests, want an error after one", name, err, requests.Load())
			}
		})
	}
}

func TestACallEndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	drip := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for r.Context().Err() == nil {
			fmt.Fprint(w, " ")
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(time.Second):
			}
		}
	}
	for name, h := range map[string]http.HandlerFunc{"silence": silent, "a slow drip": drip} {
		inBubble(t, Provider{Timeout: 45}, inOrder(h), func(t *testing.T, m *Configured, requests *atomic.Int32) {
			began := time.Now()
			_, err := m.Ask(t.Context(), uuid.Nil, ask)
			var failed *Error
			if !errors.As(err, &failed) || !errors.Is(err, ErrUnavailable) || failed.Free {
				t.Errorf("%s: %#v, want %v that may have cost something", name, err, ErrUnavailable)
			}
			if took := time.Since(began); took != 45*time.Second || requests.Load() != 1 {
				t.Errorf("%s: %d requests in %v, want one in 45s", name, requests.Load(), took)
			}
		})
	}
}

func TestACallerThatGoesGetsItsOwnErrorAndSaysNothingAboutTheModel(t *testing.T) {
	t.Parallel()
	h := func(n int32, w http.ResponseWriter, r *http.Request) {
		if n <= 20 {
			<-r.Context().Done()
			return
		}
		body(200, good)(w, r)
	}
	inBubble(t, Provider{}, h, func(t *testing.T, m *Configured, _ *atomic.Int32) {
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := m.Ask(ctx, uuid.Nil, ask); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*Error)) {
				t.Errorf("%#v, want the error of the caller's context", err)
			}
			cancel()
		}
		if _, err := m.Ask(t.Context(), uuid.Nil, ask); err != nil {
			t.Errorf("after 20 callers that went: %v", err)
		}
	})
}

func TestAProviderGetsNoMoreCallsAtOnceThanItsConcurrency(t *testing.T) {
	t.Parallel()
	var now, highest atomic.Int32
	h := func(_ int32, w http.ResponseWriter, r *http.Request) {
		highest.Store(max(highest.Load(), now.Add(1)))
		time.Sleep(time.Second)
		now.Add(-1)
		body(200, good)(w, r)
	}
	inBubble(t, Provider{Concurrency: 3}, h, func(t *testing.T, m *Configured, requests *atomic.Int32) {
		var calls sync.WaitGroup
		began := time.Now()
		for range 9 {
			calls.Go(func() {
				if _, err := m.Ask(t.Context(), uuid.Nil, ask); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := m.Ask(gone, uuid.Nil, ask); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that went while it waited: %v", err)
		}
		calls.Wait()
		if highest.Load() != 3 || requests.Load() != 9 || time.Since(began) != 3*time.Second {
			t.Errorf("%d of %d at once in %v, want 3 of 9 in 3s", highest.Load(), requests.Load(), time.Since(began))
		}
	})
}
