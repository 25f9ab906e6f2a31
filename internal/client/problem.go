package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// Error is an answer that is an error, also one that something between the client and the API made.
type Error struct {
	Status     int
	Problem    protocol.Problem // only Detail is set if the answer was not Varve's
	RetryAfter time.Duration    // 0 if the server did not say
	Raw        string           // the server's JSON; "" if the answer was not Varve's
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
		b.WriteString(p.Detail)
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

func located(p session.Problem) string {
	if p.Pointer == "" {
		return p.Detail
	}
	return p.Pointer + ": " + p.Detail
}

func problemOf(res *http.Response) *Error {
	e := &Error{Status: res.StatusCode}
	raw, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if json.Unmarshal(raw, &e.Problem) == nil && e.Problem.Code != "" {
		e.Raw = strings.TrimSpace(string(raw))
	} else {
		e.Problem = protocol.Problem{Detail: fmt.Sprintf("%s answered %s, which is not an answer of Varve", res.Request.URL.Host, res.Status)}
	}
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}

// UnreachableError means that nothing answers.
type UnreachableError struct {
	At    string
	Cause error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no Varve answers at %s (%v); is varve up running there? Set --url or VARVE_URL to its address", e.At, e.Cause)
}

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
		switch problem.Status {
		case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
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

func retryAfter(err error) time.Duration {
	var problem *Error
	if errors.As(err, &problem) {
		return problem.RetryAfter
	}
	return 0
}
