// Package llm writes the summaries of the summarise stage.
//
// Start at New, which returns the Writer that a policy names. Extract needs no model; the one in llmtest answers from a
// script, for tests. internal/compact/summary has the rules for summaries and the prompts for models.
package llm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

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
		return summary.Answer{}, summary.ErrEmpty
	}
	return a, nil
}

var writers = map[string]Writer{"extract": Extract{}}

// New returns the writer of that name. Its error lists the known names.
func New(name string) (Writer, error) {
	w, ok := writers[name]
	if !ok {
		names := slices.Sorted(maps.Keys(writers))
		return nil, fmt.Errorf("no writer is named %q: the writers are %s", name, strings.Join(names, ", "))
	}
	return w, nil
}
