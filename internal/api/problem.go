package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

var (
	problemType  = []string{"application/problem+json"}
	retryAfter   = []string{"1"}
	retryAfterMS = []string{"1000"}
	supported    = []string{"gzip, zstd"}
	challenge    = []string{`Bearer realm="varve"`}
)

// answer tells the caller what went wrong, unless the caller is gone or has a part of the answer already.
func (s *Server) answer(x *exchange, err error, committed bool) {
	f := failureOf(err)
	status := statuses[f.code]
	if status == 0 {
		f, status = &failure{code: internalError, detail: f.detail}, http.StatusInternalServerError
	}
	x.problem = f.code
	if status >= http.StatusInternalServerError {
		x.cause = err
	}
	gone := errors.Is(err, context.Canceled) && x.r.Context().Err() != nil
	switch {
	case gone, errors.Is(err, errClientGone):
		x.problem, x.cause = "client_gone", nil
		if !committed {
			x.w.WriteHeader(statusClientGone)
		}
		return
	case committed:
		x.truncated = true
		return
	}
	if err := x.fail(f, status); err != nil {
		x.cause = errors.Join(x.cause, err)
	}
}

// statusClientGone is nobody's status but nginx's: it is for the log, since there is nobody left to read it.
const statusClientGone = 499

func (x *exchange) fail(f *failure, status int) error {
	retryable := status == http.StatusInternalServerError || status == http.StatusServiceUnavailable || status == http.StatusRequestTimeout
	kind, answer := problemType, any(protocol.Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: f.detail, Instance: x.r.URL.EscapedPath(),
		Code: f.code, RequestID: x.id, Retryable: retryable, Current: f.current, Minimum: f.minimum, Errors: f.problems,
		Error: protocol.OpenAIError{Message: f.detail, Type: errorType(status), Code: f.code, Param: param(f.problems)},
	})
	if x.openAI {
		status = openAIStatus(status)
		kind, answer = jsonType, openAIProblem(f, status)
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	h := x.w.Header()
	for _, name := range []string{"Etag", "Content-Encoding", "Content-Range", "Last-Modified", "Accept-Ranges", "Cache-Control"} {
		delete(h, name)
	}
	h["X-Should-Retry"] = []string{strconv.FormatBool(retryable)}
	switch status {
	case http.StatusServiceUnavailable:
		h["Retry-After"], h["Retry-After-Ms"] = retryAfter, retryAfterMS
	case http.StatusRequestTimeout:
		h["Connection"] = []string{"close"}
	case http.StatusRequestedRangeNotSatisfiable:
		h["Content-Range"] = []string{fmt.Sprintf("bytes */%d", f.size)}
	case http.StatusUnauthorized:
		h["Www-Authenticate"] = challenge
	case http.StatusUnsupportedMediaType:
		h["Accept"], h["Accept-Encoding"] = jsonType, supported
	}
	return x.bytes(status, kind, body)
}

func errorType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusNotFound:
		return "not_found_error"
	case status >= http.StatusInternalServerError:
		return "server_error"
	}
	return "invalid_request_error"
}

func param(problems []session.Problem) *string {
	if len(problems) == 0 {
		return nil
	}
	return &problems[0].Pointer
}
