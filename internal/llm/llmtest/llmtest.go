// Package llmtest has the writer of summaries for tests: Scripted gives the answers that a test wants.
package llmtest

import (
	"context"
	"fmt"
	"sync"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// Reply is one answer of Scripted: a text as a model sends it, which is parsed and checked, or an error.
type Reply struct {
	Text string
	Err  error
}

// Scripted is a writer that gives its replies in order and keeps the requests.
type Scripted struct {
	mu       sync.Mutex
	replies  []Reply
	requests []summary.Request
}

// New returns a writer that gives these replies.
func New(replies ...Reply) *Scripted { return &Scripted{replies: replies} }

// Write gives the next reply; when none is left, that is an error, too.
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

// Requests are those that were made so far.
func (s *Scripted) Requests() []summary.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]summary.Request(nil), s.requests...)
}
