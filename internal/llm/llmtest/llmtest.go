// Package llmtest has the writer of summaries for tests: Scripted returns the answers that a test gives it.
package llmtest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// Reply is one answer of Scripted: a text as a model sends it, which is parsed and checked, or an error.
type Reply struct {
	Text string
	Err  error
}

// Scripted is a writer that returns its replies in order and keeps the requests.
type Scripted struct {
	mu       sync.Mutex
	replies  []Reply
	requests []summary.Request
}

// New returns a writer with these replies.
func New(replies ...Reply) *Scripted { return &Scripted{replies: replies} }

// Write returns the next reply, or an error when none is left.
func (s *Scripted) Write(ctx context.Context, r summary.Request) (summary.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	if err := ctx.Err(); err != nil {
		return summary.Answer{}, err
	}
	if len(s.replies) == 0 {
		return summary.Answer{}, fmt.Errorf("request %d has no reply", len(s.requests))
	}
	reply := s.replies[0]
	s.replies = s.replies[1:]
	if reply.Err != nil {
		return summary.Answer{}, reply.Err
	}
	return summary.Accept(reply.Text, r)
}

// Requests returns the requests so far.
func (s *Scripted) Requests() []summary.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}
