package api

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/postgres"
)

// livez handles GET /livez: the process answers.
func (s *Server) livez(req *request.Request) error {
	return req.Bytes(http.StatusOK, request.JSONType, []byte(`{"status":"ok"}`))
}

// readyz handles GET /readyz: the process serves requests, or with reads=true at least those that write nothing. It
// needs no key, so the answer has no details.
func (s *Server) readyz(req *request.Request) error {
	if s.draining.Load() {
		return request.Fail(request.Unavailable, "the process is stopping: ask another one")
	}
	detail, cause := s.ready.look(req.Ctx, s)
	if req.R.URL.Query().Get("reads") == "true" && errors.Is(cause, postgres.ErrReadOnly) {
		return req.Bytes(http.StatusOK, request.JSONType, []byte(`{"status":"reads_only"}`))
	}
	if cause != nil {
		req.Cause = cause
		return request.Fail(request.Unavailable, "%s", detail)
	}
	return req.Bytes(http.StatusOK, request.JSONType, []byte(`{"status":"ready"}`))
}

// readiness is the result of the last check of the database. It is kept for a second, so that callers, which need no
// key, cannot keep the database busy.
type readiness struct {
	mu     sync.Mutex
	at     time.Time
	cause  error
	detail string

	database postgres.Readiness
}

// readyTimeout bounds the check of the database, and is how long its result is kept.
const readyTimeout = time.Second

func (r *readiness) look(ctx context.Context, s *Server) (detail string, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.at) < readyTimeout {
		return r.detail, r.cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	r.cause, r.detail = r.database.Check(ctx, s.Store), "the database's schema does not fit this version: run varve "+
		"migrate"
	var connect *pgconn.ConnectError
	switch {
	case errors.Is(r.cause, postgres.ErrReadOnly):
		r.detail = r.cause.Error() + ": this process answers requests that write nothing, and GET /readyz?reads=true " +
			"is 200"
	case errors.As(r.cause, &connect), r.cause != nil && databaseIsDown(r.cause):
		r.detail = "the database does not answer"
	}
	r.at = time.Now()
	return r.detail, r.cause
}
