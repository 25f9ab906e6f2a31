package process

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/varve-dev/varve/internal/postgres"
)

// probes answers what is asked of a process that has no API.
type probes struct {
	mu    sync.Mutex
	store *postgres.Store // nil until the database is there
	ready postgres.Readiness
}

// handler answers GET /metrics, /livez and /readyz.
func (p *probes) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.Handler())
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { answerProbe(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { answerProbe(w, p.check(r.Context())) })
	return mux
}

// probeTimeout bounds the check of the database.
const probeTimeout = time.Second

var errWaits = errors.New("the process waits for its database")

// check returns why the process does not work jobs, nil if it does.
func (p *probes) check(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.store == nil {
		return errWaits
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return p.ready.Check(ctx, p.store)
}

// use names the store of a process that works jobs.
func (p *probes) use(store *postgres.Store) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.store = store
}

func answerProbe(w http.ResponseWriter, wrong error) {
	w.Header().Set("Content-Type", "application/json")
	body := `{"status":"ok"}`
	if wrong != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		body = `{"status":"unavailable"}` // why is for the log: who asks needs no key
	}
	_, _ = w.Write([]byte(body)) // the caller may be gone
}
