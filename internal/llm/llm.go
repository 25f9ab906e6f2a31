// Package llm asks the language models that an operator has configured, over HTTP by three protocols.
//
// Start at Open, which returns the models by the names that policies use; Model is what each can do. Around
// a call are its slot, its deadline, retries and a circuit breaker. Extract is the writer of summaries that needs no
// model; the one in llmtest answers from a script, for tests. internal/compact/summary has the rules for summaries and
// the prompts, and package modelcall what keeps, divides and bounds the calls.
package llm

import (
	"context"
	"fmt"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// Writer writes summaries. If it returns an error, the view has no summary.
type Writer interface {
	Write(ctx context.Context, r summary.Request) (summary.Answer, error)
}

// Extract is the writer that needs no model, see summary.Extract.
type Extract struct{}

// Write returns the summary. Its error is summary.ErrEmpty if a summary would not be shorter, or the error of ctx.
func (Extract) Write(ctx context.Context, r summary.Request) (summary.Answer, error) {
	if err := ctx.Err(); err != nil {
		return summary.Answer{}, err
	}
	a := summary.Extract(r)
	if a.Retain+a.Summary == "" {
		return summary.Answer{}, fmt.Errorf("no summary would be shorter than the messages: %w", summary.ErrEmpty)
	}
	return a, nil
}
