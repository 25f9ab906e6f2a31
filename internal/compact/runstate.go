package compact

import (
	"slices"
	"sort"

	"github.com/varve-dev/varve/internal/compact/memory"
	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/wire"
)

// runState is what a stage sees: the whole history in its original figures, the proposals of the stages before it, and
// what the policy protects.
type runState struct {
	*history
	policy policy.Policy
	window float64
	target float64 // tokens
	fixed  float64 // tokens of the target that never leave: leading system messages and overhead
	sum    []int64 // by message: original tokens up to and including it

	protection
	proposals
	texts
	ratioCaps

	contents  []*wire.Content  // by part: of the results that were read
	sums      map[int][32]byte // by part: of those whose digest was needed
	omissions map[int]omission // by part: of the calls that were read
	drafts    map[int]knownDraft

	messagesRead map[decodedMessage]summary.Message
	reader       *summary.Reader

	shown      []memory.Names           // by message: of those that were looked through
	quotations map[int][]memory.Quote   // by part: of the results that were quoted
	written    map[writing]memory.Quote // what calls have written

	expected int // tokens of the message of summaries; 0: the most that it may have
	said     int // about the tokens of all that the user wrote

	write     Write                                              // nil: Extract
	older     func(first, last int64) ([]summary.Message, error) // messages of the log; nil if nothing reads them
	eviction  *eviction                                          // what summarise or truncate has decided
	unwritten error                                              // why the oldest units have no summary and should
	failure   error                                              // of models in whose place Extract has written
	noted     bool                                               // the state changes whether or not the view does
	failed    map[string]error                                   // by stage
}

// protection says which messages and parts stages must not change.
type protection struct {
	leading        int    // number of the leading system messages
	pinned         int    // number of the messages before all that may leave
	seen           []int  // by message: the one with which a request must have had its results, see seenWith
	newestUserKept int    // the newest message of the user, -1 if it is not protected
	spared         []bool // by message: it loads tools, see setStaying
	free           []bool // by part: stages may change it
	held           []bool // by part: it is pinned, so that nothing may change it
	places         pinPlaces
	release        []int // by message: the message with which its protection ended, len(messages) for not yet
	allMayLeave    bool  // above the hard limit even the newest unit may leave
}

// proposals are what the stages have proposed so far.
type proposals struct {
	stage    string // that runs now
	since    int    // the message at which it was first needed
	proposed []proposal
	bare     map[int]bool // by part: of the results whose media leave with their text
	steps    [][]step     // by part: its tokens after the proposals, and since when
	relief   []int64      // by message: the tokens that the proposals save from there on
}

// proposal is what a stage wants for a part.
type proposal struct {
	action    ActionKind
	stage     string
	since     int   // the message with which it became right
	bookend   int   // characters of head and tail, each, that age leaves of it; 0 for all or none
	head      int   // Cap, Bookend: characters of the beginning
	tail      int   // Cap, Bookend: characters of the end
	newer     int64 // Stub: the message that made the part superfluous
	distance  int64 // tokens of the messages after it
	capped    int   // about the tokens after the cap, 0 for no cap: bookends are cut from the capped text
	collapsed int   // tokens after its white space was collapsed, before any cut; 0 if it was not
	media     bool  // it is for the bytes of media
}

// step records that a part has no more than a number of tokens from a message on.
type step struct{ at, tokens int }

// size returns the tokens of the view once all proposals so far are applied.
func (s *runState) size() int64 {
	size := int64(s.in.OverheadTokens)
	for m := range s.messages {
		size += int64(s.messages[m].tokens) - s.relief[m]
	}
	return size
}

// propose asks for an action on part i that became right with message since and that leaves about as many tokens.
func (s *runState) propose(i, since int, p proposal, tokens int) {
	s.proposeAction(i, since, p)
	s.foresee(i, since, tokens)
}

// proposeAction asks for an action. Of two proposals the lower on the ladder counts, and on one rung the earlier.
func (s *runState) proposeAction(i, since int, p proposal) {
	since = max(since, s.since)
	want := &s.proposed[i]
	if p.action > want.action || p.action == want.action && since < want.since {
		p.stage, p.since = s.stage, since
		p.capped, p.collapsed, p.bookend = want.capped, want.collapsed, want.bookend
		*want = p
	}
}

// foresee records that part i has no more than a number of tokens from message at on.
func (s *runState) foresee(i, at, tokens int) {
	if at = max(at, s.since); at >= len(s.messages) {
		return
	}
	tokens += s.media(i)
	s.addRelief(i, -1)
	steps := s.steps[i]
	k := sort.Search(len(steps), func(k int) bool { return steps[k].at > at })
	if k == 0 || steps[k-1].tokens > tokens {
		end := k
		for end < len(steps) && steps[end].tokens >= tokens {
			end++
		}
		s.steps[i] = slices.Replace(steps, k, end, step{at, tokens})
	}
	s.addRelief(i, +1)
}

// addRelief adds what the steps of part i save to the relief; with sign -1 it subtracts that.
func (s *runState) addRelief(i int, sign int64) {
	for at, saved := range s.savings(i) {
		s.relief[at] += sign * int64(saved)
	}
}

// savings yields, for each step of part i that saves something, its message and the tokens that it saves.
func (s *runState) savings(i int) func(yield func(at, saved int) bool) {
	return func(yield func(at, saved int) bool) {
		current := s.parts[i].tokens
		for _, step := range s.steps[i] {
			if saved := current - step.tokens; saved > 0 {
				if !yield(step.at, saved) {
					return
				}
				current = step.tokens
			}
		}
	}
}

// distance returns how many tokens came after message m.
func (s *runState) distance(m int) int64 { return s.sum[len(s.sum)-1] - s.sum[m] }

// reached returns the message with which message m was that many tokens from the end, len(messages) if it is not yet.
func (s *runState) reached(m int, tokens float64) int {
	return sort.Search(len(s.messages), func(at int) bool { return at >= m && float64(s.sum[at]-s.sum[m]) >= tokens })
}

// protected reports whether stages must not change message m.
func (s *runState) protected(m int) bool { return s.release[m] >= len(s.messages) }

// content returns the text of part i, which must be whole in the view.
func (s *runState) content(i int) *wire.Content {
	if s.contents[i] == nil {
		p := &s.parts[i]
		at := wire.Part{Kind: wire.Result, Index: p.index, Value: p.value, CallID: p.callID, Tokens: p.tokens}
		content := wire.ResultText(s.in.Format, s.body(p.message), at)
		s.contents[i] = &content
	}
	return s.contents[i]
}
