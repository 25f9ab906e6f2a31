package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/varve-dev/varve/internal/egress"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// Error is an answer that is an error, also one that something between the client and the API made.
type Error struct {
	Status     int
	Problem    protocol.Problem // only Detail is set if the answer was not Varve's
	RetryAfter time.Duration    // 0 if the server did not say
	Raw        string           // the server's JSON; "" if the answer was not Varve's
	Appended   *Appended        // what an append did that succeeded, but whose view failed
}

// Code returns the code of docs/errors.md, "" if the answer was not Varve's.
func (e *Error) Code() string { return e.Problem.Code }

// Pointer returns where the first problem is: a JSON pointer into the body, or the name of a parameter; "" for neither.
func (e *Error) Pointer() string {
	if len(e.Problem.Errors) == 0 {
		return ""
	}
	return e.Problem.Errors[0].Pointer
}

// Error returns the problem in words, each member that is wrong on a line.
func (e *Error) Error() string {
	var b strings.Builder
	p := &e.Problem
	listed := p.Errors
	switch {
	case len(listed) == 1 && strings.Contains(p.Detail, listed[0].Detail):
		b.WriteString(located(listed[0]))
		listed = nil
	case len(listed) > 1 && strings.Contains(p.Detail, listed[0].Detail):
		fmt.Fprintf(&b, "%d problems", len(listed))
	case p.Detail == "":
		fmt.Fprintf(&b, "%d %s", e.Status, p.Title)
	default:
		detail := p.Detail
		if e.Status == http.StatusNotFound {
			detail = hint.ReplaceAllString(detail, "")
		}
		b.WriteString(detail)
	}
	if p.Code != "" {
		fmt.Fprintf(&b, " (%s)", p.Code)
	}
	if e.Status >= 500 && p.RequestID != "" {
		fmt.Fprintf(&b, ", request %s", p.RequestID)
	}
	for _, one := range listed {
		b.WriteString("\n  " + located(one))
	}
	return b.String()
}

// hint is what a detail says of routes that show what there is: who uses commands has others.
var hint = regexp.MustCompile(`: (?:GET|PUT) /v1/.*$`)

// located returns a problem behind its pointer.
func located(p session.Problem) string {
	if p.Pointer == "" {
		return p.Detail
	}
	return p.Pointer + ": " + p.Detail
}

// problemOf returns an answer that is not 2xx as an error.
func problemOf(res *http.Response) *Error {
	e := &Error{Status: res.StatusCode}
	raw, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if json.Unmarshal(raw, &e.Problem) == nil && e.Problem.Code != "" {
		e.Raw = strings.TrimSpace(string(raw))
	} else {
		detail := fmt.Sprintf("%s answered %s, which is not an answer of Varve", res.Request.URL.Host, res.Status)
		e.Problem = protocol.Problem{Detail: detail}
	}
	e.RetryAfter = egress.RetryAfter(res.Header)
	return e
}

// UnreachableError means that nothing answers.
type UnreachableError struct {
	At    string
	Cause error
}

// Error returns what to do about it.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no Varve answers at %s (%v); is varve up running there? Set --url or VARVE_URL to its address",
		e.At, e.Cause)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Cause }

// unreachable returns the error of a request that had no whole answer: that of ctx if it has ended.
func unreachable(ctx context.Context, base *url.URL, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return &UnreachableError{At: base.String(), Cause: err}
}

// Passing reports whether an error may go away by waiting.
func Passing(err error) bool {
	var problem *Error
	if errors.As(err, &problem) {
		return problem.Status == http.StatusTooManyRequests ||
			problem.Status > http.StatusNotImplemented && problem.Status <= http.StatusGatewayTimeout
	}
	return errors.As(err, new(*UnreachableError))
}

// reason returns in a few words why a request has to wait.
func reason(err error) string {
	var down *UnreachableError
	if errors.As(err, &down) {
		return fmt.Sprintf("%v (is varve up running?)", down.Cause)
	}
	return err.Error()
}
