package compact

import (
	"slices"
	"sort"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/wire"
)

// stage decides one thing about parts. It reads a scene, proposes actions, and knows of no other stage.
type stage struct {
	name    string
	enabled func(*policy.Policy) bool
	over    func(*runState) float64 // entered while the view has more tokens than this; nil: than the target
	plan    func(*runState)
}

// scene is what a stage sees: the whole history in its original figures, what stages before it proposed, and what a
// policy protects.
type runState struct {
	*history
	policy         policy.Policy
	window         float64
	target         float64 // tokens
	pinned         int     // how many system messages lead the session
	newestUserKept int     // the newest message of the user, -1 if it is not protected
	sum            []int64 // by message: original tokens up to and including it
	free           []bool  // by part: stages may touch it at all
	release        []int   // by message: the message with which it ceased to be protected, len(messages) for not yet

	stage     string // the one that runs
	since     int    // the message at which it was first needed
	proposed  []proposal
	steps     [][]step // by part: what the proposals leave of it, and since when
	relief    []int64  // by message: the tokens that the proposals save from there on
	contents  []*wire.Content
	omissions map[int]omission // by part: of the calls that were looked at

	write    Write
	eviction *eviction        // what summarise or truncate has decided
	failed   map[string]error // by stage

	words                         *words
	text, unquoted, quoted, spare []byte // buffers of settle
}

// proposal is what a stage wants for a part.
type proposal struct {
	action     ActionKind
	stage      string
	since      int   // the message with which it became right
	head, tail int   // Cap, Bookend: characters
	newer      int64 // Stub: the message that made the part superfluous
	distance   int64 // tokens of the messages after it
	capped     int   // about the tokens that the cap left, 0 if there was none: bookends are cut from what it left
	collapsed  int   // those that collapsing its white space left before it was cut, 0 if it was not
}

// step says that a part has so many tokens from a message on.
type step struct{ at, tokens int }

func newRunState(in Input, h *history) *runState {
	window := float64(in.WindowTokens)
	s := &runState{
		history: h, policy: in.Policy, window: window, target: in.Policy.Target * window, pinned: h.pinned(), newestUserKept: -1,
		sum: make([]int64, len(h.messages)), free: make([]bool, len(h.parts)),
		proposed: make([]proposal, len(h.parts)), steps: make([][]step, len(h.parts)), relief: make([]int64, len(h.messages)),
		contents: make([]*wire.Content, len(h.parts)), omissions: map[int]omission{},
	}
	if in.Policy.Protect.NewestUser {
		s.newestUserKept = h.newestUser()
	}
	total := int64(0)
	for m := range h.messages {
		total += int64(h.messages[m].tokens)
		s.sum[m] = total
	}
	for i := range h.parts {
		p := &h.parts[i]
		s.free[i] = p.paired && p.value.End > p.value.Start && !slices.Contains(in.Policy.Protect.Tools, p.tool)
	}
	s.release = s.releases()
	return s
}

// run lets a stage plan if the view was over its limit at any message of the history, not only at the last: so what was
// entered once stays entered. It returns the message that needed it first, 0 for none.
func (s *runState) runStage(number int) (entered int64) {
	stage := &stages[number]
	if !stage.enabled(&s.policy) {
		return 0
	}
	if s.since = s.needed(number); s.since == len(s.messages) {
		return 0
	}
	entered = s.entered[number]
	if entered == 0 {
		entered = s.messages[s.since].seq
	}
	s.stage = stage.name
	stage.plan(s)
	return entered
}

// needed finds the first message with which the view, compacted by the stages before, was over a stage's limit.
func (s *runState) needed(number int) int {
	if at := s.entered[number]; at > 0 {
		return sort.Search(len(s.messages)-1, func(m int) bool { return s.messages[m].seq >= at })
	}
	limit := s.target
	if over := stages[number].over; over != nil {
		limit = over(s)
	}
	size := int64(s.in.OverheadTokens)
	for m := range s.messages {
		if size += int64(s.messages[m].tokens) - s.relief[m]; float64(size) > limit {
			return m
		}
	}
	return len(s.messages)
}

// size is what the view has once all proposals so far are carried out.
func (s *runState) size() int64 {
	size := int64(s.in.OverheadTokens)
	for m := range s.messages {
		size += int64(s.messages[m].tokens) - s.relief[m]
	}
	return size
}

// propose asks for an action on part i that became right with message since and leaves about so many tokens.
func (s *runState) propose(i, since int, p proposal, tokens int) {
	s.proposeAction(i, since, p)
	s.foresee(i, since, tokens)
}

// want asks for an action. What is lower on the ladder stays; on one rung what came first.
func (s *runState) proposeAction(i, since int, p proposal) {
	since = max(since, s.since)
	want := &s.proposed[i]
	if p.action.rung() > want.action.rung() || p.action.rung() == want.action.rung() && since < want.since {
		p.stage, p.since = s.stage, since
		p.capped, p.collapsed = want.capped, want.collapsed
		*want = p
	}
}

// leaves notes that part i has no more than so many tokens from message at on.
func (s *runState) foresee(i, at, tokens int) {
	if at = max(at, s.since); at >= len(s.messages) {
		return
	}
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

// relieve adds what the steps of part i save to the relief, or takes it away.
func (s *runState) addRelief(i int, sign int64) {
	current := s.parts[i].tokens
	for _, step := range s.steps[i] {
		if saved := current - step.tokens; saved > 0 {
			s.relief[step.at] += sign * int64(saved)
			current = step.tokens
		}
	}
}

// distance is how many tokens came after message m.
func (s *runState) distance(m int) int64 { return s.sum[len(s.sum)-1] - s.sum[m] }

// reached finds the message with which message m was so many tokens from the end, len(messages) if it is not yet.
func (s *runState) reached(m int, tokens float64) int {
	return sort.Search(len(s.messages), func(at int) bool { return at >= m && float64(s.sum[at]-s.sum[m]) >= tokens })
}

// protected reports whether the policy keeps stages off message m.
func (s *runState) protected(m int) bool { return s.release[m] >= len(s.messages) }

// content returns what part i says. It must be whole in the view.
func (s *runState) content(i int) *wire.Content {
	if s.contents[i] == nil {
		p := &s.parts[i]
		at := wire.Part{Kind: wire.Result, Index: p.index, Value: p.value, CallID: p.callID, Tokens: p.tokens}
		content := wire.ResultText(s.in.Format, s.body(p.message), at)
		s.contents[i] = &content
	}
	return s.contents[i]
}
