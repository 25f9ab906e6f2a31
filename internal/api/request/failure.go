package request

import (
	"fmt"

	"github.com/varve-dev/varve/internal/session"
)

// The codes that more than one file names. internal/api/errors.go lists all codes with their statuses.
const (
	InvalidJSON    = "invalid_json"
	InvalidRequest = "invalid_request"
	InvalidMessage = "invalid_message"
	UnknownField   = "unknown_field"
	UnknownModel   = "unknown_model"
	TooMany        = "too_many_messages"

	NotFound        = "not_found"
	RequestTimedOut = "request_timeout"
	OutsideRange    = "range_not_satisfiable"
	Unavailable     = "unavailable"
	InternalError   = "internal"
)

// Failure is an error with its code and what the caller should know of it.
type Failure struct {
	Code     string
	Detail   string
	Problems []session.Problem
	Minimum  *int64 // of view_cannot_fit
	Current  *int64 // of stale_expected_seq
	Size     int    // of range_not_satisfiable: how many bytes there are
}

func (f *Failure) Error() string { return f.Code + ": " + f.Detail }

// Fail returns a *Failure.
func Fail(code, format string, args ...any) error {
	return &Failure{Code: code, Detail: fmt.Sprintf(format, args...)}
}
