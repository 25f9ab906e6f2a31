// Package llm asks the language models that an operator has configured, over HTTP by three protocols.
//
// Start at Open, which returns the models by the names that policies use; Model is what each can do. Around
// a call are its slot, its deadline, retries and a circuit breaker. internal/compact/summary has the rules for
// summaries and the prompts, package modelcall what keeps, divides and bounds the calls, and llmtest a writer that
// answers from a script, for tests.
package llm

import (
	"context"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// Writer writes summaries. If it returns an error, the view has no summary.
type Writer interface {
	Write(ctx context.Context, r summary.Request) (summary.Answer, error)
}
