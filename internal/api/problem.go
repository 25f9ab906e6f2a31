package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/varve-dev/varve/internal/api/openai"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

var (
	problemType  = []string{"application/problem+json"}
	retryAfterMS = []string{"1000"}
	supported    = []string{"gzip, zstd"}
	challenge    = []string{`Bearer realm="varve"`}
)

// answer sends the error to the caller, unless the caller is gone or has a part of the answer already.
func (s *Server) answer(req *request.Request, err error, committed bool) {
	f := failureOf(err)
	status := statuses[f.Code]
	if status == 0 {
		f, status = &request.Failure{Code: request.InternalError, Detail: f.Detail}, http.StatusInternalServerError
	}
	req.ProblemCode = f.Code
	if status >= http.StatusInternalServerError {
		req.Cause = err
	}
	gone := errors.Is(err, context.Canceled) && req.R.Context().Err() != nil
	switch {
	case gone, errors.Is(err, request.ErrClientGone):
		req.ProblemCode, req.Cause = "client_gone", nil
		if !committed {
			req.W.WriteHeader(statusClientGone)
		}
		return
	case committed:
		req.Truncated = true
		return
	}
	if err := writeProblem(req, f, status); err != nil {
		req.Cause = errors.Join(req.Cause, err)
	}
}

// statusClientGone is a status that only nginx has. It is for the log: no client is left to read it.
const statusClientGone = 499

func writeProblem(req *request.Request, f *request.Failure, status int) error {
	retryable := status == http.StatusInternalServerError || status == http.StatusServiceUnavailable ||
		status == http.StatusRequestTimeout
	kind, answer := problemType, any(protocol.Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: f.Detail,
		Instance: req.R.URL.EscapedPath(),
		Code:     f.Code, RequestID: req.ID, Retryable: retryable, Current: f.Current, Minimum: f.Minimum,
		Errors: f.Problems,
		Error: protocol.OpenAIError{Message: f.Detail, Type: openai.ErrorType(status), Code: f.Code,
			Param: param(f.Problems)},
	})
	if req.OpenAI {
		kind = request.JSONType
		answer, status = openai.Problem(f, status)
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	h := req.W.Header()
	for _, name := range []string{"Etag", "Content-Encoding", "Content-Range", "Last-Modified", "Accept-Ranges",
		"Cache-Control"} {
		delete(h, name)
	}
	h["X-Should-Retry"] = []string{strconv.FormatBool(retryable)}
	switch status {
	case http.StatusServiceUnavailable:
		h["Retry-After"], h["Retry-After-Ms"] = request.RetryAfter, retryAfterMS
	case http.StatusRequestTimeout:
		h["Connection"] = []string{"close"}
	case http.StatusRequestedRangeNotSatisfiable:
		h["Content-Range"] = []string{fmt.Sprintf("bytes */%d", f.Size)}
	case http.StatusUnauthorized:
		h["Www-Authenticate"] = challenge
	case http.StatusUnsupportedMediaType:
		h["Accept"], h["Accept-Encoding"] = request.JSONType, supported
	}
	return req.Bytes(status, kind, body)
}

func param(problems []session.Problem) *string {
	if len(problems) == 0 {
		return nil
	}
	return &problems[0].Pointer
}
