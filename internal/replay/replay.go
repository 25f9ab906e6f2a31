// Package replay measures what compaction keeps of recorded sessions. Each session grows message by message and is
// compacted as a worker would do it, by its recorded times. At every message of the agent the view is what its model
// would have been sent: the measure is whether the view still holds the strings that the agent's calls use, what the
// requests cost, and what it has left of the user's words and of planted facts. It is pure: no database, no files, no
// clock, so the same sessions give the same figures.
//
// Start at Measure, which measures one session under one contender in one window, and at Summarise, which compares the
// contenders at equal mean size of the view. Outcomes are plain data, so that a long measurement can be stored piece by
// piece and continued.
package replay

import (
	"sync"
	"time"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/session"
)

// Session is a recorded session. It must not be changed after its first measurement; several may run at a time.
type Session struct {
	Name     string // unique among those that are measured together; the halves and the bootstrap go by it
	Format   session.Format
	Messages []Message // by seq
	CPU      admit.Processors

	once      sync.Once
	index     *index
	err       error
	questions []Question
	facts     []fact // that were planted
	seed      int    // of the facts, 0 for none
}

// Message is one message of the log.
type Message struct {
	Seq    int64
	Body   []byte
	Tokens int       // estimated when it was appended
	At     time.Time // when it was appended; zero if that is not known: 20 s after the one before
}

// Tokens returns the tokens of the whole log.
func (s *Session) Tokens() (sum int64) {
	for i := range s.Messages {
		sum += int64(s.Messages[i].Tokens)
	}
	return sum
}

// Reaches reports whether the session is long enough to be compacted in a window of this many tokens.
func (s *Session) Reaches(window int) bool { return float64(s.Tokens()) >= lateShare*float64(window) }

// lateShare is the share of the window from which on the requests of a session are late.
const lateShare = 0.8

// lateTokens is how many tokens of the log come before the late requests that are compared at equal mean size.
const lateTokens = 40_000
