package process

import (
	"context"
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
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { answerProbe(w, true) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { answerProbe(w, p.works(r.Context())) })
	return mux
}

// probeTimeout bounds the check of the database.
const probeTimeout = time.Second

// works reports whether the process works jobs.
func (p *probes) works(ctx context.Context) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.store == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return p.ready.Check(ctx, p.store) == nil
}

// use names the store of a process that works jobs.
func (p *probes) use(store *postgres.Store) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.store = store
}

func answerProbe(w http.ResponseWriter, ok bool) {
	w.Header().Set("Content-Type", "application/json")
	body := `{"status":"ok"}`
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
		body = `{"status":"unavailable"}`
	}
	_, _ = w.Write([]byte(body)) // the caller may be gone
}
