package main

import (
	"context"
	"fmt"
)

// conversation is what was said, in no provider's format yet.
type conversation struct {
	system string
	turns  []turn
}

// turn is a user's text, or an assistant's text and calls with their results.
type turn struct {
	user    string
	text    string
	calls   []call
	results []result
}

type result struct {
	text   string
	failed bool
}

// story records a conversation while it is played. After a failure nothing more is recorded, so a plot need not look at
// every step.
type story struct {
	ctx     context.Context
	work    *workspace
	said    conversation
	bytes   int
	calls   int
	seen    map[string]int // how often a file was read
	failure error          // the first that stops the recording
}

// user says something.
func (s *story) user(text string) {
	s.bytes += len(text)
	s.said.turns = append(s.said.turns, turn{user: text})
}

// assistant says something and makes calls, all in one message; it returns what the last one answered.
func (s *story) assistant(text string, calls ...call) (last result) {
	if s.failure != nil {
		return result{}
	}
	t := turn{text: text, calls: calls}
	s.bytes += len(text)
	for _, c := range calls {
		answer, failed, err := c.answer(s.ctx, s.work)
		if err != nil {
			s.failure = err
			return result{}
		}
		last = result{text: answer, failed: failed}
		t.results = append(t.results, last)
		s.calls++
		s.bytes += len(answer) + c.size()
	}
	s.said.turns = append(s.said.turns, t)
	return last
}

// mustFail is assistant with a last call that has to fail: the plot goes on from its failure.
func (s *story) mustFail(text string, calls ...call) {
	if r := s.assistant(text, calls...); s.failure == nil && !r.failed {
		s.failure = fmt.Errorf("after %q the last call should have failed, but answered: %.300s", text, r.text)
	}
}

// mustPass is assistant with a last call that has to succeed.
func (s *story) mustPass(text string, calls ...call) {
	if r := s.assistant(text, calls...); s.failure == nil && r.failed {
		s.failure = fmt.Errorf("after %q the last call failed: %.300s", text, r.text)
	}
}

// tokens is the size by the measure of 4 bytes a token.
func (s *story) tokens() int { return s.bytes / 4 }

func (c call) size() int {
	n := 0
	for _, a := range c.args {
		n += len(a.name) + len(fmt.Sprint(a.value))
	}
	return n
}
