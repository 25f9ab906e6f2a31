package fake

import (
	"slices"
	"time"
)

// CallRecord is one call, and what became of it.
type CallRecord struct {
	Request Request
	Input   string // see Request.Input
	Fault   Fault  // "" for none
	Status  int    // of HTTP; 0 for no answer
	Refused string // why the request was refused; "" if it was not
	Text    string // of the answer
	Usage   Usage  // of the answer, whether or not it says it
	Paid    bool   // the answer was good and began to leave
	Began   time.Time
	Ended   time.Time
}

// Usage is what a call used, in tokens of four characters.
type Usage struct{ Input, Output int }

// Calls returns the calls that have ended, in the order of their ends.
func (s *Server) Calls() []CallRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Running returns how many calls run now, and how many ran at once at the peak.
func (s *Server) Running() (now, peak int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running, s.peak
}

// Input is a question, and how often it was asked and answered.
type Input struct {
	Calls int // that were not refused
	Paid  int // that got a good answer
}

// Inputs returns every input that was asked.
func (s *Server) Inputs() map[string]Input {
	inputs := map[string]Input{}
	for _, c := range s.Calls() {
		if c.Refused != "" {
			continue
		}
		i := inputs[c.Input]
		i.Calls++
		if c.Paid {
			i.Paid++
		}
		inputs[c.Input] = i
	}
	return inputs
}

// begin counts a call that runs.
func (s *Server) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running++
	s.peak = max(s.peak, s.running)
}

// end records a call.
func (s *Server) end(c *CallRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	c.Ended = time.Now()
	if s.options.Brief {
		c.Request.Body, c.Request.Messages = nil, nil
		c.Text = ""
	}
	s.calls = append(s.calls, *c)
	if s.options.Ended != nil {
		s.options.Ended(*c)
	}
}
