package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// The times between two attempts to reach a database that is not there yet, and how often that is logged.
const (
	firstWait   = 250 * time.Millisecond
	longestWait = 4 * time.Second
	sayEvery    = time.Minute
)

// WhenThere calls open until the database is there. An error that time does not mend, such as a wrong password or an
// old schema, is returned at once.
func WhenThere[T any](ctx context.Context, log *slog.Logger, open func() (T, error)) (opened T, err error) {
	var said time.Time
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		opened, err = open()
		if err == nil || !isNotThereYet(err) {
			return opened, err
		}
		if time.Since(said) >= sayEvery {
			log.WarnContext(ctx, "the database is not there yet: waiting for it", "error", err)
			said = time.Now()
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return opened, fmt.Errorf("waiting for the database: %w", errors.Join(ctx.Err(), err))
		}
	}
}

// isNotThereYet reports whether the database, or a result store, may answer later with the same settings, or take
// writes.
func isNotThereYet(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && len(pg.Code) == 5 && pg.Code[:2] == "28" {
		return false // the login is refused
	}
	return postgres.IsAway(err) || errors.Is(err, postgres.ErrReadOnly) || errors.Is(err, session.ErrResultStore)
}

// entrance is what an API process answers with: until its database is there, that it is not ready.
type entrance struct{ ready atomic.Pointer[http.Handler] }

// ServeHTTP answers a request.
func (e *entrance) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if ready := e.ready.Load(); ready != nil {
		(*ready).ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/livez" {
		_, _ = w.Write([]byte(`{"status":"ok"}`)) // the caller may be gone
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write([]byte(`{"type":"about:blank","title":"Service Unavailable","status":503,"code":"unavailable",` +
		`"detail":"the process waits for its database","retryable":true}`))
}

// open makes the handler the one that answers.
func (e *entrance) open(handler http.Handler) { e.ready.Store(&handler) }

// unlessStopped returns the error of what was begun, or nil if the process was told to stop meanwhile.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
