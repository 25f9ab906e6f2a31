package api

import (
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/request"
)

// shed are the codes of requests that were refused because there were too many. A flood of them must not become one of
// lines: varve_admit_refused_total counts them.
var shed = []string{"session_busy", "over_capacity", "tenant_busy", rateLimited}

// log writes the one line of a request: no bodies, no queries. Reads are many and change nothing: they are debug.
func (s *Server) log(req *request.Request, began time.Time, status int, size int64) {
	level := slog.LevelInfo
	switch {
	case slices.Contains(shed, req.ProblemCode):
		level = slog.LevelDebug
	case status >= 500:
		level = slog.LevelError
	case req.R.Method == http.MethodGet || req.R.Method == http.MethodHead:
		level = slog.LevelDebug
	}
	if !s.Log.Enabled(req.Ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs,
		slog.String("request_id", req.ID), slog.String("method", req.R.Method), slog.String("route", req.Route),
		slog.Int("status", status), slog.Int64("bytes", size),
		slog.Float64("ms", float64(time.Since(began).Microseconds())/1000))
	known := func(name, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(name, value))
		}
	}
	if req.Tenant != uuid.Nil {
		known("tenant", req.Tenant.String())
	}
	switch {
	case req.Caller.Bound():
		known("token_id", req.Caller.Token.String())
	case req.Caller.APIKey != uuid.Nil:
		known("key_id", req.Caller.APIKey.String())
	}
	known("session", req.SessionID)
	known("client_request_id", clientRequestID.FindString(req.R.Header.Get("X-Request-Id")))
	known("code", req.ProblemCode)
	if req.Cause != nil {
		known("error", req.Cause.Error())
	}
	s.Log.LogAttrs(req.Ctx, level, "request", attrs...)
}

// clientRequestID matches an X-Request-Id of the caller that is logged beside ours.
var clientRequestID = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)

// recovered runs do and turns its panic into an error. It logs the stack, but no values, because they may be contents
// of messages.
func recovered(log *slog.Logger, req *request.Request, do func() error) (err error) {
	defer func() {
		switch cause := recover(); cause {
		case nil:
		case http.ErrAbortHandler:
			panic(cause)
		default:
			log.LogAttrs(req.Ctx, slog.LevelError, "panic", slog.String("request_id", req.ID), slog.String("type",
				fmt.Sprintf("%T", cause)),
				slog.String("stack", string(debug.Stack())))
			err = errPanic
			if runtimeError, ok := cause.(runtime.Error); ok {
				err = fmt.Errorf("%w: %w", errPanic, runtimeError)
			}
		}
	}()
	return do()
}
