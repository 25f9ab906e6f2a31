package fake

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
)

// Fault is what goes wrong with a call.
type Fault string

// The faults of a provider, and of the way to it.
const (
	Timeout      Fault = "timeout"       // no answer, ever
	Limited      Fault = "429"           // with Retry-After in seconds
	LimitedDate  Fault = "429-date"      // with Retry-After as a date
	LimitedBare  Fault = "429-bare"      // without Retry-After
	Error500     Fault = "500"           //
	Error502     Fault = "502"           // with HTML, as a gateway answers
	Error503     Fault = "503"           //
	Error529     Fault = "529"           // overloaded, as Anthropic says
	Reset        Fault = "reset"         // the connection, before an answer
	ResetWithin  Fault = "reset-within"  // in the middle of the body
	InvalidJSON  Fault = "invalid-json"  // with status 200
	ErrorBody    Fault = "error-body"    // an error with status 200
	Drip         Fault = "drip"          // a byte at a time, see Options.Drip
	UsageMissing Fault = "usage-missing" // from an answer that is good else
)

// The faults of a model.
const (
	Empty         Fault = "empty"          // no text
	Refusal       Fault = "refusal"        // in the provider's form
	Cut           Fault = "cut"            // at max_tokens, as the answer says
	OverLong      Fault = "over-long"      // more than max_tokens
	WrongLanguage Fault = "wrong-language" // and nothing of the conversation
	Echo          Fault = "echo"           // of the request
	Lie           Fault = "lie"            // numbers, paths and ids that are not in the conversation, in a good answer
	Inflate       Fault = "inflate"        // longer than the conversation
	Obey          Fault = "obey"           // what messages of the conversation order; a good answer if none does
)

// Faults returns every fault.
func Faults() []Fault {
	return []Fault{
		Timeout, Limited, LimitedDate, LimitedBare, Error500, Error502, Error503, Error529, Reset, ResetWithin,
		InvalidJSON, ErrorBody, Drip, UsageMissing, Empty, Refusal, Cut, OverLong, WrongLanguage, Echo, Lie, Inflate,
		Obey,
	}
}

// Usable reports whether an answer with this fault is one that a client must pay for and can use.
func (f Fault) Usable() bool { return f == "" || f == UsageMissing }

// statuses are the HTTP statuses of faults that are not 200.
var statuses = map[Fault]int{
	Limited: 429, LimitedDate: 429, LimitedBare: 429, Error500: 500, Error502: 502, Error503: 503, Error529: 529,
}

// next returns what happens to a call: by the script, by the options' function, or by the rate.
func (s *Server) next(r Request, input string) Step {
	s.mu.Lock()
	nth := s.asked[input]
	s.asked[input]++
	if len(s.script) > 0 {
		step := s.script[0]
		s.script = s.script[1:]
		s.mu.Unlock()
		return step
	}
	s.mu.Unlock()
	if s.calm.Load() {
		return Step{}
	}
	if s.options.Choose != nil {
		if step := s.options.Choose(r); step != (Step{}) {
			return step
		}
	}
	return s.chance(input, nth)
}

// chance decides by the seed what the n-th call of an input meets.
func (s *Server) chance(input string, nth int) Step {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(input)) // it does not fail
	random := rand.New(rand.NewPCG(s.options.Seed+uint64(nth), hash.Sum64()))
	if random.Float64() >= s.options.Faults {
		return Step{}
	}
	kinds := s.options.Kinds
	if len(kinds) == 0 {
		kinds = Faults()
	}
	return Step{Fault: kinds[random.IntN(len(kinds))]}
}

// Knows reports whether there is a fault of that name.
func Knows(name string) bool { return slices.Contains(Faults(), Fault(name)) }
