package compact

import (
	"slices"

	"github.com/varve-dev/varve/internal/wire"
)

// stage decides one thing about results. Its plan reads a scene, proposes actions, and knows of no other stage; it
// returns false if the policy keeps it from planning at all.
type stage struct {
	name string
	plan func(*scene) bool
}

// scene is what a stage sees: the whole history in its original figures, what stages before it proposed, and what a
// policy protects.
type scene struct {
	*history
	policy Policy
	window float64
	target float64 // tokens
	pinned int     // how many system messages lead the session
	spoken int     // the newest message of the user, -1 if it is not protected
	stage  string  // the one that runs

	wants    []proposal      // by result: the lowest on the ladder so far
	foreseen []int           // by result: about how many tokens it then has
	relief   []int64         // by message: the tokens that the proposals save from there on
	contents []*wire.Content // by result: of those that were looked at

	text, unquoted []byte // buffers of settle
}

// proposal is what a stage wants for a result.
type proposal struct {
	do         Do
	stage      string
	head, tail int   // Cap, Bookend: characters
	newer      int64 // Stub: the message with the newer result
	distance   int64 // tokens of the messages after it
}

func newScene(in Input, h *history) *scene {
	window := float64(in.WindowTokens)
	s := &scene{
		history: h, policy: in.Policy, window: window, target: in.Policy.Target * window,
		wants: make([]proposal, len(h.results)), foreseen: make([]int, len(h.results)), relief: make([]int64, len(h.messages)),
		contents: make([]*wire.Content, len(h.results)), pinned: h.pinned(), spoken: -1,
	}
	if in.Policy.Protect.NewestUser {
		s.spoken = h.newestUser()
	}
	for i := range h.results {
		s.foreseen[i] = h.results[i].tokens
	}
	return s
}

// run lets a stage plan if the view is over its target, and reports whether it did.
func (s *scene) run(stage stage) bool {
	if float64(s.peak()) <= s.target {
		return false
	}
	s.stage = stage.name
	return stage.plan(s)
}

// peak is the largest size that the view would have had up to now, if every message had been compacted by the stages
// before this one as soon as it came. Unlike the size now it never falls as a session grows.
func (s *scene) peak() int64 {
	size := int64(s.in.OverheadTokens)
	highest := size
	for m := range s.messages {
		size += int64(s.messages[m].tokens) - s.relief[m]
		highest = max(highest, size)
	}
	return highest
}

// propose asks for an action on result i that has been right since message m came and leaves about so many tokens.
// What is lower on the ladder already stays.
func (s *scene) propose(i, m int, p proposal, tokens int) {
	if p.do <= s.wants[i].do {
		return
	}
	p.stage = s.stage
	s.wants[i] = p
	if saved := s.foreseen[i] - tokens; saved > 0 {
		s.relief[m] += int64(saved)
		s.foreseen[i] = tokens
	}
}

// free reports whether stages may touch result i at all.
func (s *scene) free(i int) bool {
	r := &s.results[i]
	return r.paired && r.value.End > r.value.Start && !slices.Contains(s.policy.Protect.Tools, r.tool)
}

// protected reports whether the policy keeps stages off message m: it leads the session, it is in one of the newest
// units, or it is the newest that the user said.
func (s *scene) protected(m int) bool {
	return m < s.pinned || m == s.spoken || s.messages[m].unit > s.units-s.policy.Protect.LastUnits
}

// content returns what result i says. It must be whole in the view.
func (s *scene) content(i int) *wire.Content {
	if s.contents[i] == nil {
		r := &s.results[i]
		part := wire.Part{Kind: wire.Result, Index: r.part, Value: r.value, CallID: r.callID, Tokens: r.tokens}
		content := wire.ResultText(s.in.Format, s.body(r.message), part)
		s.contents[i] = &content
	}
	return s.contents[i]
}

// chars returns the length of result i, and whether it is text and nothing else.
func (s *scene) chars(i int) (n int, text bool) {
	if r := &s.results[i]; r.do != Keep {
		return r.chars, r.left.text
	}
	content := s.content(i)
	return charLen(content.Text), content.OnlyText
}
