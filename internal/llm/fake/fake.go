// Package fake is a provider of language models that speaks real HTTP and is none: OpenAI's Chat Completions and
// Responses, and Anthropic's Messages, on one port, for tests and for trying Varve out by hand.
//
// Start at New and Server.Start. A Server checks every request as strictly as the providers do and refuses a wrong one
// with their own error bodies (chat.go, responses.go, messages.go). It answers a right one with a summary that it picks
// out of the conversation in the request (source.go, write.go), or meets it with a Fault (fault.go): chosen by a rate
// and a seed, by a script, or by a function. Some faults are answers that lie, swell, or obey what a message of the
// conversation orders (misbehave.go). Calls and Inputs tell what was asked and what was paid for (record.go).
//
// It shares no code with the product, so that both cannot have the same mistake.
package fake

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Options are what a server does. The zero value answers every right request well, from any model, for any key.
type Options struct {
	Faults float64 // the share of the calls that meet a fault, 0 to 1
	Kinds  []Fault // the faults that are chosen from; nil for all
	Seed   uint64  // of the choice: the n-th call of an input meets the same fault in every run

	// Choose decides about a call, before the rate does; nil, or a zero Step, leaves it to the rate.
	Choose func(Request) Step

	Models map[string]Model // nil for any model
	Key    string           // that a request must have; "" for any
	Delay  time.Duration    // before each answer
	Drip   time.Duration    // between the bytes of a slow answer; 0 for a second
	Brief  bool             // forget the conversations, for long runs
	Ended  func(CallRecord) // is called, one call at a time, when a call has ended; nil for nothing
}

// Model is a model that a server has.
type Model struct {
	Window int           // tokens; 0 for any number
	Delay  time.Duration // before each answer, besides Options.Delay
}

// Step is what happens to a call. The zero Step is a good answer.
type Step struct {
	Fault      Fault
	Text       string        // the answer, as it is; "" for one from the conversation
	Delay      time.Duration // before the answer, besides those
	RetryAfter time.Duration // of Limited and LimitedDate; 0 for a second
}

// Server is a fake provider. It is an http.Handler, which Start serves.
type Server struct {
	options Options

	mu      sync.Mutex
	script  []Step
	calls   []CallRecord
	asked   map[string]int // calls of an input
	running int
	peak    int

	http    *http.Server
	address string
	calm    atomic.Bool
	closing chan struct{}
	close   sync.Once
}

// New returns a server that does not listen yet.
func New(o Options) *Server {
	if o.Drip == 0 {
		o.Drip = time.Second
	}
	return &Server{options: o, asked: map[string]int{}, closing: make(chan struct{})}
}

// Start listens on an address, such as "127.0.0.1:0", until Close.
func (s *Server) Start(address string) error {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	s.address = listener.Addr().String()
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // nobody else closes the listener
		}
	}()
	return nil
}

// Close stops the server and ends the calls that wait for an answer.
func (s *Server) Close() {
	s.close.Do(func() { close(s.closing) })
	if s.http != nil {
		_ = s.http.Close() // its connections are of no more use
	}
}

// URL returns the address without a path: the base URL of Anthropic's clients. OpenAI's have "/v1" after it.
func (s *Server) URL() string { return "http://" + s.address }

// Script has the next calls met by these steps, in order, after those of earlier scripts. Calls that are refused for
// their form take no step.
func (s *Server) Script(steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, steps...)
}

// Calm ends the faults that the rate and Options.Choose bring. Models stay as slow as they are.
func (s *Server) Calm() { s.calm.Store(true) }

// Left returns how many steps of the script no call has met yet.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.script)
}
