package main

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/terminal"
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
	var own *failure
	switch {
	case errors.As(err, &problem):
		return cmp.Or(apiExitCodes[problem.Status], apiExitCodes[problem.Problem.Code], exitError)
	case errors.As(err, &own):
		return own.code
	case errors.As(err, new(command.Usage)):
		return exitUsage
	case errors.As(err, new(*client.UnreachableError)):
		return exitUnavailable
	case errors.Is(err, session.ErrNotFound):
		return exitNotFound
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitError
}

// apiExitCodes are the exit codes for statuses and codes of the API's errors; all others end with exitError.
var apiExitCodes = map[any]int{
	http.StatusNotFound:           exitNotFound,
	http.StatusUnauthorized:       exitAuth,
	http.StatusForbidden:          exitAuth,
	http.StatusConflict:           exitConflict,
	http.StatusPreconditionFailed: exitConflict,
	"client_id_reused":            exitConflict,
	"idempotency_key_reused":      exitConflict,
	http.StatusTooManyRequests:    exitLimited,
	http.StatusBadGateway:         exitUnavailable,
	http.StatusServiceUnavailable: exitUnavailable,
	http.StatusGatewayTimeout:     exitUnavailable,
}

// complaint returns the program's last line. With asJSON an error of the API keeps the server's JSON.
func complaint(err error, asJSON bool) string {
	var own *failure
	if problem, whole := err.(*client.Error); whole && asJSON && problem.Raw != "" {
		return problem.Raw
	}
	switch {
	case errors.As(err, &own) && own.code == exitInterrupted:
		return "varve: " + own.text
	case errors.Is(err, context.Canceled):
		return "varve: interrupted"
	}
	return "varve: " + terminal.Plain(err.Error())
}

// failure is an error of the program itself: the exit code, and what the user can do about it.
type failure struct {
	code int
	text string
}

// wrong returns the error of a command that has found a number of things wrong, nil for none.
func wrong(n int) error {
	if n == 0 {
		return nil
	}
	return &failure{exitFindings, thingsWrong(n)}
}

// thingsWrong says how many things are wrong.
func thingsWrong(n int) string {
	if n == 1 {
		return "1 thing is wrong"
	}
	return terminal.Count(n, "thing") + " are wrong"
}

// Error returns the text.
func (e *failure) Error() string { return e.text }
