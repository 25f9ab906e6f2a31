// Package llm writes the summaries of the summarise stage.
//
// Start at New, which returns the Writer that a policy names. Extract needs no model; llmtest has one for tests that
// answers from a script. What a summary may be and how a model is asked for one is in internal/compact/summary.
package llm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// Writer writes summaries. If it returns an error, the view does without one.
type Writer interface {
	Write(ctx context.Context, r summary.Request) (summary.Answer, error)
}

// Extract is the writer that needs no model, see summary.Extract.
type Extract struct{}

// Write returns summary.ErrEmpty if the messages cannot be said in fewer words, or the error of ctx.
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
		return nil, fmt.Errorf("no writer is named %q: the writers are %s", name, strings.Join(names(), ", "))
	}
	return w, nil
}

func names() []string {
	all := make([]string, 0, len(writers))
	for name := range writers {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
