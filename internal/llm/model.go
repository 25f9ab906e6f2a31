package llm

import (
	"context"
	"errors"
	"time"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// Model is a language model: one that an operator has configured, or a provider's protocol that asks one.
type Model interface {
	// Ask sends a dialogue and returns the answer. Its errors are an *Error or that of ctx.
	Ask(ctx context.Context, d summary.Dialogue) (Reply, error)
}

// Reply is what a model answered.
type Reply struct {
	Text  string
	Model string // as the provider names it
	Usage Usage
}

// Usage is what a call used, in tokens as the provider counts them.
type Usage struct {
	Input     int64 `json:"input_tokens"` // those from its cache included
	Cached    int64 `json:"cached_tokens"`
	Output    int64 `json:"output_tokens"`          // those of reasoning included
	Estimated bool  `json:"is_estimated,omitempty"` // the provider did not say, or nothing that can be
}

// Price is what a model costs, in millionths of the operator's currency for a token: dollars for a million of them.
type Price struct {
	Input  float64 `json:"input"`
	Cached float64 `json:"cached"`
	Output float64 `json:"output"`
}

// Of returns what a use costs, in millionths of the operator's currency.
func (p Price) Of(u Usage) float64 {
	return float64(u.Input-u.Cached)*p.Input + float64(u.Cached)*p.Cached + float64(u.Output)*p.Output
}

// The kinds of failures of a call.
var (
	ErrLimited     = errors.New("the provider limits the rate")
	ErrUnavailable = errors.New("the provider cannot be reached or fails")
	ErrRejected    = errors.New("the provider does not take the request")
	ErrRefused     = errors.New("the model refuses to answer")
	ErrMalformed   = errors.New("the provider's answer is malformed")
	ErrCut         = errors.New("the answer was cut at its limit")
	ErrOpen        = errors.New("the model has failed too often and is not asked for a while")
)

// Error is a call that failed. It says nothing of what was sent, and quotes no sentence of the provider, which might.
type Error struct {
	Kind       error // one of the above
	Model      string
	Status     int           // of HTTP, 0 for none
	RetryAfter time.Duration // that the provider asked for, or until the next probe after ErrOpen; 0 for none
	Usage      Usage         // of an answer that came but cannot be used
	Reason     string        // which failure of the kind: an identifier of the provider's, or a few words
	// Free says that the provider has not worked on the call: it was not reached, or answered with an error. Otherwise
	// the call may have cost what Usage says or, if that is zero, anything up to Configured.Bound.
	Free bool
}

// Error returns the kind, the model and the reason.
func (e *Error) Error() string {
	text := e.Model + ": " + e.Kind.Error()
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }
