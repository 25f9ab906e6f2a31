package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/varve-dev/varve/internal/client"
	"github.com/varve-dev/varve/internal/session"
)

// The exit codes of the program.
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

// exitCode returns the code that the program ends with because of err.
func exitCode(err error) int {
	var problem *client.Error
	switch {
	case errors.As(err, &problem):
		return exitCodeOf(problem)
	case errors.As(err, new(*usageError)):
		return exitUsage
	case errors.As(err, new(*keyError)):
		return exitAuth
	case errors.As(err, new(*client.UnreachableError)):
		return exitUnavailable
	case errors.Is(err, session.ErrNotFound):
		return exitNotFound
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitError
}

// exitCodeOf returns the exit code for an answer of the API.
func exitCodeOf(e *client.Error) int {
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
	if code := e.Problem.Code; code == "client_id_reused" || code == "idempotency_key_reused" {
		return exitConflict
	}
	return exitError
}

// complaint returns the program's last line. With asJSON an error of the API keeps the server's JSON.
func complaint(err error, asJSON bool) string {
	var stopped *interruptedError
	if problem, whole := err.(*client.Error); whole && asJSON && problem.Raw != "" {
		return problem.Raw
	}
	switch {
	case errors.As(err, &stopped):
		return "varve: " + stopped.Error()
	case errors.Is(err, context.Canceled):
		return "varve: interrupted"
	}
	return "varve: " + err.Error()
}

// usageError is a command line that makes no sense.
type usageError struct{ text string }

// Error returns what is wrong with it.
func (e *usageError) Error() string { return e.text }

// keyError means that there is no API key.
type keyError struct{ file string }

// Error returns where a key would be found.
func (e *keyError) Error() string {
	return fmt.Sprintf(
		"no API key: set VARVE_KEY, or point --data at the data directory of a varve up (there is no %s)", e.file)
}
