package api

import (
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
)

// log writes the one line of a request: no bodies, no queries. Reads are many and change nothing: they are debug.
func (s *Server) log(x *exchange, began time.Time, status int, size int64) {
	level := slog.LevelInfo
	switch {
	case status >= 500:
		level = slog.LevelError
	case x.r.Method == http.MethodGet || x.r.Method == http.MethodHead:
		level = slog.LevelDebug
	}
	if !s.Log.Enabled(x.ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs, slog.String("request_id", x.id), slog.String("method", x.r.Method), slog.String("route", x.route),
		slog.Int("status", status), slog.Int64("bytes", size), slog.Float64("ms", float64(time.Since(began).Microseconds())/1000))
	if x.tenant != uuid.Nil {
		attrs = append(attrs, slog.String("tenant", x.tenant.String()))
	}
	if x.session != "" {
		attrs = append(attrs, slog.String("session", x.session))
	}
	if id := x.r.Header.Get("X-Request-Id"); clientRequestID.MatchString(id) {
		attrs = append(attrs, slog.String("client_request_id", id))
	}
	if x.problem != "" {
		attrs = append(attrs, slog.String("code", x.problem))
	}
	if x.cause != nil {
		attrs = append(attrs, slog.String("error", x.cause.Error()))
	}
	s.Log.LogAttrs(x.ctx, level, "request", attrs...)
}

// clientRequestID is what an X-Request-Id of the caller's own must look like to be logged beside ours.
var clientRequestID = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)

// recovered runs do and turns its panic into an error. The stack goes to the log; values that may hold contents do not.
func recovered(log *slog.Logger, x *exchange, do func() error) (err error) {
	defer func() {
		switch cause := recover(); cause {
		case nil:
		case http.ErrAbortHandler:
			panic(cause)
		default:
			log.LogAttrs(x.ctx, slog.LevelError, "panic", slog.String("request_id", x.id), slog.String("type", fmt.Sprintf("%T", cause)),
				slog.String("stack", string(debug.Stack())))
			err = errPanic
			if runtimeError, ok := cause.(runtime.Error); ok {
				err = fmt.Errorf("%w: %w", errPanic, runtimeError)
			}
		}
	}()
	return do()
}
