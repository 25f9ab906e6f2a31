package main

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

	"github.com/varve-dev/varve/internal/session"
)

// How the program ends.
const (
	exitError       = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitAuth        = 4
	exitConflict    = 5
	exitLimited     = 6
	exitUnavailable = 7
	exitInterrupted = 130
)

// exitCode says how the program ends because of err.
func exitCode(err error) int {
	var problem *apiError
	var usage *usageError
	var key *keyError
	var conflict *conflictError
	var down *unreachableError
	switch {
	case errors.As(err, &problem):
		return problem.exitCode()
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &key):
		return exitAuth
	case errors.As(err, &conflict):
		return exitConflict
	case errors.As(err, &down):
		return exitUnavailable
	case errors.Is(err, session.ErrNotFound):
		return exitNotFound
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitError
}

// describe is what an error says to a person, in one line or a few.
func describe(err error) string {
	var stopped *interruptedError
	switch {
	case errors.As(err, &stopped):
		return stopped.Error()
	case errors.Is(err, context.Canceled):
		return "interrupted"
	}
	return err.Error()
}

// complaint is what the program says last. What is the API's JSON as a whole stays JSON.
func complaint(err error) string {
	var problem *apiError
	if errors.As(err, &problem) && problem.raw == err.Error() {
		return problem.raw
	}
	return "varve: " + describe(err)
}

// apiError is an error that the API answered.
type apiError struct {
	Status    int               `json:"status"`
	Title     string            `json:"title"`
	Code      string            `json:"code"`
	Detail    string            `json:"detail"`
	RequestID string            `json:"request_id"`
	Errors    []session.Problem `json:"errors"`
	after     time.Duration
	raw       string // what Error says instead, if JSON is wanted
}

func (e *apiError) Error() string {
	if e.raw != "" {
		return e.raw
	}
	var b strings.Builder
	listed := e.Errors
	switch {
	case len(listed) == 1 && strings.Contains(e.Detail, listed[0].Detail):
		b.WriteString(located(listed[0]))
		listed = nil
	case len(listed) > 1 && strings.Contains(e.Detail, listed[0].Detail):
		fmt.Fprintf(&b, "%d problems", len(listed))
	case e.Detail == "":
		fmt.Fprintf(&b, "%d %s", e.Status, e.Title)
	default:
		b.WriteString(e.Detail)
	}
	if e.Code != "" {
		fmt.Fprintf(&b, " (%s)", e.Code)
	}
	if e.Status >= 500 && e.RequestID != "" {
		fmt.Fprintf(&b, ", request %s", e.RequestID)
	}
	for _, p := range listed {
		b.WriteString("\n  " + located(p))
	}
	return b.String()
}

func located(p session.Problem) string {
	if p.Pointer == "" {
		return p.Detail
	}
	return p.Pointer + ": " + p.Detail
}

func (e *apiError) exitCode() int {
	switch e.Status {
	case http.StatusNotFound:
		return exitNotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		return exitAuth
	case http.StatusConflict, http.StatusPreconditionFailed:
		return exitConflict
	case http.StatusTooManyRequests:
		return exitLimited
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return exitUnavailable
	}
	switch e.Code {
	case "client_id_reused", "idempotency_key_reused":
		return exitConflict
	}
	return exitError
}

// problem reads an answer that is an error, also one that something between us and the API made.
func (c *Client) problem(res *http.Response) error {
	raw, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	e := &apiError{}
	if json.Unmarshal(raw, e) != nil || e.Code == "" {
		*e = apiError{Detail: fmt.Sprintf("%s answered %s, which is no answer of Varve's", res.Request.URL.Host, res.Status)}
	} else if c.json {
		e.raw = strings.TrimSpace(string(raw))
	}
	e.Status = res.StatusCode
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil {
		e.after = time.Duration(seconds) * time.Second
	}
	return e
}

// usageError is a command line that cannot be.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// keyError says that there is no API key.
type keyError struct{ file string }

func (e *keyError) Error() string {
	return fmt.Sprintf("no API key: set VARVE_KEY, or point --data at the data directory of a varve up (there is no %s)", e.file)
}

// conflictError says that a session holds something else than what should go on in it.
type conflictError struct{ text string }

func (e *conflictError) Error() string { return e.text }

// unreachableError says that nothing answers.
type unreachableError struct {
	at    string
	cause error
}

func (e *unreachableError) Error() string {
	return fmt.Sprintf("no Varve answers at %s (%v); is varve up running there? --url or VARVE_URL says where to look", e.at, e.cause)
}

func (e *unreachableError) Unwrap() error { return e.cause }

func unreachable(ctx context.Context, base *url.URL, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return &unreachableError{at: base.String(), cause: err}
}

// passing reports whether an error may go away by waiting.
func passing(err error) bool {
	var problem *apiError
	var down *unreachableError
	return errors.As(err, &down) || errors.As(err, &problem) && (problem.exitCode() == exitUnavailable || problem.exitCode() == exitLimited)
}

// reason says in a few words why to wait because of a passing error.
func reason(err error) string {
	var down *unreachableError
	if errors.As(err, &down) {
		return fmt.Sprintf("%v (is varve up running?)", down.cause)
	}
	return err.Error()
}

func retryAfter(err error) time.Duration {
	var problem *apiError
	if errors.As(err, &problem) {
		return problem.after
	}
	return 0
}
