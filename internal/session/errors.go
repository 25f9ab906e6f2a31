package session

import (
	"errors"
	"fmt"
	"strings"
)

// The errors of the domain. internal/api maps each to a status and a code in one table.
var (
	ErrNotFound          = errors.New("not found")
	ErrUnauthorized      = errors.New("the key is missing, malformed, unknown, expired or revoked")
	ErrForbidden         = errors.New("the key has no right to this")
	ErrClientIDReused    = errors.New("a client_id names another message already")
	ErrIdempotencyReused = errors.New("the Idempotency-Key was used for another request")
	ErrTooManyMessages   = errors.New("the session is full")
	ErrExists            = errors.New("it exists already")
	ErrEnded             = errors.New("the run has ended")
	ErrStale             = errors.New("the base checkpoint is not the newest any more")
	ErrPruned            = errors.New("the checkpoint's body is not kept any more")
	ErrViewLost          = fmt.Errorf("the view is not kept: %w", ErrPruned)
	ErrLogTooLarge       = errors.New("the log is too large to be compacted from its beginning")
	ErrTenantExists      = errors.New("there is a tenant with this id or name")
	ErrTooManyKeys       = errors.New("the tenant has as many live keys as it may")
	ErrKeyEnded          = errors.New("the key has expired or was revoked")
	ErrKeyRotated        = errors.New("another key has taken the place of the key")
	ErrTooManyTokens     = errors.New("the session has as many live tokens as it may")
	ErrArchived          = errors.New("the session is archived")
	ErrThawing           = errors.New("the session is cold, and is not back yet")
	ErrRestoring         = errors.New("the session is being restored from its archive")
	ErrHeld              = errors.New("a legal hold keeps the session")
	ErrTenantHeld        = errors.New("a legal hold keeps the tenant")
	ErrTenantDeleted     = errors.New("the tenant is being deleted")
	ErrResultStore       = errors.New("the result store does not answer")
	ErrWritten           = errors.New("another request has written to the body, or it is complete")
	ErrBusy              = errors.New("too many greps and searches of the tenant run at once")
	ErrOverCapacity      = errors.New("the process has no room for this work now")
	ErrTooHeavy          = errors.New("the work needs more memory than the process has")
	ErrSessionBusy       = errors.New("others write to the session, or hold its lock")
	ErrOtherBasis        = errors.New("the session is not what it was when it was read")
	ErrTenantBusy        = errors.New("the tenant's other requests use its share of the database connections")
	ErrModelBudget       = errors.New("the budget for language models is used up")
	ErrModelAsked        = errors.New("another process asks the model the same")
)

// StaleError is returned if an append's expected_seq is not the session's last seq.
type StaleError struct{ Expected, Current int64 }

func (e *StaleError) Error() string {
	return fmt.Sprintf("expected_seq is %d, but the session's last seq is %d", e.Expected, e.Current)
}

// DiffersError is returned if there is a session of an id, and not one as it was to be made.
type DiffersError struct{ Member, Has, Wanted string }

func (e *DiffersError) Error() string {
	return fmt.Sprintf("the session's %s is %q, not %q: leave it out of session, or change it with PATCH "+
		"/v1/sessions/{id}; a format never changes", e.Member, e.Has, e.Wanted)
}

// LostViewError is an ErrViewLost: the view at that seq began with a checkpoint whose body is not kept any more.
type LostViewError struct {
	Seq        int64 // of the view that was asked for
	Checkpoint int
	Next       int64 // the next seq whose view is kept; 0 for none
}

func (e *LostViewError) Error() string {
	text := fmt.Sprintf("the view as of seq %d began with checkpoint %d, whose body is not kept any more", e.Seq,
		e.Checkpoint)
	if e.Next > 0 {
		text += fmt.Sprintf("; the next one that is kept is as of seq %d", e.Next)
	}
	return text + "; GET /v1/sessions/{id}/messages has every message"
}

// Unwrap returns ErrViewLost.
func (e *LostViewError) Unwrap() error { return ErrViewLost }

// CannotFitError is returned if a view's system messages and newest unit alone are larger than the requested bound.
type CannotFitError struct{ MaxTokens, Minimum int64 }

func (e *CannotFitError) Error() string {
	return fmt.Sprintf("max_tokens is %d, but the system messages and the newest unit alone have %d tokens",
		e.MaxTokens, e.Minimum)
}

// WindowExceededError is returned if what cannot be cut of a view is larger than its session's window.
type WindowExceededError struct {
	Room    int64   // tokens that have room in the window beside the overhead
	Minimum int64   // tokens of the smallest view
	Largest []int64 // the seqs of its largest messages
}

func (e *WindowExceededError) Error() string {
	seqs := strings.Trim(strings.ReplaceAll(fmt.Sprint(e.Largest), " ", ", "), "[]")
	return fmt.Sprintf("the window has room for %d tokens beside the overhead, but the smallest view has %d: images, "+
		"files, reasoning and what tools of the provider returned are not cut; its largest messages have the seqs %s",
		e.Room, e.Minimum, seqs)
}

// Problem is one mistake in an input: where it is, which rule it breaks, and what would be right.
type Problem struct {
	Pointer string `json:"pointer"` // RFC 6901 JSON pointer into the body, or the name of a query parameter or header
	Code    string `json:"code"`
	Detail  string `json:"detail"`
}

// Warning is what the caller should know of a request that was carried out.
type Warning struct {
	Pointer string `json:"pointer"` // into the body, or the name of a query parameter
	Code    string `json:"code"`
	Detail  string `json:"detail"`
}

// InvalidError lists all mistakes in an input.
type InvalidError struct {
	Code     string // the problem's code as a whole: invalid_request, unknown_field, invalid_json, …
	Problems []Problem
}

func (e *InvalidError) Error() string {
	if len(e.Problems) == 0 {
		return e.Code
	}
	first := e.Problems[0].Detail
	if pointer := e.Problems[0].Pointer; pointer != "" {
		first = pointer + ": " + first
	}
	if len(e.Problems) == 1 {
		return first
	}
	return fmt.Sprintf("%s (and %d more)", first, len(e.Problems)-1)
}

// Invalid returns an InvalidError with one problem.
func Invalid(pointer, code, format string, args ...any) error {
	problem := Problem{Pointer: pointer, Code: code, Detail: fmt.Sprintf(format, args...)}
	return &InvalidError{Code: code, Problems: []Problem{problem}}
}
