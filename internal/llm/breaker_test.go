package llm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// fails makes a number of calls that must fail with an error of the kind.
func fails(t *testing.T, m *Configured, n int, kind error) (last *Error) {
	t.Helper()
	for i := range n {
		_, err := m.Ask(t.Context(), uuid.Nil, ask)
		if !errors.Is(err, kind) || !errors.As(err, &last) {
			t.Fatalf("call %d: %v, want %v", i+1, err, kind)
		}
	}
	return last
}

func TestTheBreakerOpensAndOneCallClosesIt(t *testing.T) {
	t.Parallel()
	var healthy atomic.Bool
	h := func(_ int32, w http.ResponseWriter, r *http.Request) {
		if healthy.Load() {
			time.Sleep(time.Second)
			body(200, good)(w, r)
			return
		}
		body(500, "")(w, r)
	}
	p := Provider{Attempts: 1, Breaker: Breaker{Failures: 5, Seconds: 30}}
	inBubble(t, p, h, func(t *testing.T, m *Configured, requests *atomic.Int32) {
		fails(t, m, 5, ErrUnavailable)
		if left := fails(t, m, 3, ErrOpen).RetryAfter; left != 30*time.Second || requests.Load() != 5 {
			t.Errorf("%d requests, %v left; want 5, and 30s", requests.Load(), left)
		}
		time.Sleep(31 * time.Second)
		fails(t, m, 1, ErrUnavailable) // one is let through, and fails
		fails(t, m, 3, ErrOpen)
		if requests.Load() != 6 {
			t.Errorf("%d requests after the first rest, want 6", requests.Load())
		}
		time.Sleep(31 * time.Second)
		healthy.Store(true)
		var probes sync.WaitGroup
		var refused atomic.Int32
		for range 4 {
			probes.Go(func() {
				if _, err := m.Ask(t.Context(), uuid.Nil, ask); errors.Is(err, ErrOpen) {
					refused.Add(1)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		probes.Wait()
		if refused.Load() != 3 || requests.Load() != 7 {
			t.Errorf("%d of 4 were refused, %d requests; want 3 and 7", refused.Load(), requests.Load())
		}
		if _, err := m.Ask(t.Context(), uuid.Nil, ask); err != nil {
			t.Errorf("after the probe: %v", err)
		}
	})
}

func TestARefusalOrARequestThatIsNotTakenSaysNothingAgainstTheModel(t *testing.T) {
	t.Parallel()
	refusal := `{"choices":[{"finish_reason":"stop","message":{"refusal":"no","content":null}}]}`
	h := inOrder(body(200, refusal), body(400, "{}"))
	inBubble(t, Provider{Breaker: Breaker{Failures: 1}}, h, func(t *testing.T, m *Configured, _ *atomic.Int32) {
		fails(t, m, 1, ErrRefused)
		fails(t, m, 10, ErrRejected)
	})
}

func TestALimitAndAnAnswerWithoutSenseSpeakAgainstTheModel(t *testing.T) {
	t.Parallel()
	for kind, h := range map[error]http.HandlerFunc{ErrLimited: limited("1"), ErrMalformed: body(200, "{}")} {
		p := Provider{Attempts: 1, Breaker: Breaker{Failures: 2}}
		inBubble(t, p, inOrder(h), func(t *testing.T, m *Configured, _ *atomic.Int32) {
			fails(t, m, 2, kind)
			fails(t, m, 1, ErrOpen)
		})
	}
}

func TestAModelHasOneBreakerUnderAllItsNames(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(body(500, ""))
	t.Cleanup(server.Close)
	p := Provider{Kind: OpenAI, BaseURL: server.URL, AllowPrivate: true, Attempts: 1, Breaker: Breaker{1, 3600}}
	one := fmt.Sprint("one-", rand.Uint64()) // the metrics are the process's, which may run the test again
	models, err := Open(Config{Providers: map[string]Provider{one: p, "other": p}, Models: map[string]Definition{
		"large": {Provider: one, Model: "x", Window: 9000}, "small": {Provider: one, Model: "x", Window: 8000},
		"another": {Provider: one, Model: "y", Window: 8000}, "elsewhere": {Provider: "other", Model: "x", Window: 8000},
	}}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []struct {
		name string
		kind error
	}{{"large", ErrUnavailable}, {"small", ErrOpen}, {"another", ErrUnavailable}, {"elsewhere", ErrUnavailable}} {
		m, _ := models.Named(call.name)
		if _, err := m.Ask(t.Context(), uuid.Nil, ask); !errors.Is(err, call.kind) {
			t.Errorf("%s: %v, want %v", call.name, err, call.kind)
		}
	}
	figures := metrics(t)
	for _, want := range []string{
		`varve_llm_breaker_state{model="x",provider="one"} 2`, `varve_llm_breaker_opened_total{model="x",provider="one"} 1`,
		`varve_llm_calls_total{model="small",outcome="open",provider="one"} 1`,
		`varve_llm_calls_total{model="large",outcome="unavailable",provider="one"} 1`,
	} {
		want = strings.Replace(want, `"one"`, strconv.Quote(one), 1)
		if !strings.Contains(figures, want+"\n") {
			t.Errorf("the metrics have no %s", want)
		}
	}
}

// metrics returns what the process shows of itself.
func metrics(t *testing.T) string {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}
